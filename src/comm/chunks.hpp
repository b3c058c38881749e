// The one helper that cuts sizes beyond what an MPI count holds.
#pragma once
#include <cstdint>

namespace zero::comm {

// Cuts `total` into ceil(total/largest) chunks: chunk k is [first(k), first(k)+count(k)).
struct chunks {
    std::int64_t total = 0, largest = INT32_MAX;
    std::int64_t number() const noexcept { return total <= 0 ? 0 : (total + largest - 1) / largest; }
    std::int64_t first(std::int64_t k) const noexcept { return k * largest; }
    std::int64_t count(std::int64_t k) const noexcept {
        return total - first(k) < largest ? total - first(k) : largest;
    }
};

}  // namespace zero::comm
