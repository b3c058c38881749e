// Allocations, for the other sources of the emulation.
#pragma once
#include "state.hpp"

namespace zero_emulation {

cudaError_t allocate_device(machine& m, void** place, std::size_t bytes, allocation::kind what,
                            cudaMemPool_t pool = nullptr);
// At once: what the streams do with it is the caller's business. False, and a problem, where it is none of that kind.
bool release_device(machine& m, void* place, allocation::kind what, const char* function);
void bury(machine& m, std::shared_ptr<allocation> gone);  // takes it out of the books

// The allocation around so many bytes; null, and in the arena a problem, where they are not inside of one.
std::shared_ptr<allocation> around(machine& m, const void* place, std::size_t bytes, const char* function);

}  // namespace zero_emulation
