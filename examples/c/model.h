/* A byte-level transformer language model as a row of layers: the embedding, `blocks` blocks (norm, causal attention,
   norm, MLP, each with a residual connection), and the head (norm, scores for 256 bytes). A layer computes with whole
   parameter arrays that the caller passes in: where they come from is not the model's business.
   Not here: libzero (train.c), the text (text.c). */
#ifndef TEXT_MODEL_MODEL_H
#define TEXT_MODEL_MODEL_H

#include "products.h"

enum { SYMBOLS = 256, MOST_TENSORS_PER_LAYER = 12 };

struct shape {
    int sequences, context, width, heads, blocks; /* one batch holds sequences x context tokens */
};

struct model;
struct model *model_create(struct shape shape); /* NULL: out of memory */
void model_free(struct model *model);
struct shape model_shape(const struct model *model);

/* One parameter tensor: its name, shape, and start (normal with this mean and deviation; deviation 0: constant). */
struct tensor {
    char name[64];
    int ndim, dims[2];
    double mean, deviation;
    int decays; /* 1: takes part in weight decay (matrices), 0: does not (norms and biases) */
};

int model_layers(struct shape shape);
int layer_tensors(struct shape shape, int layer);
struct tensor layer_tensor(struct shape shape, int layer, int index);

/* The batch: for each token its byte and the byte that follows it; both stay the caller's, sequences x context each. */
void model_batch(struct model *model, const unsigned char *bytes, const unsigned char *next);

/* Layers run in ascending order. values[i] holds tensor i of the layer, whole. */
void layer_forward(struct model *model, int layer, const real *const *values);
/* Layers run in descending order, after a full forward pass. Adds to gradients[i]. */
void layer_backward(struct model *model, int layer, const real *const *values, real *const *gradients);

/* After the last layer's forward: the mean loss over the tokens of the batch; prepares the backward pass. */
double model_loss(struct model *model);
/* In place of model_loss: the scores of the token at this position of the batch, 256 of them. */
const real *model_scores(const struct model *model, int position);

#endif
