// The table of loops that vector.cpp chooses from: one table per instruction set, all with the same bits as result.
// Plain pointers only: what is compiled with AVX-512 shares no function with the rest of the program.
#pragma once
#include <cstdint>

#include "tensor/instruction_set.hpp"

namespace zero::vector {

// Rows and columns of the tables.
enum element : int {
    element_f32 = 0,
    element_f64 = 1,
    element_bf16 = 2,
    element_f16 = 3,
    elements = 4,
    sum_elements = 2
};

// How divide_atoms divides. Multiplying by the reciprocal gives the same bits when the divisor is a power of two.
enum class division : int { none = 0, multiply = 1, divide = 2, divide_wide = 3, kinds = 4 };

constexpr std::int64_t block_atoms = 512;  // at most so many atoms per call; a fold below counts on it

struct kernels {
    using convert_loop = void (*)(void* to, const void* from, std::int64_t count);
    using accumulate_loop = void (*)(void* sum, const void* from, double factor, std::int64_t count);
    using same_sum_loop = void (*)(void* target, bool add, const void* const* sources, std::int64_t first,
                                   std::int64_t count);
    using divide_loop = void (*)(void* data, double divisor, std::int64_t count);
    // Both return a number with the exponent of the largest atom, its fraction not less; NaN when an atom is not finite.
    using square_loop = double (*)(void* data, double divisor, std::int64_t count, double* atoms);
    using product_loop = double (*)(const void* a, const void* b, std::int64_t count, double* atoms);
    // Splits every atom exactly into a multiple of a coarse grid, a multiple of a fine grid and a rest, which stays in
    // its place. A grid is named by 1.5 * 2^52 times its spacing. Returns the largest rest; sums[0], sums[1] are exact.
    using split_loop = double (*)(double* atoms, std::int64_t count, double coarse, double fine, double* sums);
    using add_unrounded_loop = bool (*)(double* sums, const void* from, std::int64_t count);
    using exact_add_loop = bool (*)(double* upper, double* lower, double* rest, const void* from, std::int64_t count);
    using round_sum_loop = void (*)(void* to, const double* upper, const double* lower, std::int64_t count);

    static constexpr int most_same = 4;
    convert_loop convert[elements][elements];        // [to][from]
    accumulate_loop assign[sum_elements][elements];  // [sum][from]
    accumulate_loop add[sum_elements][elements];
    same_sum_loop same_sum[sum_elements][most_same + 1];  // [sum][number of sources], from 2
    same_sum_loop short_sum[2][most_same + 1];            // bf16, f16; summed in f32, from 1 source
    divide_loop divide[sum_elements][static_cast<int>(division::kinds)];
    square_loop squares[sum_elements][static_cast<int>(division::kinds)];
    product_loop products[sum_elements];
    split_loop split;
    add_unrounded_loop add_unrounded[elements];
    exact_add_loop exact_add[elements];
    round_sum_loop round_sum[sum_elements];
};

const kernels* baseline_kernels() noexcept;
const kernels* avx2_kernels() noexcept;    // null where the build has none
const kernels* avx512_kernels() noexcept;  // null where the build has none

const kernels* compiled_kernels(zero::instruction_set which) noexcept;  // one of the three

}  // namespace zero::vector
