/* The matrix products of the model: one kernel in plain C that compilers vectorise, and the three forms that a linear
   layer needs. Every sum runs in a fixed order, so the same input gives the same bits on every rank and in every run.
   Not here: the other operations of the model (operations.h). */
#ifndef TEXT_MODEL_PRODUCTS_H
#define TEXT_MODEL_PRODUCTS_H

/* The model computes in fp32. The gradient check builds the same files with double. */
#ifndef TEXT_MODEL_REAL
#define TEXT_MODEL_REAL float
#endif
typedef TEXT_MODEL_REAL real;

/* A matrix that may lie inside a larger one: element (i, j) stands at at[i * row + j * column]. */
struct view {
    const real *at;
    int row, column;
};

/* c[i][j] += sum over k of a(i, k) * b[k][j]; rows of b and c are b_row and c_row elements apart. */
void product_add(int rows, int inner, int columns, struct view a, const real *b, int b_row, real *c, int c_row);

/* to[j][i] = from[i][j]; `from` has rows that are from_row elements apart, `to` is dense. */
void transpose(int rows, int columns, const real *from, int from_row, real *to);

/* A linear layer y = x w + bias with x: tokens x in, w: in x out, y: tokens x out; bias may be NULL. */
void linear_forward(int tokens, int in, int out, const real *x, const real *w, const real *bias, real *y);

/* Its backward: d_x = d_y w^T is written, d_w += x^T d_y and d_bias += column sums of d_y are added.
   scratch holds in * out elements. d_bias may be NULL. */
void linear_backward(int tokens, int in, int out, const real *x, const real *w, const real *d_y, real *d_x, real *d_w,
                     real *d_bias, real *scratch);

#endif
