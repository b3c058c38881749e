// Chooses the back end for a caller's communicator and refuses what cannot be one. Not here: the back ends.
#include <mpi.h>

#include <atomic>

#include "comm/mpi_support.hpp"
#include "compute/processor.hpp"
#include "core/error.hpp"

namespace zero::comm {

bool mpi_is_usable() noexcept {  // asked by every call
    static std::atomic<bool> has_begun{false};  // once that is so it stays so
    int begun = 0, ended = 0;
    if (!has_begun.load(std::memory_order_relaxed)) {
        if (MPI_Initialized(&begun) != MPI_SUCCESS || begun == 0) return false;
        has_begun.store(true, std::memory_order_relaxed);
    }
    return MPI_Finalized(&ended) == MPI_SUCCESS && ended == 0;
}

void check_communicator(const void* mpi_comm) {
    require(mpi_is_usable(), code::state, "call MPI_Init before this call and MPI_Finalize after zero_finalize");
    require(mpi_comm != nullptr, code::argument, "give the address of a communicator");
    const MPI_Comm given = *static_cast<const MPI_Comm*>(mpi_comm);
    require(given != MPI_COMM_NULL, code::argument, "the communicator is MPI_COMM_NULL: call this only on its members");
    int between = 0;
    check(MPI_Comm_test_inter(given, &between), "MPI_Comm_test_inter");
    require(between == 0, code::argument, "this is an inter-communicator: merge it first (MPI_Intercomm_merge)");
}

std::unique_ptr<communicator> make(const void* mpi_comm, const mpi_options& options) {
    check_communicator(mpi_comm);
    int ranks = 0;
    check(MPI_Comm_size(*static_cast<const MPI_Comm*>(mpi_comm), &ranks), "MPI_Comm_size");
    return ranks == 1 ? make_self() : make_mpi(mpi_comm, options);
}

buffer communicator::take_landing(compute::processor& work, ledger& book, purpose why, std::int64_t bytes) {
    return work.take(book, why, bytes);
}

}  // namespace zero::comm
