// How an update of offloaded vectors is cut: pieces of ranges that pass through lanes one after the other.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compute/processor.hpp"

namespace zero::offload {

// What is done to one piece of part `part`: by whom, and its addresses, which that processor reaches.
using action = std::function<void(compute::processor& by, const optimizer::update_range& piece, std::size_t part)>;
enum class changes { values, gradient };  // beside states: what an action writes (gradient: LAMB's direction, over it)

constexpr std::int64_t widest = 8;              // bytes of an element of a sum
constexpr std::int64_t largest_tile = 1 << 20;  // elements: a copy at the link's full rate, in the host's outer caches

inline std::int64_t tile_of(std::int64_t largest_part, std::int64_t sub_group) noexcept {
    constexpr std::int64_t aligned = 64;  // elements
    const std::int64_t most = std::max(aligned, std::min(largest_tile, sub_group) / aligned * aligned);
    return std::min(most, (largest_part + aligned - 1) / aligned * aligned);
}

inline std::byte* at(const void* data, std::int64_t first, dtype type) {
    return static_cast<std::byte*>(const_cast<void*>(data)) + first * size_of(type);
}

inline optimizer::update_range piece_of(optimizer::update_range whole, std::int64_t first, std::int64_t count) {
    const dtype sum = sum_type(whole.value_type);
    whole.gradient = at(whole.gradient, first, sum);
    whole.value = at(whole.value, first, sum);
    if (whole.copy16 != nullptr) whole.copy16 = at(whole.copy16, first, whole.value_type);
    for (auto& state : whole.states)
        if (state != nullptr) state = at(state, first, sum);
    whole.count = count;
    return whole;
}

struct tile {
    std::size_t part;
    std::int64_t first, count;
};

template <typename Count>  // elements of part k
std::vector<tile> tiles_of(std::size_t parts, Count count, std::int64_t longest) {
    std::vector<tile> all;
    for (std::size_t part = 0; part < parts; ++part)
        for (std::int64_t first = 0; first < count(part); first += longest) all.push_back({part, first, std::min(longest, count(part) - first)});
    return all;
}

}  // namespace zero::offload
