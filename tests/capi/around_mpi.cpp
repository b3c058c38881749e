// Calls before MPI_Init and after MPI_Finalize: codes, no abort, memory freed. A program of its own, for MPI lives
// once.
#include <cstdio>
#include <string>

#include "support/expect.hpp"
#include "zero/zero.h"

int main(int argc, char** argv) {
    zero_t z = nullptr;
    zero_t left_over = nullptr;
    std::int64_t host = 0;
    if (std::string(zero_last_error()) != "") ++failures;
    expect(ZERO_ERR_STATE, zero_init_f(0, nullptr, &z), "init_f before MPI_Init");
    expect(ZERO_ERR_STATE, zero_init(MPI_COMM_WORLD, nullptr, &z), "init before MPI_Init");
    expect(ZERO_OK, zero_estimate(nullptr, ZERO_F32, 4, 1, 100, 100, nullptr, &host, nullptr),
           "estimate before MPI_Init");
    if (std::string(zero_build_info()).find("MPI: ") == std::string::npos) ++failures;

    MPI_Init(&argc, &argv);
    const std::int64_t dims[1] = {1000};
    float gradient[1000] = {};
    int id = -1;
    expect(ZERO_OK, zero_init(MPI_COMM_WORLD, "{\"zero_optimization\": {\"stage\": 2}}", &z), "init");
    expect(ZERO_OK, zero_register(z, "w", ZERO_F32, 1, dims, nullptr, 0, &id), "register");
    expect(ZERO_OK, zero_commit(z), "commit");
    expect(ZERO_OK, zero_init(MPI_COMM_WORLD, nullptr, &left_over), "init of a context that is never finalized");
    MPI_Finalize();

    expect(ZERO_ERR_STATE, zero_step(z), "step after MPI_Finalize");
    expect(ZERO_ERR_STATE, zero_reduce(z, id, gradient), "reduce after MPI_Finalize");
    expect(ZERO_OK, zero_memory(z, ZERO_PLACE_HOST, &host, nullptr), "memory after MPI_Finalize");
    const zero_t dead = z;
    expect(ZERO_ERR_STATE, zero_finalize(&z), "finalize after MPI_Finalize");
    if (z != nullptr) ++failures;
    expect(ZERO_ERR_ARGUMENT, zero_step(dead), "a dead handle");
    expect(ZERO_ERR_STATE, zero_init(MPI_COMM_WORLD, nullptr, &z), "init after MPI_Finalize");
    return failures;
}
