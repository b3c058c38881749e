// A tile of a reduction that asks for exact sums, on every back end. Not here: the sums (tensor/exact_vector.hpp).
#pragma once
#include "comm/communicator.hpp"
#include "tensor/exact_vector.hpp"

namespace zero::comm {

// Elements first .. first+count-1 of the slice. True when they are final in the target.
inline bool sum_exactly(const reduce_scatter_request& what, std::int64_t first, const void* const* sources, const dtype* types,
                        int ranks, std::int64_t count) {
    auto* target = static_cast<std::byte*>(what.target) + first * size_of(what.sum_type);
    if (what.running == nullptr) {
        vector::order_free_sum(what.sum_type, target, sources, types, ranks, count);
        return true;
    }
    what.running->add(first, sources, types, ranks, count, !what.add);
    if (!what.finished) return false;
    what.running->round(what.sum_type, target, first, count);
    return true;
}

}  // namespace zero::comm
