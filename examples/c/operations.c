/* Norm, GELU, attention and cross entropy, forward and backward, written out. <tgmath.h> picks expf or exp. */
#include "operations.h"

#include <string.h>
#include <tgmath.h>

#define NORM_EPSILON ((real)1e-5)

void norm_forward(int tokens, int width, const real *x, const real *scale, const real *shift, real *y, real *mean,
                  real *inverse) {
    for (int t = 0; t < tokens; ++t, x += width, y += width) {
        real sum = 0, squares = 0;
        for (int i = 0; i < width; ++i) sum += x[i];
        const real m = sum / (real)width;
        for (int i = 0; i < width; ++i) squares += (x[i] - m) * (x[i] - m);
        const real r = 1 / sqrt(squares / (real)width + NORM_EPSILON);
        for (int i = 0; i < width; ++i) y[i] = scale[i] * ((x[i] - m) * r) + shift[i];
        mean[t] = m;
        inverse[t] = r;
    }
}

/* With n = (x - mean) * inverse and d_n = d_y * scale: d_x = inverse * (d_n - mean(d_n) - n * mean(d_n * n)). */
void norm_backward(int tokens, int width, const real *x, const real *scale, const real *mean, const real *inverse,
                   const real *d_y, real *d_x, real *d_scale, real *d_shift) {
    for (int t = 0; t < tokens; ++t, x += width, d_x += width, d_y += width) {
        real sum = 0, along = 0;
        for (int i = 0; i < width; ++i) {
            const real n = (x[i] - mean[t]) * inverse[t], d_n = d_y[i] * scale[i];
            sum += d_n;
            along += d_n * n;
            d_scale[i] += d_y[i] * n;
            d_shift[i] += d_y[i];
        }
        sum /= (real)width;
        along /= (real)width;
        for (int i = 0; i < width; ++i) {
            const real n = (x[i] - mean[t]) * inverse[t];
            d_x[i] += inverse[t] * (d_y[i] * scale[i] - sum - n * along);
        }
    }
}

static const real gelu_a = (real)0.7978845608028654; /* sqrt(2 / pi) */
static const real gelu_b = (real)0.044715;

/* tanh by exp, which is several times faster; only its absolute error matters here. */
static real fast_tanh(real x) { return 1 - 2 / (exp(2 * x) + 1); }

void gelu_forward(int count, const real *x, real *y) {
    for (int i = 0; i < count; ++i) {
        const real t = fast_tanh(gelu_a * (x[i] + gelu_b * x[i] * x[i] * x[i]));
        y[i] = (real)0.5 * x[i] * (1 + t);
    }
}

void gelu_backward(int count, const real *x, real *d_y) {
    for (int i = 0; i < count; ++i) {
        const real t = fast_tanh(gelu_a * (x[i] + gelu_b * x[i] * x[i] * x[i]));
        const real inner = gelu_a * (1 + 3 * gelu_b * x[i] * x[i]);
        d_y[i] *= (real)0.5 * (1 + t) + (real)0.5 * x[i] * (1 - t * t) * inner;
    }
}

void softmax(int count, real *scores) {
    real largest = scores[0], sum = 0;
    for (int i = 1; i < count; ++i)
        if (scores[i] > largest) largest = scores[i];
    for (int i = 0; i < count; ++i) {
        scores[i] = exp(scores[i] - largest);
        sum += scores[i];
    }
    for (int i = 0; i < count; ++i) scores[i] /= sum;
}

/* Scratch of one head: keys or values transposed, and one matrix of context x context. */
int attention_scratch(struct attention_shape shape) {
    return shape.context * (shape.width / shape.heads) + shape.context * shape.context;
}

void attention_forward(struct attention_shape shape, const real *mixed, real *weights, real *y, real *scratch) {
    const int context = shape.context, width = shape.width, size = width / shape.heads;
    const real scale = 1 / sqrt((real)size);
    memset(y, 0, sizeof(real) * (size_t)shape.sequences * (size_t)context * (size_t)width);
    const size_t pairs = (size_t)context * (size_t)context;
    memset(weights, 0, sizeof(real) * (size_t)shape.sequences * (size_t)shape.heads * pairs);
    for (int s = 0; s < shape.sequences; ++s)
        for (int h = 0; h < shape.heads; ++h) {
            const real *query = mixed + s * context * 3 * width + h * size;
            const real *key = query + width, *value = key + width;

            transpose(context, size, key, 3 * width, scratch);
            const struct view queries = {query, 3 * width, 1};
            product_add(context, size, context, queries, scratch, context, weights, context);
            for (int t = 0; t < context; ++t) { /* a token sees itself and what came before it */
                real *row = weights + t * context;
                for (int u = 0; u <= t; ++u) row[u] *= scale;
                softmax(t + 1, row);
                for (int u = t + 1; u < context; ++u) row[u] = 0;
            }
            const struct view all = {weights, context, 1};
            product_add(context, context, size, all, value, 3 * width, y + s * context * width + h * size, width);
            weights += context * context;
        }
}

void attention_backward(struct attention_shape shape, const real *mixed, const real *weights, const real *d_y,
                        real *d_mixed, real *scratch) {
    const int context = shape.context, width = shape.width, size = width / shape.heads;
    const real scale = 1 / sqrt((real)size);
    real *transposed = scratch, *d_scores = scratch + context * size;
    memset(d_mixed, 0, sizeof(real) * (size_t)shape.sequences * (size_t)context * 3 * (size_t)width);
    for (int s = 0; s < shape.sequences; ++s)
        for (int h = 0; h < shape.heads; ++h) {
            const int start = s * context * 3 * width + h * size;
            const real *query = mixed + start, *key = query + width, *value = key + width;
            real *d_query = d_mixed + start, *d_key = d_query + width, *d_value = d_key + width;
            const real *d_out = d_y + s * context * width + h * size;

            const struct view weights_transposed = {weights, 1, context}, d_out_view = {d_out, width, 1};
            product_add(context, context, size, weights_transposed, d_out, width, d_value, 3 * width);

            transpose(context, size, value, 3 * width, transposed);
            memset(d_scores, 0, sizeof(real) * (size_t)context * (size_t)context);
            product_add(context, size, context, d_out_view, transposed, context, d_scores, context);
            for (int t = 0; t < context; ++t) { /* back through the softmax; weights above the diagonal are 0 */
                const real *row = weights + t * context;
                real *d_row = d_scores + t * context, along = 0;
                for (int u = 0; u <= t; ++u) along += row[u] * d_row[u];
                for (int u = 0; u < context; ++u) d_row[u] = scale * row[u] * (d_row[u] - along);
            }
            const struct view d_view = {d_scores, context, 1}, d_transposed = {d_scores, 1, context};
            product_add(context, context, size, d_view, key, 3 * width, d_query, 3 * width);
            product_add(context, context, size, d_transposed, query, 3 * width, d_key, 3 * width);
            weights += context * context;
        }
}

double cross_entropy(int tokens, int symbols, real *scores, const unsigned char *targets) {
    double loss = 0;
    for (int t = 0; t < tokens; ++t, scores += symbols) {
        softmax(symbols, scores);
        /* a probability that underflows to 0 would make the loss infinite */
        loss -= log((double)scores[targets[t]] + 1e-30);
        scores[targets[t]] -= 1;
        for (int i = 0; i < symbols; ++i) scores[i] /= (real)tokens;
    }
    return loss / tokens;
}
