// The superaccumulator: limb i counts units of 2^(32 i - 1074), the least double being 2^-1074. An addition splits the
// 53-bit integer into three limbs and rounds nothing. Not here: fast sums of many numbers (tensor/vector.cpp).
#include "core/exact_sum.hpp"

#include <algorithm>

namespace zero {

namespace {

constexpr int limb_bits = 32;
constexpr std::int64_t low_half = 0xffffffff;
constexpr int pending_limit = 1 << 30;  // additions of less than 2^32 to a limb that stay below 2^63
constexpr std::uint64_t hidden_bit = std::uint64_t{1} << 52;

using limb_array = std::array<std::int64_t, exact_sum::limbs>;

// Leaves every limb but the last in [0, 2^32); the last keeps the sign. Equal sums have equal limbs afterwards.
void propagate(limb_array& limb) noexcept {
    std::int64_t carry = 0;
    for (std::size_t i = 0; i + 1 < limb.size(); ++i) {
        const std::int64_t sum = limb[i] + carry;
        limb[i] = sum & low_half;
        carry = sum >> limb_bits;
    }
    limb.back() += carry;
}

// The 64 bits from this position on.
std::uint64_t bits_from(const limb_array& limb, int position) noexcept {
    unsigned __int128 window = 0;
    const auto first = static_cast<std::size_t>(position / limb_bits);
    for (std::size_t i = std::min(first + 3, limb.size()); i-- > first;)
        window = (window << limb_bits) + static_cast<std::uint64_t>(limb[i]);
    return static_cast<std::uint64_t>(window >> (position % limb_bits));
}

bool any_bit_below(const limb_array& limb, int position) noexcept {
    for (int i = 0; i < position / limb_bits; ++i) {
        if (limb[static_cast<std::size_t>(i)] != 0) return true;
    }
    const std::int64_t mask = (std::int64_t{1} << (position % limb_bits)) - 1;
    return (limb[static_cast<std::size_t>(position / limb_bits)] & mask) != 0;
}

int highest_bit(const limb_array& limb) noexcept {  // -1 for zero; the last limb may exceed 32 bits
    for (int i = exact_sum::limbs - 1; i >= 0; --i) {
        const auto word = static_cast<std::uint64_t>(limb[static_cast<std::size_t>(i)]);
        if (word != 0) return i * limb_bits + 63 - __builtin_clzll(word);
    }
    return -1;
}

// The magnitude, rounded to nearest even, from limbs that are not negative.
double rounded(const limb_array& limb) noexcept {
    constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << 52;
    const int top = highest_bit(limb);
    if (top > 1023 + 1074) return __builtin_bit_cast(double, infinity);
    const int lowest = top > 52 ? top - 52 : 0;  // position of the last bit kept; subnormals keep all
    std::uint64_t mantissa = bits_from(limb, lowest);
    const bool half = lowest > 0 && (bits_from(limb, lowest - 1) & 1) != 0;
    if (half && ((mantissa & 1) != 0 || any_bit_below(limb, lowest - 1))) ++mantissa;
    // Adding the integers lets a carry out of the mantissa step up the exponent, up to infinity.
    const std::uint64_t exponent = mantissa >= hidden_bit ? static_cast<std::uint64_t>(lowest) : 0;
    return __builtin_bit_cast(double, (exponent << 52) + mantissa);
}

}  // namespace

void exact_sum::add(double value) noexcept {
    const auto bits = __builtin_bit_cast(std::uint64_t, value);
    const auto exponent = static_cast<unsigned>(bits >> 52 & 0x7ff);
    const std::uint64_t fraction = bits & (hidden_bit - 1);
    const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | hidden_bit;
    const unsigned position = exponent == 0 ? 0 : exponent - 1;
    const auto shifted = static_cast<unsigned __int128>(mantissa) << (position % limb_bits);
    // all ones for a negative number: (x ^ sign) - sign is -x
    const std::int64_t sign = -static_cast<std::int64_t>(bits >> 63);
    std::int64_t* at = limb_.data() + position / limb_bits;
    for (int i = 0; i < 3; ++i) {
        const auto part =
            static_cast<std::int64_t>(static_cast<std::uint64_t>(shifted >> (limb_bits * i)) & 0xffffffffu);
        at[i] += (part ^ sign) - sign;
    }
    if (++pending_ >= pending_limit) normalize();
}

void exact_sum::add(const exact_sum& other) noexcept {
    limb_array more = other.limb_;
    propagate(more);
    for (std::size_t i = 0; i < limb_.size(); ++i) limb_[i] += more[i];
    if (++pending_ >= pending_limit) normalize();
}

void exact_sum::normalize() noexcept {
    propagate(limb_);
    pending_ = 1;
}

double exact_sum::value() const noexcept {
    limb_array limb = limb_;
    propagate(limb);
    if (limb.back() >= 0) return rounded(limb);
    for (auto& word : limb) word = -word;
    propagate(limb);
    return -rounded(limb);
}

void exact_sum::clear() noexcept {
    limb_.fill(0);
    pending_ = 0;
}

}  // namespace zero
