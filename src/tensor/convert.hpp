// One element from one type to another: bf16 and fp16 beside float and double. No branches, so that loops over these
// functions become vector code; integer arithmetic only where rounding is decided, so the bits are the same everywhere.
// Not here: loops (vector_kernels.inc).
#pragma once
#include <cstdint>

#include "core/host_device.hpp"

namespace zero {

struct bf16 {
    std::uint16_t bits;
};
struct f16 {
    std::uint16_t bits;
};

ZERO_HD float widen(float value) {
    return value;
}
ZERO_HD double widen(double value) {
    return value;
}

ZERO_HD float widen(bf16 value) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
}

// Magnitudes (sign bit clear) compare as signed numbers: AVX2 has no unsigned comparison.
ZERO_HD bool above(std::uint32_t magnitude, std::uint32_t limit) {
    return static_cast<std::int32_t>(magnitude) > static_cast<std::int32_t>(limit);
}

ZERO_HD float widen(f16 value) {
    const std::uint32_t rebias = 112u << 23;  // exponent bias 127 - 15
    const std::uint32_t magnitude = static_cast<std::uint32_t>(value.bits & 0x7fffu) << 13;
    const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
    // A subnormal is its mantissa put behind the implied one of 2^-14, less that one: no subnormal float takes part.
    const std::uint32_t least_normal = 113u << 23;
    const float subnormal =
        __builtin_bit_cast(float, magnitude + least_normal) - __builtin_bit_cast(float, least_normal);
    std::uint32_t bits = magnitude + rebias;
    bits = above(magnitude, (31u << 23) - 1) ? bits + rebias : bits;  // infinity and NaN: the exponent becomes 255
    bits = above(1u << 23, magnitude) ? __builtin_bit_cast(std::uint32_t, subnormal) : bits;
    return __builtin_bit_cast(float, bits | sign);
}

// Round to nearest even; NaN stays NaN, overflow becomes infinity.
ZERO_HD void narrow(float value, float& to) {
    to = value;
}
ZERO_HD void narrow(float value, double& to) {
    to = static_cast<double>(value);
}
ZERO_HD void narrow(double value, float& to) {
    to = static_cast<float>(value);
}
ZERO_HD void narrow(double value, double& to) {
    to = value;
}

ZERO_HD void narrow(float value, bf16& to) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40u;
    to.bits = static_cast<std::uint16_t>(above(bits & 0x7fffffffu, 0x7f800000u) ? quiet : rounded);
}

ZERO_HD void narrow(float value, f16& to) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
    // The spacing of floats from 0.5 to 1 is 2^-24, the least fp16: the addition itself rounds to that spacing.
    const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
    const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, shifted) - 0x3f000000u;
    std::uint32_t result = above(113u << 23, magnitude) ? subnormal : normal;
    result = above(magnitude, 0x477fefffu) ? 0x7c00u : result;  // 65520, halfway to 2^16, and beyond
    result = above(magnitude, 0x7f800000u) ? (0x7e00u | ((magnitude >> 13) & 0x3ffu)) : result;
    to.bits = static_cast<std::uint16_t>(result | sign);
}

// To float with the last bit set when anything was lost ("round to odd"): a second rounding to at most 22 bits then
// gives what one rounding from double would have given (S. Boldo, G. Melquiond, "When double rounding is odd", 2005).
ZERO_HD float narrow_to_odd(double value) {
    const float nearest = static_cast<float>(value);
    const double back = static_cast<double>(nearest);
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, nearest);
    const std::uint32_t towards = __builtin_fabs(back) > __builtin_fabs(value) ? ~0u : 1u;
    const std::uint32_t even = (bits & 1u) ^ 1u;
    return __builtin_bit_cast(float, bits + (back != value ? towards * even : 0u));
}
ZERO_HD void narrow(double value, bf16& to) {
    narrow(narrow_to_odd(value), to);
}
ZERO_HD void narrow(double value, f16& to) {
    narrow(narrow_to_odd(value), to);
}

}  // namespace zero
