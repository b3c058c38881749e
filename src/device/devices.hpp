// Which device a context uses, and what kind of memory an address is of: the same questions in builds with CUDA
// (cuda_devices.cpp) and without (no_cuda.cpp). Not here: work on a device (compute/).
#pragma once
#include <string>

#include "core/ledger.hpp"

namespace zero {

// libzero.device is "auto", "host" or "cuda". number: the caller's current device; -1: host memory, `reason` says why.
// Throws code::unsupported or code::cuda where "cuda" cannot be had.
struct device_choice {
    int number = -1;
    std::string reason;
};
device_choice choose_device(const std::string& wanted);

// Whether this process has memory or work on that device already, by whatever library. Does not make it do so.
bool program_uses(int device);

// plain: memory that the runtime knows nothing of; pinned: locked or registered host memory; managed: of all.
enum class memory_of { plain, pinned, managed, device };
struct address_facts {
    memory_of kind = memory_of::plain;
    int device = -1;  // of device memory
};
address_facts recognise(const void* address);
constexpr bool is_of_host(memory_of kind) noexcept { return kind == memory_of::plain || kind == memory_of::pinned; }

// Throws code::argument with a sentence about `what` and its name ("the values of", "w") where a device of that number, or with
// -1 the host, cannot reach the address. Null passes.
void check_reachable(const void* address, int device, const char* what, const std::string& of);

}  // namespace zero
