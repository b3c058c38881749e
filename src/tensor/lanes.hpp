// Registers of 2, 4 or 8 doubles, and the tree that sums eight numbers per atom: (k, k+4), (k, k+2), (k, k+1), the same
// for every width, with one finished atom per lane. For the kernels only (vector_kernels.inc).
#pragma once
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "core/host_device.hpp"

namespace zero::vector {
namespace {  // each instruction set has its own

template <int lanes>
struct lane_types {
    typedef double wide __attribute__((vector_size(8 * lanes)));
    typedef float narrow __attribute__((vector_size(4 * lanes)));
};

template <typename Lane>
ZERO_HD Lane widened(Lane value) {
    return value;
}
ZERO_HD lane_types<2>::wide widened(lane_types<2>::narrow value) {
    return __builtin_convertvector(value, lane_types<2>::wide);
}
ZERO_HD lane_types<4>::wide widened(lane_types<4>::narrow value) {
    return __builtin_convertvector(value, lane_types<4>::wide);
}
ZERO_HD lane_types<8>::wide widened(lane_types<8>::narrow value) {
#ifdef __AVX512F__
    return reinterpret_cast<lane_types<8>::wide>(_mm512_maskz_cvtps_pd(0xff, reinterpret_cast<__m256>(value)));
#else
    return __builtin_convertvector(value, lane_types<8>::wide);  // gcc 12 would do this in two halves
#endif
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

template <>
struct atom_tree<8> {
    using wide = lane_types<8>::wide;
    static ZERO_HD wide fold(const wide* part) { return part[0]; }
    static ZERO_HD wide halves(wide a, wide b) {
        return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
               __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    }
    static ZERO_HD wide quarters(wide a, wide b) {
        return __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13) +
               __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15);
    }
    static ZERO_HD wide gather(const wide* atom) {
        const wide a = quarters(halves(atom[0], atom[1]), halves(atom[2], atom[3]));
        const wide b = quarters(halves(atom[4], atom[5]), halves(atom[6], atom[7]));
        return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14) +
               __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
    }
};

}  // namespace
}  // namespace zero::vector
