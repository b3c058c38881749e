/* Digests are FNV-1a (Fowler, Noll and Vo), 64 bits: enough to see that bits differ, no protection against intent. */
#include "inspect.h"

#include <inttypes.h>
#include <stdlib.h>

#include "check.h"

static int64_t elements_of(struct tensor tensor) { return (int64_t)tensor.dims[0] * tensor.dims[1]; }

static uint64_t digest(const void *data, size_t bytes) {
    const unsigned char *byte = data;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; ++i) hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

static void write_tensor(zero_t z, int id, const struct tensor *tensor, real *whole, FILE *file) {
    static const char *const moments[2] = {"exp_avg", "exp_avg_sq"};
    const size_t bytes = (size_t)elements_of(*tensor) * sizeof(real);
    CHECK(zero_gather_to(z, id, 0, whole));
    if (file) fprintf(file, "%s value %016" PRIx64 "\n", tensor->name, digest(whole, bytes));
    for (int m = 0; m < 2; ++m) {
        CHECK(zero_gather_state(z, id, moments[m], 0, whole));
        if (file) fprintf(file, "%s %s %016" PRIx64 "\n", tensor->name, moments[m], digest(whole, bytes));
    }
}

void write_digests(const struct training *training, int rank, FILE *file) {
    const struct shape shape = model_shape(training->model);
    int64_t step = 0;
    CHECK(zero_get_int(training->z, "step", &step));
    if (file) fprintf(file, "step %" PRId64 "\n", step);
    for (int layer = 0; layer < model_layers(shape); ++layer)
        for (int i = 0; i < training->layers[layer].count; ++i) {
            const struct tensor tensor = layer_tensor(shape, layer, i);
            real *whole = NULL;
            if (rank == 0 && !(whole = malloc((size_t)elements_of(tensor) * sizeof(real)))) stop("out of memory", NULL);
            write_tensor(training->z, training->layers[layer].id[i], &tensor, whole, file);
            free(whole);
        }
}

/* ---- the ledger ---- */

struct column {
    const char *key;
    int vectors;           /* vectors of fp32 per parameter: value, gradient, two moments of Adam */
    int first_sliced_stage; /* from this stage on a rank holds only its part */
};
static const struct column columns[3] = {
    {"memory.parameters", 1, 3}, {"memory.gradients", 1, 2}, {"memory.states", 2, 1}};

static int64_t largest_over_ranks(zero_t z, const char *key, MPI_Comm comm) {
    int64_t mine = 0, largest = 0;
    CHECK(zero_get_int(z, key, &mine));
    MPI_Allreduce(&mine, &largest, 1, MPI_INT64_T, MPI_MAX, comm);
    return largest;
}

/* Parameters that are not sliced exist once for `sharing` ranks, where these share memory; each accounts for its part. */
static double formula(const struct column *column, int64_t elements, int stage, int ranks, int sharing) {
    const double whole = 4.0 * column->vectors * (double)elements;
    if (stage >= column->first_sliced_stage) return whole / ranks;
    return column == &columns[0] ? whole / sharing : whole;
}

int print_ledger(const struct training *training, MPI_Comm comm) {
    const struct shape shape = model_shape(training->model);
    int64_t stage = 0, sharing = 1, elements = 0, tensors = 0, held[3], total = 0;
    double expected[3], expected_total = 0;
    int rank, ranks, agree = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    CHECK(zero_get_int(training->z, "zero_optimization.stage", &stage));
    CHECK(zero_get_int(training->z, "ranks_sharing_values", &sharing));
    for (int layer = 0; layer < model_layers(shape); ++layer)
        for (int i = 0; i < training->layers[layer].count; ++i, ++tensors)
            elements += elements_of(layer_tensor(shape, layer, i));

    for (int c = 0; c < 3; ++c) {
        held[c] = largest_over_ranks(training->z, columns[c].key, comm);
        expected[c] = formula(&columns[c], elements, (int)stage, ranks, (int)sharing);
        total += held[c];
        expected_total += expected[c];
        /* a tensor may be padded to 64 bytes on every rank */
        const double sliced = (int)stage >= columns[c].first_sliced_stage ? 1 : ranks;
        const double padding = 64.0 * sliced * columns[c].vectors * (double)tensors;
        agree = agree && (double)held[c] >= expected[c] && (double)held[c] <= expected[c] + padding;
    }
    const int64_t communication = largest_over_ranks(training->z, "memory.communication", comm);
    const int64_t gathered = largest_over_ranks(training->z, "memory.gathered", comm);
    if (rank == 0) {
        printf("bytes per rank, ledger (formula)\n");
        printf("%-7s%-7s%-22s%-22s%-22s%-24s%-9s%s\n", "stage", "ranks", "parameters", "gradients", "optimizer state",
               "together", "saved", "(staging, gathered)");
        char cell[3][48], together[48];
        for (int c = 0; c < 3; ++c) snprintf(cell[c], sizeof cell[c], "%" PRId64 " (%.0f)", held[c], expected[c]);
        snprintf(together, sizeof together, "%" PRId64 " (%.0f)", total, expected_total);
        printf("%-7" PRId64 "%-7d%-22s%-22s%-22s%-24s%-9.2f(%" PRId64 ", %" PRId64 ")  %s\n", stage, ranks, cell[0],
               cell[1], cell[2], together, 16.0 * (double)elements / (double)total, communication, gathered,
               agree ? "agree" : "DIFFER");
        fflush(stdout);
    }
    return agree;
}
