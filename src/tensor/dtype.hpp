// Element types: numbers of the public contract, sizes, and the type in which sums and states are kept.
#pragma once
#include <cstdint>

namespace zero {

enum class dtype : int { f32 = 1, f64 = 2, bf16 = 3, f16 = 4, i32 = 5, i64 = 6, u8 = 7, c64 = 8, c128 = 9 };

constexpr std::int64_t size_of(dtype type) noexcept {
    switch (type) {
        case dtype::f32: case dtype::i32: return 4;
        case dtype::f64: case dtype::i64: case dtype::c64: return 8;
        case dtype::bf16: case dtype::f16: return 2;
        case dtype::u8: return 1;
        case dtype::c128: return 16;
    }
    return 0;
}
constexpr bool is_16bit(dtype type) noexcept { return type == dtype::bf16 || type == dtype::f16; }
// The type of gradient sums, masters and states of a parameter of this type.
constexpr dtype sum_type(dtype type) noexcept { return type == dtype::f64 ? dtype::f64 : dtype::f32; }
constexpr bool is_parameter_type(dtype type) noexcept {
    return type == dtype::f32 || type == dtype::f64 || is_16bit(type);
}
constexpr const char* name(dtype type) noexcept {
    switch (type) {
        case dtype::f32: return "fp32";
        case dtype::f64: return "fp64";
        case dtype::bf16: return "bf16";
        case dtype::f16: return "fp16";
        case dtype::i32: return "int32";
        case dtype::i64: return "int64";
        case dtype::u8: return "uint8";
        case dtype::c64: return "complex64";
        case dtype::c128: return "complex128";
    }
    return "unknown";
}

}  // namespace zero
