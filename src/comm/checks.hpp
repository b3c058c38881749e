// What a request must fulfil on every back end. A violation is a fault of the library, not of its caller.
#pragma once
#include "comm/communicator.hpp"
#include "core/error.hpp"

namespace zero::comm {

inline void check_gather(const all_gather_request& what, int rank, int ranks) {
    require(static_cast<int>(what.landings.size()) == ranks, code::internal, "{} landings for {} ranks",
            what.landings.size(), ranks);
    require(what.root >= -1 && what.root < ranks, code::internal, "root {} of a gather over {} ranks", what.root,
            ranks);
    const std::int64_t mine = what.landings[static_cast<std::size_t>(rank)].bytes;
    require(what.own_bytes == mine, code::internal, "{} own bytes, but a landing of {}", what.own_bytes, mine);
    const bool receives = what.root < 0 || what.root == rank;
    for (const landing& one : what.landings) {
        require(one.bytes >= 0 && (!receives || one.bytes == 0 || one.data != nullptr), code::internal,
                "a landing of {} bytes has no place", one.bytes);
    }
}

inline void check_reduction(const reduce_scatter_request& what) {
    require(what.sum_type == dtype::f32 || what.sum_type == dtype::f64, code::internal,
            "sums are kept in fp32 or fp64");
    const bool narrower = is_16bit(what.travel_type) || (what.travel_type == dtype::f32 && what.sum_type == dtype::f64);
    require(what.travel_type == what.sum_type || narrower, code::internal, "a sum in {} cannot travel as {}",
            name(what.sum_type), name(what.travel_type));
    require(what.slice >= 0, code::internal, "a slice of {} elements", what.slice);
    require(what.exact ? what.running != nullptr || !what.add : what.running == nullptr, code::internal,
            "an exact sum is added to running sums only");
}

}  // namespace zero::comm
