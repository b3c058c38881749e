// Registers of 2 or 4 doubles, and the tree that sums eight numbers per atom: (k, k+4), (k, k+2), (k, k+1), the same
// for every width, with one finished atom per lane. Not 8 doubles: the tree would then need more shuffles per atom than
// a wider register saves. For the kernels only (vector_kernels.inc).
#pragma once
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "core/host_device.hpp"

namespace zero::vector {
namespace {  // each instruction set has its own

template <int lanes>
struct lane_types {
    typedef double wide __attribute__((vector_size(8 * lanes)));
    typedef float narrow __attribute__((vector_size(4 * lanes)));
    typedef int words __attribute__((vector_size(8 * lanes)));
    typedef long long integers __attribute__((vector_size(8 * lanes)));
};

template <typename Lane>
ZERO_HD Lane widened(Lane value) {
    return value;
}
// By intrinsics: gcc 12 makes several instructions of __builtin_convertvector.
ZERO_HD lane_types<2>::wide widened(lane_types<2>::narrow value) {
#ifdef __SSE2__
    const auto low = __builtin_bit_cast(long long, value);
    return reinterpret_cast<lane_types<2>::wide>(_mm_cvtps_pd(_mm_castsi128_ps(_mm_cvtsi64_si128(low))));
#else
    return __builtin_convertvector(value, lane_types<2>::wide);
#endif
}
ZERO_HD lane_types<4>::wide widened(lane_types<4>::narrow value) {
#ifdef __AVX__
    return reinterpret_cast<lane_types<4>::wide>(_mm256_cvtps_pd(reinterpret_cast<__m128>(value)));
#else
    return __builtin_convertvector(value, lane_types<4>::wide);
#endif
}

// a * b + c where a * b is exact in double: one rounding or two, the bits are the same.
template <typename Lane>
ZERO_HD Lane exact_product_plus(Lane a, Lane b, Lane c) {
#ifdef __FMA__
    if constexpr (sizeof(Lane) == 32)
        return reinterpret_cast<Lane>(_mm256_fmadd_pd(reinterpret_cast<__m256d>(a), reinterpret_cast<__m256d>(b),
                                                      reinterpret_cast<__m256d>(c)));
#endif
    return a * b + c;
}

// Registers from and to memory of any alignment.
template <typename Lane>
ZERO_HD Lane load(const void* from) {
    Lane value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}
template <typename Lane>
ZERO_HD void store(void* to, Lane value) {
    __builtin_memcpy(to, &value, sizeof value);
}

// `lanes` atoms in registers of partial sums -> their sums, one lane each, in order.
template <int lanes>
struct atom_tree;

template <>
struct atom_tree<2> {
    using wide = lane_types<2>::wide;
    static ZERO_HD wide fold(const wide* part) { return (part[0] + part[2]) + (part[1] + part[3]); }
    static ZERO_HD wide gather(const wide* atom) {
        const wide a = atom[0], b = atom[1];
        return __builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3);
    }
};

template <>
struct atom_tree<4> {
    using wide = lane_types<4>::wide;
    static ZERO_HD wide fold(const wide* part) { return part[0] + part[1]; }
    static ZERO_HD wide halves(wide a, wide b) {
        return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
    }
    static ZERO_HD wide gather(const wide* atom) {
        const wide a = halves(atom[0], atom[1]), b = halves(atom[2], atom[3]);
        return __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
    }
};

}  // namespace
}  // namespace zero::vector
