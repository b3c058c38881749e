/* The layers of the model, forward and backward by hand. Each block keeps its activations for the backward pass; one
   residual gradient travels down through the layers. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operations.h"

enum embedding_tensor { TOKEN, POSITION, EMBEDDING_TENSORS };
enum block_tensor {
    NORM1_SCALE, NORM1_SHIFT, MIX_WEIGHT, MIX_BIAS, ATTENTION_WEIGHT, ATTENTION_BIAS,
    NORM2_SCALE, NORM2_SHIFT, UP_WEIGHT, UP_BIAS, DOWN_WEIGHT, DOWN_BIAS, BLOCK_TENSORS
};
enum head_tensor { FINAL_SCALE, FINAL_SHIFT, HEAD_WEIGHT, HEAD_TENSORS };

/* What a block keeps from forward to backward. Elements per token in brackets, d = width. */
struct block {
    real *mean1, *inverse1, *normed1; /* [1 1 d] */
    real *mixed, *weights, *attended; /* [3d heads*context d] */
    real *middle;                     /* [d] the residual stream after the attention */
    real *mean2, *inverse2, *normed2; /* [1 1 d] */
    real *up, *active;                /* [4d 4d] */
};

struct model {
    struct shape shape;
    int tokens;
    const unsigned char *bytes, *next;
    real **stream;        /* [blocks + 1] the residual stream before each block, and after the last one */
    struct block *blocks; /* [blocks] */
    real *final_mean, *final_inverse, *final_normed, *scores;
    real *d_stream, *d_normed, *d_mixed, *d_wide, *d_middle; /* gradients of the same sizes */
    real *scratch;
    real *memory; /* all of the arrays above lie in here */
};

/* ---- the list of tensors ---- */

int model_layers(struct shape shape) { return shape.blocks + 2; }

int layer_tensors(struct shape shape, int layer) {
    if (layer == 0) return EMBEDDING_TENSORS;
    return layer <= shape.blocks ? BLOCK_TENSORS : HEAD_TENSORS;
}

static struct tensor matrix(const char *name, int rows, int columns, double deviation) {
    struct tensor tensor = {"", 2, {rows, columns}, 0, deviation, 1};
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    return tensor;
}

static struct tensor vector(const char *name, int count, double value) {
    struct tensor tensor = {"", 1, {count, 1}, value, 0, 0};
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    return tensor;
}

static struct tensor block_tensor(struct shape shape, int index) {
    const int d = shape.width;
    /* what is added to the residual stream starts smaller, so that its size does not grow with the number of blocks */
    const double deviation = 0.08, last = 0.08 / (shape.blocks > 1 ? shape.blocks : 1);
    switch (index) {
        case NORM1_SCALE: return vector("norm1.scale", d, 1);
        case NORM1_SHIFT: return vector("norm1.shift", d, 0);
        case MIX_WEIGHT: return matrix("attention.mix.weight", d, 3 * d, deviation);
        case MIX_BIAS: return vector("attention.mix.bias", 3 * d, 0);
        case ATTENTION_WEIGHT: return matrix("attention.out.weight", d, d, last);
        case ATTENTION_BIAS: return vector("attention.out.bias", d, 0);
        case NORM2_SCALE: return vector("norm2.scale", d, 1);
        case NORM2_SHIFT: return vector("norm2.shift", d, 0);
        case UP_WEIGHT: return matrix("mlp.up.weight", d, 4 * d, deviation);
        case UP_BIAS: return vector("mlp.up.bias", 4 * d, 0);
        case DOWN_WEIGHT: return matrix("mlp.down.weight", 4 * d, d, last);
        default: return vector("mlp.down.bias", d, 0);
    }
}

static struct tensor head_tensor(struct shape shape, int index) {
    switch (index) {
        case FINAL_SCALE: return vector("head.norm.scale", shape.width, 1);
        case FINAL_SHIFT: return vector("head.norm.shift", shape.width, 0);
        default: return matrix("head.weight", shape.width, SYMBOLS, 0.02);
    }
}

struct tensor layer_tensor(struct shape shape, int layer, int index) {
    if (layer == 0)
        return index == TOKEN ? matrix("embedding.token", SYMBOLS, shape.width, 0.1)
                              : matrix("embedding.position", shape.context, shape.width, 0.1);
    if (layer > shape.blocks) return head_tensor(shape, index);
    struct tensor tensor = block_tensor(shape, index);
    char name[sizeof tensor.name];
    snprintf(name, sizeof name, "block%d.%.40s", layer - 1, tensor.name);
    memcpy(tensor.name, name, sizeof name);
    return tensor;
}

/* ---- memory ---- */

static real *take(real *memory, size_t *used, size_t count) {
    real *here = memory ? memory + *used : NULL;
    *used += count;
    return here;
}

