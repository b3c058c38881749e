// Copies of data that is too long to be found in the caches afterwards: written past them, which spares reading the target
// first. Not here: when that is so (the callers know what comes next).
#pragma once
#include <cstdint>

namespace zero {

constexpr std::int64_t longer_than_caches = 8 << 20;  // bytes; a guess that is right within a factor of a few

void stream_copy(void* to, const void* from, std::int64_t bytes) noexcept;  // the ranges do not overlap
void copy_either_way(void* to, const void* from, std::int64_t bytes, bool past_caches) noexcept;  // the one way or the other
void stream_zeros(void* to, std::int64_t bytes) noexcept;

}  // namespace zero
