// What one thread of a device has added up so far, exactly, before it touches the limbs of a sum that all threads share: a stretch
// of 192 bits of the superaccumulator (core/exact_sum.hpp) that moves to where the numbers are. Not here: the shared limbs.
#pragma once
#include <cstdint>

#include "core/host_device.hpp"

namespace zero::vector {

// The total so far is the integer in the three words (two's complement), in units of 2^(base - 1074).
struct exact_window {
    static constexpr int pieces = 6;    // of 32 bits
    static constexpr int widest = 100;  // a number may begin so many bits above `base`: leaves 38 bits for sums
    std::uint64_t low = 0, middle = 0, high = 0;
    int base = -1;  // a multiple of 32; -1: nothing was added

    // `value` is finite. spill(window): add it to the limbs, for it moves elsewhere.
    template <typename Spill>
    ZERO_HD void add(double value, const Spill& spill) {
        const std::uint64_t bits = __builtin_bit_cast(std::uint64_t, value);
        const int exponent = static_cast<int>(bits >> 52 & 0x7ffu);
        const std::uint64_t fraction = bits & 0xfffffffffffffu;
        const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | 0x10000000000000u;
        if (mantissa == 0) return;
        const int position = exponent == 0 ? 0 : exponent - 1;
        if (base < 0 || position < base || position > base + widest) {
            if (base >= 0) spill(*this);
            low = middle = high = 0;
            base = position > 64 ? (position - 64) / 32 * 32 : 0;
        }
        const int distance = position - base, shift = distance % 64;
        const std::uint64_t below = mantissa << shift, above = shift == 0 ? 0 : mantissa >> (64 - shift);
        const bool far = distance >= 64;
        std::uint64_t a = far ? 0 : below, b = far ? below : above, c = far ? above : 0;
        if (bits >> 63 != 0) {
            a = ~a + 1;
            b = ~b + (a == 0 ? 1 : 0);
            c = ~c + (a == 0 && b == 0 ? 1 : 0);
        }
        add_words(a, b, c);
    }

    ZERO_HD void add_words(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
        low += a;
        const std::uint64_t carry = low < a ? 1 : 0;
        middle += b;
        std::uint64_t next = middle < b ? 1 : 0;
        middle += carry;
        next += middle < carry ? 1 : 0;
        high += c + next;
    }

    // What to add to limb base / 32 + i; the last one carries the sign.
    ZERO_HD std::int64_t piece(int i) const {
        const std::uint64_t word = i < 2 ? low : i < 4 ? middle : high;
        if (i == pieces - 1) return static_cast<std::int64_t>(word) >> 32;
        return static_cast<std::int64_t>(i % 2 == 0 ? word & 0xffffffffu : word >> 32);
    }
};

}  // namespace zero::vector
