// The one order of summation (communicator.hpp): ranks inside a node, then nodes. Not here: where contributions come
// from (exchange.cpp over MPI; node_shared.cpp and hierarchical.cpp take the two levels one by one).
#pragma once
#include "partition/layout.hpp"
#include "tensor/dtype.hpp"

namespace zero::comm {

// As vector::ordered_sum; one source per rank.
void nested_sum(const partition::topology& nodes, dtype sum_type, void* target, bool add, const void* const* sources,
                const dtype* types, std::int64_t count);

}  // namespace zero::comm
