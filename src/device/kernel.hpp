// What kernels are made of: loops that all threads share, and elements in groups of four, which travel as one word where they
// lie at multiples of its size. Included by .cu files alone.
#pragma once
#include <cstdint>

#include "core/host_device.hpp"
#include "device/launch.hpp"

namespace zero::cuda {

#ifdef __CUDACC__
#define ZERO_DEVICE __device__ __forceinline__
#else
#define ZERO_DEVICE inline
#endif

// for (i = thread_number(); i < items; i += threads())
ZERO_DEVICE std::int64_t thread_number() {
    return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
ZERO_DEVICE std::int64_t threads() {
    return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

// Integers only: their sum does not depend on the order.
ZERO_DEVICE void add_atomically(std::int64_t* to, std::int64_t number) {
    static_assert(sizeof(unsigned long long) == sizeof(std::int64_t));
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(number));
}

constexpr int group = 4;
ZERO_HD std::int64_t groups_of(std::int64_t count) {
    return (count + group - 1) / group;
}

template <typename T>
struct alignas(sizeof(T) * group < 16 ? sizeof(T) * group : 16) pack {
    T at[group];
};

// May groups that start here travel as one word?
template <typename T>
bool in_packs(const T* data) {
    return reinterpret_cast<std::uintptr_t>(data) % alignof(pack<T>) == 0;
}

// `n` elements, the others 0. packed: at once, all of them.
template <typename T>
ZERO_DEVICE void load(T (&to)[group], const T* from, int n, bool packed) {
    if (packed) {
        const pack<T> all = *reinterpret_cast<const pack<T>*>(from);
        for (int k = 0; k < group; ++k) to[k] = all.at[k];
    } else {
        for (int k = 0; k < group; ++k) to[k] = k < n ? from[k] : T{};
    }
}
template <typename T>
ZERO_DEVICE void store(T* to, const T (&from)[group], int n, bool packed) {
    if (packed) {
        pack<T> all;
        for (int k = 0; k < group; ++k) all.at[k] = from[k];
        *reinterpret_cast<pack<T>*>(to) = all;
    } else {
        for (int k = 0; k < group; ++k)  // all of them, so that the elements stay in registers
            if (k < n) to[k] = from[k];
    }
}

// Elements of group `i`, of `count` in all.
ZERO_DEVICE int size_of_group(std::int64_t i, std::int64_t count) {
    const std::int64_t left = count - i * group;
    return left < group ? static_cast<int>(left) : group;
}

}  // namespace zero::cuda
