// Before MPI_Init and after MPI_Finalize: code::state, and a communicator that outlives MPI goes away quietly.
#include <mpi.h>

#include <cstdio>

#include "comm/communicator.hpp"
#include "core/error.hpp"

namespace {

bool refused() {
    const MPI_Comm comm = MPI_COMM_WORLD;
    try {
        zero::comm::make(&comm, {});
    } catch (const zero::error& e) {
        return e.which() == zero::code::state && !zero::comm::mpi_is_usable();
    }
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    bool good = refused();
    MPI_Init(&argc, &argv);
    {
        const MPI_Comm comm = MPI_COMM_WORLD;
        auto outlives = zero::comm::make_mpi(&comm, {});
        good &= zero::comm::mpi_is_usable();
        std::int64_t one = 1;
        outlives->all_reduce({&one, 1}, zero::comm::combine::sum);
        good &= one == outlives->size();
        MPI_Finalize();
    }
    good &= refused();
    if (!good) std::puts("a communicator outside MPI_Init..MPI_Finalize was not refused with code::state");
    return good ? 0 : 1;
}