/* Called twice: without memory it only counts, with memory it hands the arrays out. */
static size_t lay_out(struct model *model, real *memory) {
    const struct shape shape = model->shape;
    const size_t n = (size_t)model->tokens, d = (size_t)shape.width;
    const size_t context = (size_t)shape.context, heads = (size_t)shape.heads;
    size_t used = 0;
    for (int b = 0; b <= shape.blocks; ++b) model->stream[b] = take(memory, &used, n * d);
    for (int b = 0; b < shape.blocks; ++b) {
        struct block *block = &model->blocks[b];
        block->mean1 = take(memory, &used, n);
        block->inverse1 = take(memory, &used, n);
        block->normed1 = take(memory, &used, n * d);
        block->mixed = take(memory, &used, n * 3 * d);
        block->weights = take(memory, &used, n * heads * context);
        block->attended = take(memory, &used, n * d);
        block->middle = take(memory, &used, n * d);
        block->mean2 = take(memory, &used, n);
        block->inverse2 = take(memory, &used, n);
        block->normed2 = take(memory, &used, n * d);
        block->up = take(memory, &used, n * 4 * d);
        block->active = take(memory, &used, n * 4 * d);
    }
    model->final_mean = take(memory, &used, n);
    model->final_inverse = take(memory, &used, n);
    model->final_normed = take(memory, &used, n * d);
    model->scores = take(memory, &used, n * SYMBOLS);
    model->d_stream = take(memory, &used, n * d);
    model->d_normed = take(memory, &used, n * d);
    model->d_mixed = take(memory, &used, n * 3 * d);
    model->d_wide = take(memory, &used, n * 4 * d);
    model->d_middle = take(memory, &used, n * d);
    const struct attention_shape attention = {shape.sequences, shape.context, shape.heads, shape.width};
    const size_t largest_matrix = d * (4 * d > SYMBOLS ? 4 * d : SYMBOLS);
    const size_t for_attention = (size_t)attention_scratch(attention);
    model->scratch = take(memory, &used, largest_matrix > for_attention ? largest_matrix : for_attention);
    return used;
}

struct model *model_create(struct shape shape) {
    struct model *model = calloc(1, sizeof *model);
    if (!model) return NULL;
    model->shape = shape;
    model->tokens = shape.sequences * shape.context;
    model->stream = calloc((size_t)shape.blocks + 1, sizeof *model->stream);
    model->blocks = calloc((size_t)shape.blocks + 1, sizeof *model->blocks);
    if (model->stream && model->blocks) model->memory = calloc(lay_out(model, NULL), sizeof(real));
    if (!model->memory) {
        model_free(model);
        return NULL;
    }
    lay_out(model, model->memory);
    return model;
}

void model_free(struct model *model) {
    if (!model) return;
    free(model->memory);
    free(model->stream);
    free(model->blocks);
    free(model);
}

struct shape model_shape(const struct model *model) { return model->shape; }

void model_batch(struct model *model, const unsigned char *bytes, const unsigned char *next) {
    model->bytes = bytes;
    model->next = next;
}

/* ---- the embedding ---- */

static void embedding_forward(struct model *model, const real *const *values) {
    const int d = model->shape.width;
    for (int t = 0; t < model->tokens; ++t) {
        const real *token = values[TOKEN] + model->bytes[t] * d;
        const real *position = values[POSITION] + (t % model->shape.context) * d;
        for (int i = 0; i < d; ++i) model->stream[0][t * d + i] = token[i] + position[i];
    }
}

static void embedding_backward(struct model *model, real *const *gradients) {
    const int d = model->shape.width;
    for (int t = 0; t < model->tokens; ++t) {
        real *token = gradients[TOKEN] + model->bytes[t] * d;
        real *position = gradients[POSITION] + (t % model->shape.context) * d;
        for (int i = 0; i < d; ++i) {
            token[i] += model->d_stream[t * d + i];
            position[i] += model->d_stream[t * d + i];
        }
    }
}

/* ---- a block ---- */

static struct attention_shape attention_of(const struct model *model) {
    const struct attention_shape shape = {model->shape.sequences, model->shape.context, model->shape.heads,
                                          model->shape.width};
    return shape;
}

static void add(int count, const real *a, real *to) {
    for (int i = 0; i < count; ++i) to[i] += a[i];
}

