// Who touched which bytes, and whether the streams order it. Not here: queues.
#pragma once
#include "state.hpp"

namespace zero_emulation {

// Checks the accesses of an operation that knows `clock`, reports those that race, and remembers them.
void touch(machine& m, const operation& what, std::size_t stream, std::uint64_t number, const vector_clock& clock);
// Whether an operation that is not done yet touches, or only writes, one of the bytes.
bool in_flight(machine& m, std::uintptr_t begin, std::size_t bytes, bool only_writes);
// Reports accesses of which the host does not know that they are over.
void host_touches(machine& m, std::uintptr_t begin, std::size_t bytes, bool write, const char* how);

// The allocation that holds the address, or ends there; null.
std::shared_ptr<allocation> find(machine& m, std::uintptr_t address);
std::shared_ptr<allocation> find_grave(machine& m, std::uintptr_t address);
std::string describe(std::uintptr_t begin, std::uintptr_t end);

}  // namespace zero_emulation
