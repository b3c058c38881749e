// The main function of a benchmark under MPI: what it measures comes back as a report, which rank 0 prints.
#pragma once
#include <mpi.h>

#include "support/measure.hpp"

namespace benchmark {

// measure(options, rank, ranks) runs between MPI_Init and MPI_Finalize.
template <typename Measure>
int mpi_main(int count, char** texts, const Measure& measure) {
    MPI_Init(&count, &texts);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    {
        const arguments options(count, texts);
        const report result = measure(options, rank, ranks);
        if (rank == 0) result.print(options.has("--json"));
    }
    MPI_Finalize();
    return 0;
}

}  // namespace benchmark
