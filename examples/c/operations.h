/* The operations of the model besides matrix products, each as a forward and a backward function. "d_x" is the gradient
   of the loss with respect to x. Functions write their results, but add to what is called "added".
   Not here: which operation follows which (model.c). */
#ifndef TEXT_MODEL_OPERATIONS_H
#define TEXT_MODEL_OPERATIONS_H

#include "products.h"

/* y = scale * (x - mean) / deviation + shift for each token, over its `width` elements. mean and inverse (one over the
   deviation) have one element per token and are kept for the backward pass. */
void norm_forward(int tokens, int width, const real *x, const real *scale, const real *shift, real *y, real *mean,
                  real *inverse);
/* d_x, d_scale and d_shift are added to. */
void norm_backward(int tokens, int width, const real *x, const real *scale, const real *mean, const real *inverse,
                   const real *d_y, real *d_x, real *d_scale, real *d_shift);

/* GELU, tanh form (Hendrycks and Gimpel, 2016). */
void gelu_forward(int count, const real *x, real *y);
/* d_y becomes d_x. */
void gelu_backward(int count, const real *x, real *d_y);

struct attention_shape {
    int sequences, context, heads, width;
};
/* Elements of scratch memory that the two functions below need. */
int attention_scratch(struct attention_shape shape);
/* Causal multi-head attention. mixed: tokens x 3 width, for each token query, key and value, each cut into heads.
   weights: sequences x heads x context x context, kept for the backward pass. y: tokens x width. */
void attention_forward(struct attention_shape shape, const real *mixed, real *weights, real *y, real *scratch);
void attention_backward(struct attention_shape shape, const real *mixed, const real *weights, const real *d_y,
                        real *d_mixed, real *scratch);

/* The mean over tokens of -ln softmax(scores)[target]. scores: tokens x symbols, become d_scores. */
double cross_entropy(int tokens, int symbols, real *scores, const unsigned char *targets);

/* scores become probabilities. */
void softmax(int count, real *scores);

#endif
