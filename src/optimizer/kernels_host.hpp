// The table of update loops that optimizer.cpp chooses from: one table per instruction set, all with the same bits as
// result. Plain pointers only: what is compiled with AVX-512 shares no function with the rest of the program.
#pragma once
#include <cstdint>

namespace zero::optimizer {

enum class rule : int { adam = 0, sgd = 1, sgd_momentum = 2, lion = 3, adagrad = 4, lamb_apply = 5, count_ = 6 };
enum class storage : int { f32 = 0, f64 = 1, f32_and_bf16 = 2, f32_and_f16 = 3, count_ = 4 };  // master and 16-bit copy

struct streams {
    void* value;
    void* copy16;
    const void* gradient;
    void* states[2];
    void* direction;  // LAMB's first pass only
    std::int64_t count;
    double clip, lower, upper;
};

struct kernels {
    using loop = void (*)(const void* rule, const streams& part);  // rule: adam<T> and the like, with T of the master
    loop update[static_cast<int>(rule::count_)][static_cast<int>(storage::count_)];
    loop lamb_direction[2];  // f32, f64
};

const kernels* baseline_kernels() noexcept;
const kernels* avx2_kernels() noexcept;    // null where the build has none
const kernels* avx512_kernels() noexcept;  // null where the build has none

}  // namespace zero::optimizer
