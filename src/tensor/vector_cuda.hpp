// The passes of vector.hpp over device memory, put on a stream: same names, same bits. Included by files of the CUDA build alone.
#pragma once
#include <cstdint>

#include "core/exact_sum.hpp"
#include "device/launch.hpp"
#include "tensor/dtype.hpp"

namespace zero::vector {

// An exact sum in device memory. All zero: nothing was added. Fewer than 2^31 atoms may enter before it is read.
struct device_sum {
    std::int64_t limbs[exact_sum::limbs];
    std::int64_t not_finite;  // 0: all was finite
};

constexpr int most_sources = 2048;  // of one ordered sum: what the arguments of a kernel have room for

void convert(const cuda::queue& on, dtype to_type, void* to, dtype from_type, const void* from, std::int64_t count);
void accumulate(const cuda::queue& on, dtype sum_type, void* sum, dtype from_type, const void* from, double factor, std::int64_t count,
                bool assign);
void ordered_sum(const cuda::queue& on, dtype sum_type, void* target, bool add, const void* const* sources, const dtype* types, int ranks,
                 std::int64_t count);
void divide_and_norm(const cuda::queue& on, dtype type, void* data, double divisor, std::int64_t count, device_sum* squares);
void dot(const cuda::queue& on, dtype type, const void* a, const void* b, std::int64_t count, device_sum* products);
// data[i], rounded to `narrow` and back.
void round_through(const cuda::queue& on, dtype narrow, dtype sum_type, void* data, std::int64_t count);

}  // namespace zero::vector
