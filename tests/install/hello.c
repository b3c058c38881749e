#include <stdio.h>
#include <zero/zero.h>
int main(int argc, char **argv) {
    const char *config = "{\"zero_optimization\": {\"stage\": 2}, \"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.1}}}";
    double w[4] = {4, 3, 2, 1};  /* minimise |w|^2 / 2: the gradient is w itself */
    const int64_t dims[1] = {4};
    zero_t z = NULL;
    int id;
    MPI_Init(&argc, &argv);
    int failed = zero_init(MPI_COMM_WORLD, config, &z) || zero_register(z, "w", ZERO_F64, 1, dims, w, 0, &id) || zero_commit(z);
    for (int step = 0; step < 100 && !failed; step++) failed = zero_reduce(z, id, w) || zero_step(z);
    printf("w = %.3e %.3e %.3e %.3e %s\n", w[0], w[1], w[2], w[3], failed ? zero_last_error() : "");
    zero_finalize(&z);
    return MPI_Finalize() || failed;
}
