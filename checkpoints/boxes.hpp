// A contiguous range of a flattened row-major array as boxes of the array: at most 2*ndim-1, in row-major order.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace zero::checkpoint {

struct box {
    std::vector<std::int64_t> start, extent;
};

// `dims` not empty; first and count inside the array.
std::vector<box> boxes(std::span<const std::int64_t> dims, std::int64_t first, std::int64_t count);

}  // namespace zero::checkpoint
