// The helpers that cut sizes: beyond what an MPI count holds, and to what memory is to be taken for.
#pragma once
#include <algorithm>
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

// Bytes of a row in whole lines of 64: what a slice needs, at most `largest`, and less where `rows` of them would take more than `aim`.
constexpr std::int64_t fair_row(std::int64_t slice_bytes, std::int64_t largest, std::int64_t aim, std::int64_t rows) noexcept {
    constexpr std::int64_t line = 64;
    const std::int64_t fair = std::max(line, aim / std::max<std::int64_t>(1, rows) / line * line);
    return std::min({largest, fair, (slice_bytes + line - 1) / line * line});
}

}  // namespace zero::comm
