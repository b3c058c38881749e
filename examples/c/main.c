/* text_model: trains a small language model on the ranks of MPI, with parameters, gradients and optimizer state held by
   libzero. The order of events: options, zero_init, register, commit, fill or load, steps, save, finalize.
   Not here: the training step (training.c), the model (model.c). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "inspect.h"
#include "model.h"
#include "options.h"
#include "sample.h"
#include "text.h"
#include "training.h"
#include "zero/zero.h"

/* DeepSpeed's keys. The model is small: without a threshold of 0 all of its tensors would stay whole in stage 3, and
   with one large bucket nothing could be reduced while the backward pass runs. */
static const char built_in_configuration[] =
    "{ \"zero_optimization\": { \"stage\": 3, \"reduce_bucket_size\": 50000, \"stage3_prefetch_bucket_size\": 50000,"
    "                           \"stage3_param_persistence_threshold\": 0 },"
    "  \"optimizer\": { \"type\": \"AdamW\","
    "                 \"params\": { \"lr\": 3e-3, \"betas\": [0.9, 0.99], \"eps\": 1e-8, \"weight_decay\": 0.01 } },"
    "  \"scheduler\": { \"type\": \"WarmupLR\","
    "                 \"params\": { \"warmup_num_steps\": 20, \"warmup_type\": \"linear\" } },"
    "  \"gradient_clipping\": 1.0 }";

struct program {
    struct options options;
    int rank, ranks;
    int sequences; /* of this rank */
    struct text text;
    unsigned char *bytes, *next; /* this rank's part of the batch */
    struct training training;
};

/* KEY=VALUE: whole number, number or text, whichever the value is. */
static void set_option(zero_t z, const char *setting) {
    char key[128];
    const char *value = strchr(setting, '=') + 1;
    snprintf(key, sizeof key, "%.*s", (int)(value - setting - 1), setting);
    char *end_of_whole = NULL, *end_of_number = NULL;
    const long long whole = strtoll(value, &end_of_whole, 10);
    const double number = strtod(value, &end_of_number);
    if (*value && !*end_of_whole)
        CHECK(zero_set_int(z, key, whole));
    else if (*value && !*end_of_number)
        CHECK(zero_set_real(z, key, number));
    else
        CHECK(zero_set_text(z, key, value));
}

static void open_text(struct program *program) {
    const struct options *options = &program->options;
    if (options->shape.sequences % program->ranks != 0)
        stop("the number of sequences (--batch) must be a multiple of the number of ranks", NULL);
    if (text_open(&program->text, options->text) != 0) stop("cannot read the text", options->text);
    if (program->text.size <= options->shape.context) stop("shorter than one sequence (--context):", options->text);
    program->sequences = options->shape.sequences / program->ranks;
    const size_t tokens = (size_t)program->sequences * (size_t)options->shape.context;
    program->bytes = malloc(tokens);
    program->next = malloc(tokens);
    if (!program->bytes || !program->next) stop("out of memory", NULL);
}

static void start(struct program *program) {
    const struct options *options = &program->options;
    zero_t z = NULL;
    CHECK(zero_init(MPI_COMM_WORLD, options->config ? options->config : built_in_configuration, &z));
    if (options->stage >= 0) CHECK(zero_set_int(z, "zero_optimization.stage", options->stage));
    for (int i = 0; i < options->setting_count; ++i) set_option(z, options->settings[i]);

    struct shape shape = options->shape;
    shape.sequences = program->sequences;
    struct model *model = model_create(shape);
    if (!model) stop("out of memory", NULL);
    training_register(&program->training, z, model);
    CHECK(zero_commit(z));
    if (options->load)
        CHECK(zero_load(z, options->load, NULL));
    else
        training_fill(&program->training, (uint64_t)options->seed);
}

static void verify(struct program *program) {
    FILE *file = NULL;
    const char *path = program->options.verify;
    if (program->rank == 0 && !(file = fopen(path, "w"))) stop("cannot write", path);
    write_digests(&program->training, program->rank, file);
    if (file && fclose(file) != 0) stop("cannot write", path);
}

