// The all-gather over MPI: every pair of ranks talks directly, straight from the own bytes into the landings. All
// transfers are posted at the start, so that MPI may move them at any later call. Not here: reductions (exchange.hpp).
#pragma once
#include "comm/mpi_support.hpp"

namespace zero::comm {

// Posts everything; returns the payload bytes that this rank sends.
std::int64_t post_gather(MPI_Comm comm, const all_gather_request& what, int tag, std::int64_t largest_count,
                         request_set& posted);

}  // namespace zero::comm
