/* The kernel works on tiles of 4 x 16 results that stay in registers while k runs; the rest at the borders goes
   through the plain triple loop. Both add in the order of k. */
#include "products.h"

#include <string.h>

/* On x86-64 Linux gcc builds the kernel for AVX-512, AVX2 and the base instruction set and picks at start. Without
   fused multiply-add (-ffp-contract=off) all of them give the same bits. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define FOR_EVERY_MACHINE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EVERY_MACHINE
#endif

enum { TILE_ROWS = 4, TILE_COLUMNS = 16 };

static inline __attribute__((always_inline)) void tile(int inner, struct view a, const real *b, int b_row, real *c,
                                                       int c_row) {
    real sum[TILE_ROWS][TILE_COLUMNS];
    for (int i = 0; i < TILE_ROWS; ++i)
        for (int j = 0; j < TILE_COLUMNS; ++j) sum[i][j] = c[i * c_row + j];
    for (int k = 0; k < inner; ++k) {
        const real *b_k = b + k * b_row;
        for (int i = 0; i < TILE_ROWS; ++i) {
            const real a_ik = a.at[i * a.row + k * a.column];
            for (int j = 0; j < TILE_COLUMNS; ++j) sum[i][j] += a_ik * b_k[j];
        }
    }
    for (int i = 0; i < TILE_ROWS; ++i)
        for (int j = 0; j < TILE_COLUMNS; ++j) c[i * c_row + j] = sum[i][j];
}

static inline __attribute__((always_inline)) void border(int rows, int inner, int columns, struct view a, const real *b,
                                                         int b_row, real *c, int c_row) {
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < inner; ++k) {
            const real a_ik = a.at[i * a.row + k * a.column];
            for (int j = 0; j < columns; ++j) c[i * c_row + j] += a_ik * b[k * b_row + j];
        }
}

FOR_EVERY_MACHINE
void product_add(int rows, int inner, int columns, struct view a, const real *b, int b_row, real *c, int c_row) {
    const int full_rows = rows - rows % TILE_ROWS, full_columns = columns - columns % TILE_COLUMNS;
    for (int j = 0; j < full_columns; j += TILE_COLUMNS)
        for (int i = 0; i < full_rows; i += TILE_ROWS) {
            const struct view a_i = {a.at + i * a.row, a.row, a.column};
            tile(inner, a_i, b + j, b_row, c + i * c_row + j, c_row);
        }
    border(full_rows, inner, columns - full_columns, a, b + full_columns, b_row, c + full_columns, c_row);
    const struct view last = {a.at + full_rows * a.row, a.row, a.column};
    border(rows - full_rows, inner, columns, last, b, b_row, c + full_rows * c_row, c_row);
}

void transpose(int rows, int columns, const real *from, int from_row, real *to) {
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) to[j * rows + i] = from[i * from_row + j];
}

void linear_forward(int tokens, int in, int out, const real *x, const real *w, const real *bias, real *y) {
    for (int t = 0; t < tokens; ++t)
        for (int j = 0; j < out; ++j) y[t * out + j] = bias ? bias[j] : 0;
    const struct view x_view = {x, in, 1};
    product_add(tokens, in, out, x_view, w, out, y, out);
}

void linear_backward(int tokens, int in, int out, const real *x, const real *w, const real *d_y, real *d_x, real *d_w,
                     real *d_bias, real *scratch) {
    transpose(in, out, w, out, scratch);
    memset(d_x, 0, sizeof(real) * (size_t)tokens * (size_t)in);
    const struct view d_y_view = {d_y, out, 1};
    product_add(tokens, out, in, d_y_view, scratch, in, d_x, in);

    const struct view x_transposed = {x, 1, in};
    product_add(in, tokens, out, x_transposed, d_y, out, d_w, out);

    if (d_bias)
        for (int t = 0; t < tokens; ++t)
            for (int j = 0; j < out; ++j) d_bias[j] += d_y[t * out + j];
}
