// The ledger: every byte the library takes, by place and purpose, with the peak. The report, the planner and the
// tests read the same numbers. Not here: taking memory (device/memory.hpp).
#pragma once
#include <array>
#include <cstdint>

namespace zero {

enum class place : int { device = 1, host = 2, nvme = 3 };

enum class purpose : int {
    parameters,     // values in their own type, whole or the own slice
    gradients,      // sums of gradients, whole or the own slice
    master,         // fp32 copies behind 16-bit values
    states,         // optimizer and user states
    gathered,       // whole values of stage 3 between gather and release, and prefetched ones
    handoff,        // buffers behind zero_gradient that are not part of the sums
    communication,  // staging buckets and chunks of collectives
    checkpoint,     // snapshots and read buffers
    count_
};
const char* name(purpose which) noexcept;
const char* name(place which) noexcept;

class ledger {
public:
    void add(place where, purpose why, std::int64_t bytes) noexcept;
    void remove(place where, purpose why, std::int64_t bytes) noexcept;
    std::int64_t bytes(place where) const noexcept;
    std::int64_t peak(place where) const noexcept;
    std::int64_t bytes(place where, purpose why) const noexcept;
    std::int64_t bytes(purpose why) const noexcept;  // over all places

private:
    struct account {
        std::array<std::int64_t, static_cast<std::size_t>(purpose::count_)> now{};
        std::int64_t total = 0, peak = 0;
    };
    std::array<account, 4> accounts_{};
};

}  // namespace zero
