// A grid of ranks for models that are split over ranks: rows of the world are data communicators, columns are model
// communicators.
#pragma once
#include <mpi.h>

namespace zero::test {

class grid {
public:
    explicit grid(int data_size) {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        model_rank = rank / data_size;
        data_rank = rank % data_size;
        MPI_Comm_split(MPI_COMM_WORLD, model_rank, data_rank, &data);
        MPI_Comm_split(MPI_COMM_WORLD, data_rank, model_rank, &model);
    }
    ~grid() {
        MPI_Comm_free(&data);
        MPI_Comm_free(&model);
    }
    grid(const grid&) = delete;
    grid& operator=(const grid&) = delete;

    int model_rank = 0, data_rank = 0;
    MPI_Comm data = MPI_COMM_NULL, model = MPI_COMM_NULL;
};

}  // namespace zero::test
