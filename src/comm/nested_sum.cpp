// Tile by tile: the sum of one node and the sum so far stay in the nearest cache. See nested_sum.hpp.
#include "comm/nested_sum.hpp"

#include <algorithm>
#include <vector>

#include "tensor/vector.hpp"

namespace zero::comm {

void nested_sum(const partition::topology& nodes, dtype sum_type, void* target, bool add, const void* const* sources,
                const dtype* types, std::int64_t count) {
    const int each = nodes.per_node();
    if (nodes.nodes == 1 || each == 1)
        return vector::ordered_sum(sum_type, target, add, sources, types, nodes.ranks, count);
    constexpr std::int64_t tile = 1024;
    alignas(64) double so_far[tile], one[tile];
    const void* both[2] = {so_far, one};
    const dtype same[2] = {sum_type, sum_type};
    std::vector<const void*> parts(static_cast<std::size_t>(each));
    for (std::int64_t first = 0; first < count; first += tile) {
        const std::int64_t n = std::min(tile, count - first);
        for (int node = 0; node < nodes.nodes; ++node) {
            const int lowest = node * each;
            for (int k = 0; k < each; ++k) {
                const auto* start = static_cast<const std::byte*>(sources[lowest + k]);
                parts[static_cast<std::size_t>(k)] = start + first * size_of(types[lowest + k]);
            }
            vector::ordered_sum(sum_type, node == 0 ? so_far : one, false, parts.data(), types + lowest, each, n);
            const bool last = node + 1 == nodes.nodes;
            void* to = last ? static_cast<std::byte*>(target) + first * size_of(sum_type) : static_cast<void*>(so_far);
            if (node > 0) vector::ordered_sum(sum_type, to, last && add, both, same, 2, n);
        }
    }
}

}  // namespace zero::comm
