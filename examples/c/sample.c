/* One byte after the other: forward pass over the last `context` bytes, one draw from the scores of the last one. */
#include "sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "operations.h"
#include "text.h"

#define TEMPERATURE ((real)0.7) /* below 1: likely bytes become likelier */

/* One array per tensor on rank 0, NULL on the others. */
static real **whole_parameters(const struct training *training, int rank) {
    const struct shape shape = model_shape(training->model);
    const int layers = model_layers(shape);
    real **arrays = calloc((size_t)layers * MOST_TENSORS_PER_LAYER, sizeof *arrays);
    if (!arrays) stop("out of memory", NULL);
    for (int layer = 0; layer < layers; ++layer)
        for (int i = 0; i < training->layers[layer].count; ++i) {
            const struct tensor tensor = layer_tensor(shape, layer, i);
            real **array = &arrays[layer * MOST_TENSORS_PER_LAYER + i];
            if (rank == 0 && !(*array = calloc((size_t)tensor.dims[0] * (size_t)tensor.dims[1], sizeof(real))))
                stop("out of memory", NULL);
            CHECK(zero_gather_to(training->z, training->layers[layer].id[i], 0, *array));
        }
    return arrays;
}

static void free_parameters(real **arrays, int layers) {
    for (int i = 0; i < layers * MOST_TENSORS_PER_LAYER; ++i) free(arrays[i]);
    free(arrays);
}

static int draw(const real *scores, double chance) {
    real probabilities[SYMBOLS];
    for (int i = 0; i < SYMBOLS; ++i) probabilities[i] = scores[i] / TEMPERATURE;
    softmax(SYMBOLS, probabilities);
    int last = 0;
    for (int i = 0; i < SYMBOLS; ++i) {
        if (probabilities[i] > 0) last = i;
        chance -= (double)probabilities[i];
        if (chance < 0) return i;
    }
    return last; /* rounding left a little chance over */
}

static void generate(struct shape shape, real **arrays, const char *prompt, int count, uint64_t seed, char *out) {
    shape.sequences = 1;
    struct model *model = model_create(shape);
    const size_t length = strlen(prompt);
    unsigned char *bytes = calloc(length + (size_t)count + (size_t)shape.context, 1);
    if (!model || !bytes) stop("out of memory", NULL);
    memcpy(bytes, prompt, length);
    for (int n = 0; n < count; ++n) {
        const int known = (int)length + n;
        const int start = known > shape.context ? known - shape.context : 0;
        model_batch(model, bytes + start, NULL); /* what lies behind the known bytes is not seen by the last of them */
        for (int layer = 0; layer < model_layers(shape); ++layer)
            layer_forward(model, layer, (const real *const *)(arrays + layer * MOST_TENSORS_PER_LAYER));
        const double chance = (double)(mixed_number(seed, (uint64_t)n) >> 11) / 9007199254740992.0;
        bytes[known] = (unsigned char)draw(model_scores(model, known - start - 1), chance);
    }
    memcpy(out, bytes + length, (size_t)count);
    free(bytes);
    model_free(model);
}

void sample_text(const struct training *training, int rank, const char *prompt, int count, uint64_t seed, char *out) {
    const struct shape shape = model_shape(training->model);
    real **arrays = whole_parameters(training, rank);
    if (rank == 0) generate(shape, arrays, prompt, count, seed, out);
    free_parameters(arrays, model_layers(shape));
}
