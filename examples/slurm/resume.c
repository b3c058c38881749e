/* resume: a job that may be stopped at any time and goes on where it was, with the same bits as if it had never stopped.
   Beside values and optimizer states, which libzero restores by itself, a training has a state of its own: where the
   reader of samples is, in which order they come, and the random numbers. Here these are attached to the checkpoint.
     resume FOLDER RESULT STEPS [SECONDS PER STEP]
   Exit status: 0 all steps are done; 75 it saved and stopped early, start it again; anything else: a failure. */
#include <dirent.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "zero/zero.h"

enum { elements = 600, samples = 50, batch = 4, save_every = 25, go_on_later = 75 /* EX_TEMPFAIL */ };

static const char configuration[] =
    "{ \"zero_optimization\": { \"stage\": 2 },"
    "  \"optimizer\": { \"type\": \"AdamW\", \"params\": { \"lr\": 0.01 } },"
    "  \"scheduler\": { \"type\": \"WarmupLR\", \"params\": { \"warmup_num_steps\": 60 } },"
    "  \"checkpoint\": { \"keep_last\": 2 },"
    "  \"libzero\": { \"checkpoint_signals\": true } }"; /* SIGUSR1 and SIGTERM: save and stop */

static void check(int code) {
    if (code == ZERO_OK) return;
    fprintf(stderr, "resume: %s: %s\n", zero_error_name(code), zero_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What this rank reads next. Each rank has samples of its own, in an order that is drawn anew in each epoch. */
struct loader {
    int64_t epoch, position;
    int32_t order[samples];
    int64_t random; /* state of the generator: noise and orders */
};

static double draw(struct loader *loader) { /* in [0, 1): splitmix64 */
    uint64_t x = (uint64_t)loader->random + 0x9e3779b97f4a7c15u;
    loader->random = (int64_t)x;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (double)((x ^ (x >> 31)) >> 11) / 9007199254740992.0;
}

static void shuffle(struct loader *loader) {
    for (int i = samples - 1; i > 0; i--) {
        const int j = (int)(draw(loader) * (i + 1));
        const int32_t kept = loader->order[i];
        loader->order[i] = loader->order[j];
        loader->order[j] = kept;
    }
    loader->position = 0;
}

static int next_sample(struct loader *loader) {
    if (loader->position == samples) {
        loader->epoch++;
        shuffle(loader);
    }
    return loader->order[loader->position++];
}

/* After this a checkpoint holds the loader of every rank, so it loads on the same number of ranks only. */
static void attach(zero_t z, struct loader *loader) {
    const int64_t all[1] = {samples};
    check(zero_attach(z, "loader/epoch", ZERO_I64, 0, NULL, &loader->epoch, ZERO_PER_RANK));
    check(zero_attach(z, "loader/position", ZERO_I64, 0, NULL, &loader->position, ZERO_PER_RANK));
    check(zero_attach(z, "loader/order", ZERO_I32, 1, all, loader->order, ZERO_PER_RANK));
    check(zero_attach(z, "loader/random", ZERO_I64, 0, NULL, &loader->random, ZERO_PER_RANK));
}

/* Is there anything to go on from? A failing load must never look like a first start. */
static int nothing_there(const char *folder, int rank) {
    int empty = 1;
    if (rank == 0) {
        DIR *opened = opendir(folder);
        struct dirent *entry;
        while (opened && (entry = readdir(opened)))
            if (entry->d_name[0] != '.') empty = 0;
        if (opened) closedir(opened);
    }
    MPI_Bcast(&empty, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return empty;
}

/* The simulation: |w - sample + noise|^2 / 2 over a few samples. */
static void gradient_of(const float *w, struct loader *loader, float *gradient) {
    for (int i = 0; i < elements; i++) gradient[i] = 0;
    for (int k = 0; k < batch; k++) {
        const int sample = next_sample(loader);
        for (int i = 0; i < elements; i++)
            gradient[i] += (w[i] - (float)((sample * 31 + i) % 97) / 97 + (float)(0.1 * draw(loader))) / batch;
    }
}

/* Every value and the loaders of all ranks, exactly. */
static void write_result(const char *path, const float *w, const struct loader *mine, int rank, int ranks) {
    struct loader *all = malloc(sizeof *all * (size_t)ranks);
    MPI_Gather(mine, sizeof *mine, MPI_BYTE, all, sizeof *mine, MPI_BYTE, 0, MPI_COMM_WORLD);
    FILE *file = rank == 0 ? fopen(path, "w") : NULL;
    if (rank == 0 && !file) {
        fprintf(stderr, "resume: cannot write %s\n", path);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int r = 0; file && r < ranks; r++)
        fprintf(file, "rank %d: epoch %lld, position %lld, order %d ..., random %016llx\n", r, (long long)all[r].epoch,
                (long long)all[r].position, (int)all[r].order[0], (unsigned long long)all[r].random);
    for (int i = 0; file && i < elements; i++) fprintf(file, "%a\n", (double)w[i]);
    if (file) fclose(file);
    free(all);
}

int main(int argc, char **argv) {
    static float w[elements], gradient[elements];
    const int64_t dims[1] = {elements};
    struct loader loader = {0, 0, {0}, 0};
    int rank, ranks, id, stop = 0;
    int64_t step = 0;
    zero_t z = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 4) {
        if (rank == 0) fprintf(stderr, "usage: resume FOLDER RESULT STEPS [SECONDS PER STEP]\n");
        MPI_Finalize();
        return 2;
    }
    const int64_t steps = strtoll(argv[3], NULL, 10);
    const double seconds = argc > 4 ? strtod(argv[4], NULL) : 0;
    const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    check(zero_init(MPI_COMM_WORLD, configuration, &z));
    check(zero_register(z, "w", ZERO_F32, 1, dims, w, 0, &id));
    check(zero_commit(z));
    attach(z, &loader);
    if (nothing_there(argv[1], rank)) {
        loader.random = 1000 + rank;
        for (int i = 0; i < samples; i++) loader.order[i] = rank * samples + i;
        shuffle(&loader);
    } else {
        check(zero_load(z, argv[1], NULL)); /* the newest that is whole */
    }
    check(zero_get_int(z, "step", &step));
    if (rank == 0) fprintf(stderr, "resume: from step %lld\n", (long long)step);
    while (step < steps && !stop) {
        gradient_of(w, &loader, gradient);
        check(zero_reduce(z, id, gradient));
        check(zero_step(z));
        step++;
        if (rank == 0)
            printf("step %lld epoch %lld position %lld w %a\n", (long long)step, (long long)loader.epoch, (long long)loader.position,
                   (double)w[0]);
        fflush(stdout);
        if (seconds > 0) nanosleep(&pause, NULL); /* stands for a longer simulation */
        check(zero_should_stop(z, &stop));        /* a signal, or the end of the job's time: the same on all ranks */
        if (stop || step % save_every == 0) check(zero_save(z, argv[1], NULL));
    }
    if (step == steps) write_result(argv[2], w, &loader, rank, ranks);
    check(zero_finalize(&z));
    MPI_Finalize();
    return step == steps ? 0 : go_on_later;
}
