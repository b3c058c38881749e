// What device code may use when it is compiled as plain C++: qualifiers, built-in variables and functions. Included by
// the emulation's cuda_runtime.h. Not here: launches (emulation_launch.h).
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static

struct uint3 {
    unsigned x = 0, y = 0, z = 0;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
inline float2 make_float2(float x, float y) {
    return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
inline double2 make_double2(double x, double y) {
    return {x, y};
}
inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}
inline int4 make_int4(int x, int y, int z, int w) {
    return {x, y, z, w};
}

// One thread runs all kernels, so these are variables like any other.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace zero_emulation {

void barrier();  // all threads of the block
// What `lane` of the warp gave; a lane that is not there: mine.
std::uint64_t exchange(std::uint64_t mine, int lane, const char* function);
unsigned ballot(bool mine);

template <typename T>
T shuffle(T value, int lane, const char* function) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof(T));
    word = exchange(word, lane, function);
    std::memcpy(&value, &word, sizeof(T));
    return value;
}
inline int lane() {
    return static_cast<int>(threadIdx.x) % warpSize;
}
// Within a segment of `width` lanes; outside of it a lane gets its own value.
inline int inside(int wanted, int width) {
    return wanted / width == lane() / width && wanted >= 0 ? wanted : -1;
}

template <typename T, typename Change>
T atomically(T* place, Change change) {
    static_assert(std::is_integral_v<T>, "atomics on floats have no fixed order");
    const T before = *place;  // kernels run one after the other
    *place = change(before);
    return before;
}

}  // namespace zero_emulation

inline void __syncthreads() {
    zero_emulation::barrier();
}
inline void __syncwarp(unsigned = 0xffffffffU) {
    zero_emulation::exchange(0, -1, "__syncwarp");
}
inline void __threadfence() {}
inline void __threadfence_block() {}
template <typename T>
T __shfl_sync(unsigned, T value, int lane, int width = warpSize) {
    return zero_emulation::shuffle(value, zero_emulation::lane() / width * width + lane % width, "__shfl_sync");
}
template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned delta, int width = warpSize) {
    return zero_emulation::shuffle(
        value, zero_emulation::inside(zero_emulation::lane() + static_cast<int>(delta), width), "__shfl_down_sync");
}
template <typename T>
T __shfl_up_sync(unsigned, T value, unsigned delta, int width = warpSize) {
    return zero_emulation::shuffle(
        value, zero_emulation::inside(zero_emulation::lane() - static_cast<int>(delta), width), "__shfl_up_sync");
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask, int width = warpSize) {
    return zero_emulation::shuffle(value, zero_emulation::inside(zero_emulation::lane() ^ mask, width),
                                   "__shfl_xor_sync");
}
inline unsigned __ballot_sync(unsigned, int mine) {
    return zero_emulation::ballot(mine != 0);
}
inline int __any_sync(unsigned, int mine) {
    return zero_emulation::ballot(mine != 0) != 0;
}

template <typename T>
T __ldg(const T* place) {
    return *place;
}
template <typename T>
T atomicAdd(T* place, T value) {
    return zero_emulation::atomically(place, [&](T before) { return static_cast<T>(before + value); });
}
template <typename T>
T atomicOr(T* place, T value) {
    return zero_emulation::atomically(place, [&](T before) { return static_cast<T>(before | value); });
}
template <typename T>
T atomicMax(T* place, T value) {
    return zero_emulation::atomically(place, [&](T before) { return std::max(before, value); });
}
template <typename T>
T atomicExch(T* place, T value) {
    return zero_emulation::atomically(place, [&](T) { return value; });
}
template <typename T>
T atomicCAS(T* place, T expected, T value) {
    return zero_emulation::atomically(place, [&](T before) { return before == expected ? value : before; });
}

inline float __fmaf_rn(float a, float b, float c) {
    return std::fma(a, b, c);
}
inline double __fma_rn(double a, double b, double c) {
    return std::fma(a, b, c);
}
inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fsub_rn(float a, float b) {
    return a - b;
}
inline float __fmul_rn(float a, float b) {
    return a * b;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
inline float __fsqrt_rn(float a) {
    return std::sqrt(a);
}
inline double __dadd_rn(double a, double b) {
    return a + b;
}
inline double __dsub_rn(double a, double b) {
    return a - b;
}
inline double __dmul_rn(double a, double b) {
    return a * b;
}
inline double __ddiv_rn(double a, double b) {
    return a / b;
}
inline double __dsqrt_rn(double a) {
    return std::sqrt(a);
}
inline unsigned __float_as_uint(float a) {
    return std::bit_cast<unsigned>(a);
}
inline float __uint_as_float(unsigned a) {
    return std::bit_cast<float>(a);
}
inline long long __double_as_longlong(double a) {
    return std::bit_cast<long long>(a);
}
inline double __longlong_as_double(long long a) {
    return std::bit_cast<double>(a);
}
