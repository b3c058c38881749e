// Passes over vectors of elements: conversion, accumulation, ordered sums, norms. Each is one pass over memory,
// compiled for several instruction sets and chosen at run time (vector_kernels.inc); the bits do not depend on the
// instruction set. Not here: the optimizers' updates (optimizer/).
#pragma once
#include <cstdint>

#include "core/exact_sum.hpp"
#include "tensor/dtype.hpp"

namespace zero::vector {

// to[i] = round-to-nearest-even(from[i]); any pair of f32, f64, bf16, f16. NaN stays NaN, overflow becomes inf.
// (f64 to a 16-bit type rounds once, not via f32.)
void convert(dtype to_type, void* to, dtype from_type, const void* from, std::int64_t count);

// sum[i] = factor * from[i] (assign) or sum[i] + factor * from[i]; product and sum are rounded one after the other in
// sum_type (f32 or f64; factor is a double: the product is formed in f64 for f64 sums, and in f64 then rounded to
// f32 for f32 sums when factor != 1).
void accumulate(dtype sum_type, void* sum, dtype from_type, const void* from, double factor, std::int64_t count, bool assign);

// target[i] = ((s0[i] + s1[i]) + s2[i]) + ... in sum_type, in the order of `sources`, widened from types[k];
// with `add`: target[i] + that sum. target may be one of the sources (same type, same place).
void ordered_sum(dtype sum_type, void* target, bool add, const void* const* sources, const dtype* types, int ranks, std::int64_t count);

// sums[i] += from[i]: true when no sum was rounded. Else some are wrong now, and nothing says which. The arrays do not overlap.
bool add_unrounded(double* sums, dtype from_type, const void* from, std::int64_t count);
// (upper[i], lower[i]) += from[i], where such a pair stands for its exact total: true when nothing was lost, which is so
// while the terms lie within about 106 bits. Else rest[i] is not 0 (NaN is not, either) for the elements whose pairs are
// wrong now; the others are good. The arrays do not overlap.
bool exact_add(double* upper, double* lower, double* rest, dtype from_type, const void* from, std::int64_t count);
// to[i] = upper[i] + lower[i], rounded once to sum_type. An infinite or NaN upper stays so when lower is 0.
void round_sum(dtype sum_type, void* to, const double* upper, const double* lower, std::int64_t count);

// What is left after the sums: data[i] /= divisor (skipped when divisor is 1) and, in the same pass, the squares of
// the result. Squares are taken in f64 (exact for f32), summed inside atoms of `atom(type)` elements counted from
// `data` (which is therefore atom-aligned in its tensor) in a fixed tree, and the atoms go into the exact sum, so the
// result does not depend on where slices or buckets are cut. Returns false when an element is not finite (the exact
// sum is then without meaning).
bool divide_and_norm(dtype type, void* data, double divisor, std::int64_t count, exact_sum& squares);

// The division alone, with the same bits.
void divide(dtype type, void* data, double divisor, std::int64_t count);

// Dot product with the same atoms: a[i]*b[i] in f64. Returns false when a product is not finite.
bool dot(dtype type, const void* a, const void* b, std::int64_t count, exact_sum& products);

constexpr std::int64_t atom(dtype sum_type) noexcept { return sum_type == dtype::f64 ? 8 : 16; }

const char* instruction_set() noexcept;         // "avx512", "avx2" or "baseline": what run-time dispatch chose
bool use_instruction_set(const char* wanted) noexcept;  // tests only: false when this machine lacks it

}  // namespace zero::vector
