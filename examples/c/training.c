/* Gather, compute, release; backward: gather, compute, release, reduce; then step. */
#include "training.h"

#include <stdlib.h>

#include "check.h"

/* ZERO_F32 below says what `real` is; a build with another type stops here. */
typedef char real_is_fp32[sizeof(real) == 4 ? 1 : -1];

void training_register(struct training *training, zero_t z, struct model *model) {
    const struct shape shape = model_shape(model);
    int without_decay = 0; /* norms and biases have a group of their own */
    CHECK(zero_group(z, "{\"weight_decay\": 0}", &without_decay));

    training->z = z;
    training->model = model;
    training->layers = calloc((size_t)model_layers(shape), sizeof *training->layers);
    if (!training->layers) stop("out of memory", NULL);
    for (int layer = 0; layer < model_layers(shape); ++layer) {
        struct layer_ids *ids = &training->layers[layer];
        ids->count = layer_tensors(shape, layer);
        for (int i = 0; i < ids->count; ++i) {
            const struct tensor tensor = layer_tensor(shape, layer, i);
            const int64_t dims[2] = {tensor.dims[0], tensor.dims[1]};
            const int group = tensor.decays ? 0 : without_decay;
            /* values NULL: the library owns the storage, which is what lets stage 3 keep only a slice of it here */
            CHECK(zero_register(z, tensor.name, ZERO_F32, tensor.ndim, dims, NULL, group, &ids->id[i]));
        }
    }
}

void training_fill(struct training *training, uint64_t seed) {
    const struct shape shape = model_shape(training->model);
    for (int layer = 0; layer < model_layers(shape); ++layer)
        for (int i = 0; i < training->layers[layer].count; ++i) {
            const struct tensor tensor = layer_tensor(shape, layer, i);
            const char *kind = tensor.deviation > 0 ? "normal" : "constant";
            CHECK(zero_fill(training->z, training->layers[layer].id[i], kind, tensor.mean, tensor.deviation, seed));
        }
}

/* The parameters of one layer, whole until release. */
static void gather(const struct training *training, int layer, const real **values) {
    const struct layer_ids *ids = &training->layers[layer];
    void *whole[MOST_TENSORS_PER_LAYER];
    CHECK(zero_gather_list(training->z, ids->count, ids->id, whole));
    for (int i = 0; i < ids->count; ++i) values[i] = whole[i];
}

static void release(const struct training *training, int layer) {
    const struct layer_ids *ids = &training->layers[layer];
    CHECK(zero_release_list(training->z, ids->count, ids->id));
}

/* Buffers of the library, zero at first, in which the backward pass adds up the gradients of one layer. */
static void gradient_buffers(const struct training *training, int layer, real **gradients) {
    const struct layer_ids *ids = &training->layers[layer];
    for (int i = 0; i < ids->count; ++i) {
        void *buffer = NULL;
        CHECK(zero_gradient(training->z, ids->id[i], &buffer));
        gradients[i] = buffer;
    }
}

/* From here on the buffers belong to the library, which averages them over the ranks while the next layer computes. */
static void reduce(const struct training *training, int layer) {
    const struct layer_ids *ids = &training->layers[layer];
    for (int i = ids->count - 1; i >= 0; --i) CHECK(zero_reduce(training->z, ids->id[i], NULL));
}

static double forward(const struct training *training) {
    const int layers = model_layers(model_shape(training->model));
    const real *values[MOST_TENSORS_PER_LAYER];
    for (int layer = 0; layer < layers; ++layer) {
        gather(training, layer, values);
        layer_forward(training->model, layer, values);
        release(training, layer);
    }
    return model_loss(training->model);
}

static void backward(const struct training *training) {
    const real *values[MOST_TENSORS_PER_LAYER];
    real *gradients[MOST_TENSORS_PER_LAYER];
    for (int layer = model_layers(model_shape(training->model)) - 1; layer >= 0; --layer) {
        gather(training, layer, values);
        gradient_buffers(training, layer, gradients);
        layer_backward(training->model, layer, values, gradients);
        release(training, layer);
        reduce(training, layer);
    }
}

double training_step(struct training *training, const unsigned char *bytes, const unsigned char *next) {
    model_batch(training->model, bytes, next);
    const double loss = forward(training);
    backward(training);
    CHECK(zero_step(training->z));
    return loss;
}

void training_free(struct training *training) {
    free(training->layers);
    training->layers = NULL;
}
