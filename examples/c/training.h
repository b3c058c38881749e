/* The model trained by libzero: registration, and one training step as a loop over layers in which parameters are whole
   only while a layer computes, and gradients leave as soon as the layer's backward pass is done. The same lines
   work in every stage. This is the file to copy from. */
#ifndef TEXT_MODEL_TRAINING_H
#define TEXT_MODEL_TRAINING_H

#include <stdint.h>

#include "model.h"
#include "zero/zero.h"

struct layer_ids {
    int count, id[MOST_TENSORS_PER_LAYER];
};

struct training {
    zero_t z;
    struct model *model;
    struct layer_ids *layers; /* [model_layers(shape)] */
};

/* Registers every tensor of the model as storage of the library, before zero_commit. */
void training_register(struct training *training, zero_t z, struct model *model);
/* Collective: initial values, after zero_commit. */
void training_fill(struct training *training, uint64_t seed);
/* Collective: forward, backward and update with this rank's part of the batch. Returns this rank's loss before the
   update. */
double training_step(struct training *training, const unsigned char *bytes, const unsigned char *next);
void training_free(struct training *training);

#endif
