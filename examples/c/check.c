/* Errors end this program; a larger code would hand them to its own error handling here. */
#include "check.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "zero/zero.h"

void check_code(int code, const char *call) {
    if (code == ZERO_OK) return;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "text_model, rank %d: %s: %s\n  in %s\n", rank, zero_error_name(code), zero_last_error(), call);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

void stop(const char *sentence, const char *detail) {
    fprintf(stderr, "text_model: %s %s\n", sentence, detail ? detail : "");
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}
