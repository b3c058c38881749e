/* In a build without HDF5 zero_save and zero_load are there and say what is missing. */
#include <stdio.h>
#include <string.h>
#include <zero/zero.h>

static int refused(const char *call, int code) {
    if (code == ZERO_ERR_UNSUPPORTED && strstr(zero_last_error(), "ZERO_HDF5=ON") != NULL) return 1;
    printf("%s: code %d, '%s'\n", call, code, zero_last_error());
    return 0;
}

int main(int argc, char **argv) {
    double w[4] = {4, 3, 2, 1};
    const int64_t dims[1] = {4};
    zero_t z = NULL;
    int id, good;
    MPI_Init(&argc, &argv);
    good = !zero_init(MPI_COMM_WORLD, "{}", &z) && !zero_register(z, "w", ZERO_F64, 1, dims, w, 0, &id) && !zero_commit(z);
    good = good && refused("zero_save", zero_save(z, ".", "tag")) && refused("zero_load", zero_load(z, ".", "tag"));
    good = good && !zero_reduce(z, id, w) && !zero_step(z); /* and the context goes on */
    zero_finalize(&z);
    MPI_Finalize();
    return !good;
}
