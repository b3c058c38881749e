// Reading what lies in the private memory of another process of this machine (process_vm_readv, "cross memory attach"),
// where the system allows it. Not here: who asks whom (node_shared.cpp).
#pragma once
#include <cstdint>

namespace zero::comm {

// False when the system refuses, or the other process has ended.
bool read_foreign(std::int64_t process, std::uint64_t address, void* to, std::int64_t bytes) noexcept;

}  // namespace zero::comm