static void block_forward(struct model *model, int number, const real *const *w) {
    struct block *b = &model->blocks[number];
    const int n = model->tokens, d = model->shape.width;
    const real *in = model->stream[number];
    real *out = model->stream[number + 1];

    norm_forward(n, d, in, w[NORM1_SCALE], w[NORM1_SHIFT], b->normed1, b->mean1, b->inverse1);
    linear_forward(n, d, 3 * d, b->normed1, w[MIX_WEIGHT], w[MIX_BIAS], b->mixed);
    attention_forward(attention_of(model), b->mixed, b->weights, b->attended, model->scratch);
    linear_forward(n, d, d, b->attended, w[ATTENTION_WEIGHT], w[ATTENTION_BIAS], b->middle);
    add(n * d, in, b->middle);

    norm_forward(n, d, b->middle, w[NORM2_SCALE], w[NORM2_SHIFT], b->normed2, b->mean2, b->inverse2);
    linear_forward(n, d, 4 * d, b->normed2, w[UP_WEIGHT], w[UP_BIAS], b->up);
    gelu_forward(n * 4 * d, b->up, b->active);
    linear_forward(n, 4 * d, d, b->active, w[DOWN_WEIGHT], w[DOWN_BIAS], out);
    add(n * d, b->middle, out);
}

/* d_stream holds the gradient of the block's output and becomes the gradient of its input. */
static void block_backward(struct model *model, int number, const real *const *w, real *const *g) {
    struct block *b = &model->blocks[number];
    const int n = model->tokens, d = model->shape.width;
    const real *in = model->stream[number];
    real *d_stream = model->d_stream, *scratch = model->scratch;

    linear_backward(n, 4 * d, d, b->active, w[DOWN_WEIGHT], d_stream, model->d_wide, g[DOWN_WEIGHT], g[DOWN_BIAS],
                    scratch);
    gelu_backward(n * 4 * d, b->up, model->d_wide);
    linear_backward(n, d, 4 * d, b->normed2, w[UP_WEIGHT], model->d_wide, model->d_normed, g[UP_WEIGHT], g[UP_BIAS],
                    scratch);
    norm_backward(n, d, b->middle, w[NORM2_SCALE], b->mean2, b->inverse2, model->d_normed, d_stream, g[NORM2_SCALE],
                  g[NORM2_SHIFT]); /* adds to what came through the residual connection */

    linear_backward(n, d, d, b->attended, w[ATTENTION_WEIGHT], d_stream, model->d_middle, g[ATTENTION_WEIGHT],
                    g[ATTENTION_BIAS], scratch);
    attention_backward(attention_of(model), b->mixed, b->weights, model->d_middle, model->d_mixed, scratch);
    linear_backward(n, d, 3 * d, b->normed1, w[MIX_WEIGHT], model->d_mixed, model->d_normed, g[MIX_WEIGHT],
                    g[MIX_BIAS], scratch);
    norm_backward(n, d, in, w[NORM1_SCALE], b->mean1, b->inverse1, model->d_normed, d_stream, g[NORM1_SCALE],
                  g[NORM1_SHIFT]);
}

/* ---- the head ---- */

static void head_forward(struct model *model, const real *const *w) {
    const int n = model->tokens, d = model->shape.width;
    norm_forward(n, d, model->stream[model->shape.blocks], w[FINAL_SCALE], w[FINAL_SHIFT], model->final_normed,
                 model->final_mean, model->final_inverse);
    linear_forward(n, d, SYMBOLS, model->final_normed, w[HEAD_WEIGHT], NULL, model->scores);
}

/* model_loss has turned the scores into their gradients. */
static void head_backward(struct model *model, const real *const *w, real *const *g) {
    const int n = model->tokens, d = model->shape.width;
    linear_backward(n, d, SYMBOLS, model->final_normed, w[HEAD_WEIGHT], model->scores, model->d_normed,
                    g[HEAD_WEIGHT], NULL, model->scratch);
    memset(model->d_stream, 0, sizeof(real) * (size_t)n * (size_t)d);
    norm_backward(n, d, model->stream[model->shape.blocks], w[FINAL_SCALE], model->final_mean, model->final_inverse,
                  model->d_normed, model->d_stream, g[FINAL_SCALE], g[FINAL_SHIFT]);
}

double model_loss(struct model *model) { return cross_entropy(model->tokens, SYMBOLS, model->scores, model->next); }

const real *model_scores(const struct model *model, int position) { return model->scores + position * SYMBOLS; }

/* ---- any layer ---- */

void layer_forward(struct model *model, int layer, const real *const *values) {
    if (layer == 0)
        embedding_forward(model, values);
    else if (layer <= model->shape.blocks)
        block_forward(model, layer - 1, values);
    else
        head_forward(model, values);
}

void layer_backward(struct model *model, int layer, const real *const *values, real *const *gradients) {
    if (layer == 0)
        embedding_backward(model, gradients);
    else if (layer <= model->shape.blocks)
        block_backward(model, layer - 1, values, gradients);
    else
        head_backward(model, values, gradients);
}