/* The mean of the ranks' losses on rank 0, added in the order of ranks. */
static double mean_over_ranks(double mine, int ranks, double *of_ranks) {
    MPI_Gather(&mine, 1, MPI_DOUBLE, of_ranks, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (!of_ranks) return mine;
    double sum = 0;
    for (int r = 0; r < ranks; ++r) sum += of_ranks[r];
    return sum / ranks;
}

static void print_step(const struct program *program, int64_t step, double loss, double started) {
    double norm = 0;
    CHECK(zero_get_real(program->training.z, "grad_norm", &norm));
    printf("step %5lld   loss %.6f   %a   gradient norm %.3f   %.1f s\n", (long long)step, loss, loss, norm,
           MPI_Wtime() - started);
    fflush(stdout);
}

static void train(struct program *program) {
    const struct options *options = &program->options;
    const double started = MPI_Wtime();
    int64_t done = 0; /* updates before this run */
    CHECK(zero_get_int(program->training.z, "step", &done));
    FILE *losses = NULL;
    double *of_ranks = program->rank == 0 ? malloc(sizeof(double) * (size_t)program->ranks) : NULL;
    if (program->rank == 0 && !of_ranks) stop("out of memory", NULL);
    if (program->rank == 0 && options->losses && !(losses = fopen(options->losses, "w")))
        stop("cannot write", options->losses);

    for (int n = 1; n <= options->steps; ++n) {
        const int64_t step = done + n;
        if (text_batch(&program->text, step, program->rank * program->sequences, program->sequences,
                       options->shape.context, program->bytes, program->next) != 0)
            stop("cannot read the text", options->text);
        const double mine = training_step(&program->training, program->bytes, program->next);
        const double loss = mean_over_ranks(mine, program->ranks, of_ranks);
        if (program->rank != 0) continue;
        if (n == 1 || n == options->steps || step % options->every == 0) print_step(program, step, loss, started);
        if (losses) fprintf(losses, "%lld %.6f %a\n", (long long)step, loss, loss);
    }
    if (losses && fclose(losses) != 0) stop("cannot write", options->losses);
    free(of_ranks);
}

static void sample(struct program *program) {
    const struct options *options = &program->options;
    const int count = options->sample;
    char *out = malloc((size_t)count + 1);
    if (!out) stop("out of memory", NULL);
    sample_text(&program->training, program->rank, options->prompt, count, (uint64_t)options->seed, out);
    if (program->rank == 0) {
        for (int i = 0; i < count; ++i) /* a young model also draws bytes that a terminal would act upon */
            if ((out[i] < ' ' && out[i] != '\n') || out[i] == 127) out[i] = '?';
        printf("---- sampled text ----\n%s%.*s\n----------------------\n", options->prompt, count, out);
        fflush(stdout);
    }
    free(out);
}

static void finish(struct program *program) {
    CHECK(zero_finalize(&program->training.z));
    model_free(program->training.model);
    training_free(&program->training);
    text_close(&program->text);
    free(program->bytes);
    free(program->next);
}

static int run(struct program *program) {
    const struct options *options = &program->options;
    int status = 0;
    open_text(program);
    start(program);
    if (options->load && options->verify) verify(program);
    train(program);
    if (options->save) CHECK(zero_save(program->training.z, options->save, NULL));
    if (!options->load && options->verify) verify(program);
    if (options->ledger && !print_ledger(&program->training, MPI_COMM_WORLD)) status = 3;
    if (options->sample) sample(program);
    finish(program);
    return status;
}

int main(int argc, char **argv) {
    struct program program;
    char problem[256];
    int status = 0;
    memset(&program, 0, sizeof program);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &program.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &program.ranks);
    if (options_read(argc, argv, &program.options, problem, sizeof problem) != 0) {
        if (program.rank == 0) fprintf(stderr, "text_model: %s\n", problem);
        status = 2;
    } else if (program.options.help) {
        if (program.rank == 0) fputs(options_help(), stdout);
    } else {
        status = run(&program);
    }
    MPI_Finalize();
    return status;
}
