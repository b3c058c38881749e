/* Test of the model alone, without libzero: gradients of a small model in double precision against central differences,
   and the same loss whatever comes later in a sequence (the attention is causal). Exit status 0: all agree. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "text.h"

enum { LAYERS = 4 }; /* embedding, two blocks, head */
static const struct shape small = {2, 9, 12, 3, 2};

struct parameters {
    real *values[LAYERS][MOST_TENSORS_PER_LAYER], *gradients[LAYERS][MOST_TENSORS_PER_LAYER];
    int counts[LAYERS][MOST_TENSORS_PER_LAYER];
};

static double some_number(uint64_t a, uint64_t b) {
    return (double)(mixed_number(a, b) >> 11) / 9007199254740992.0 - 0.5;
}

static void fill(struct parameters *p) {
    for (int layer = 0; layer < LAYERS; ++layer)
        for (int i = 0; i < layer_tensors(small, layer); ++i) {
            const struct tensor tensor = layer_tensor(small, layer, i);
            const int count = tensor.dims[0] * (tensor.ndim > 1 ? tensor.dims[1] : 1);
            p->counts[layer][i] = count;
            p->values[layer][i] = calloc((size_t)count, sizeof(real));
            p->gradients[layer][i] = calloc((size_t)count, sizeof(real));
            if (!p->values[layer][i] || !p->gradients[layer][i]) exit(2);
            for (int e = 0; e < count; ++e)
                p->values[layer][i][e] = (real)(tensor.mean + some_number((uint64_t)(layer * 100 + i), (uint64_t)e));
        }
}

static void empty(struct parameters *p) {
    for (int layer = 0; layer < LAYERS; ++layer)
        for (int i = 0; i < layer_tensors(small, layer); ++i) {
            free(p->values[layer][i]);
            free(p->gradients[layer][i]);
        }
}

static void forward(struct model *model, const struct parameters *p) {
    for (int layer = 0; layer < LAYERS; ++layer) layer_forward(model, layer, (const real *const *)p->values[layer]);
}

static double loss_of(struct model *model, const struct parameters *p) {
    forward(model, p);
    return model_loss(model);
}

/* The largest difference over some elements of one tensor, relative to the largest gradient of the tensor. */
static double worst_of(struct model *model, struct parameters *p, int layer, int i) {
    const double h = 1e-5;
    double largest = 1e-6, worst = 0;
    for (int e = 0; e < p->counts[layer][i]; ++e) largest = fmax(largest, fabs((double)p->gradients[layer][i][e]));
    const int stride = p->counts[layer][i] / 40 + 1;
    for (int e = 0; e < p->counts[layer][i]; e += stride) {
        real *element = &p->values[layer][i][e];
        const real kept = *element;
        *element = kept + (real)h;
        const double above = loss_of(model, p);
        *element = kept - (real)h;
        const double below = loss_of(model, p);
        *element = kept;
        worst = fmax(worst, fabs((above - below) / (2 * h) - (double)p->gradients[layer][i][e]) / largest);
    }
    return worst;
}

static int check_gradients(struct model *model, struct parameters *p) {
    int failures = 0;
    loss_of(model, p);
    for (int layer = LAYERS - 1; layer >= 0; --layer)
        layer_backward(model, layer, (const real *const *)p->values[layer], p->gradients[layer]);
    for (int layer = 0; layer < LAYERS; ++layer)
        for (int i = 0; i < layer_tensors(small, layer); ++i) {
            const double worst = worst_of(model, p, layer, i);
            const int good = worst < 1e-6;
            printf("%-30s relative difference %.1e %s\n", layer_tensor(small, layer, i).name, worst,
                   good ? "" : "WRONG");
            failures += !good;
        }
    return failures;
}

/* Scores of the first tokens must not move when a later byte changes. */
static int check_causality(struct model *model, struct parameters *p, unsigned char *bytes) {
    real before[SYMBOLS];
    const int changed = 5;
    forward(model, p);
    memcpy(before, model_scores(model, changed - 1), sizeof before);
    bytes[changed] ^= 1;
    forward(model, p);
    const int same = memcmp(before, model_scores(model, changed - 1), sizeof before) == 0;
    printf("%-30s %s\n", "a token sees only the past", same ? "" : "WRONG");
    return !same;
}

int main(void) {
    enum { TOKENS = 2 * 9 };
    unsigned char bytes[TOKENS], next[TOKENS];
    for (int t = 0; t < TOKENS; ++t) {
        bytes[t] = (unsigned char)mixed_number(1, (uint64_t)t);
        next[t] = (unsigned char)mixed_number(2, (uint64_t)t);
    }
    struct model *model = model_create(small);
    struct parameters *p = calloc(1, sizeof *p);
    if (!model || !p) return 2;
    fill(p);
    model_batch(model, bytes, next);
    const int failures = check_gradients(model, p) + check_causality(model, p, bytes);
    empty(p);
    free(p);
    model_free(model);
    return failures ? 1 : 0;
}
