// The main of tests over MPI: runs the same Catch2 cases on every rank; a failure on any rank fails all, and only failing
// ranks print (in rank order; a failed line at once on stderr, since the other ranks may wait for this one for ever). ZERO_TEST_THREADS=single|funneled|serialized|multiple chooses the level asked of MPI_Init_thread.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include <mpi.h>

#include "support/catch_runner.hpp"

namespace {

int wanted_thread_level() {
    const char* const text = std::getenv("ZERO_TEST_THREADS");
    const std::string wanted = text != nullptr ? text : "multiple";
    if (wanted == "single") return MPI_THREAD_SINGLE;
    if (wanted == "funneled") return MPI_THREAD_FUNNELED;
    if (wanted == "serialized") return MPI_THREAD_SERIALIZED;
    return MPI_THREAD_MULTIPLE;
}

// Catch2 writes to std::cout: it is redirected while the cases run.
int run_captured(int argc, char** argv, int rank, int size, std::string& output) {
    std::ostringstream captured;
    std::streambuf* const screen = std::cout.rdbuf(captured.rdbuf());
    const int failures = zero::test::run_catch(argc, argv, rank, size);
    std::cout.rdbuf(screen);
    output = captured.str();
    return failures;
}

void print_in_rank_order(int rank, int size, bool mine, const std::string& output) {
    for (int turn = 0; turn < size; ++turn) {
        if (turn == rank && mine) {
            std::fprintf(stdout, "=== rank %d of %d\n%s\n", rank, size, output.c_str());
            std::fflush(stdout);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, wanted_thread_level(), &provided);
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    std::string output;
    const int failures = run_captured(argc, argv, rank, size, output);
    int worst = failures != 0 ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    print_in_rank_order(rank, size, failures != 0 || (worst == 0 && rank == 0), output);
    MPI_Finalize();
    return worst;
}
