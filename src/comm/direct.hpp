// Messages from device memory to device memory, among ranks that can reach each other so. nccl.cpp, and no_nccl.cpp in builds
// without. Not here: sums, and other nodes (device_ranks.cpp).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "compute/processor.hpp"

namespace zero::comm {

class direct {
public:
    struct message {
        int peer = 0;
        void* data = nullptr;  // read when it goes out
        std::int64_t bytes = 0;
    };
    virtual ~direct() = default;
    // In the order of that processor's calls. Between two ranks messages match in their order; all ranks make the same
    // exchanges in the same order.
    virtual void exchange(std::span<const message> out, std::span<const message> in, compute::processor& on) = 0;
    // Memory on the device of `work`, which outlives it, zeroed in its order and known to the messages (registered, where the version
    // of NCCL can): they go straight there. Where that is refused, memory like any other.
    virtual buffer take(compute::processor& work, ledger& book, purpose why, std::int64_t bytes) = 0;
    virtual void refuse_broken() = 0;  // throws what went wrong since, here or at a peer
    virtual void give_up() noexcept = 0;  // nothing more is sent or waited for
};

// Collective over `ranks`. Null on all of them, with the reason, where some cannot.
std::unique_ptr<direct> connect(communicator& ranks, compute::processor& work, std::string& reason);

}  // namespace zero::comm
