// An exact, order-independent sum of doubles: a superaccumulator of 64-bit limbs, 32 bits apart (R. Neal, "Fast exact
// summation using small and large superaccumulators", 2015). Limbs of several ranks add as integers, so a sum over
// ranks has the same bits for any number of ranks and any cut of the data.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace zero {

class exact_sum {
public:
    static constexpr int limbs = 70;

    void add(double value) noexcept;              // value must be finite; any sign
    void add(const exact_sum& other) noexcept;
    void normalize() noexcept;                    // propagates carries: afterwards 2^20 normalized sums may be added as integers
    double value() const noexcept;                // rounded to nearest once; +-inf beyond the range
    void clear() noexcept;
    std::span<std::int64_t> data() noexcept { return limb_; }  // to be summed over ranks after normalize()

private:
    std::array<std::int64_t, limbs> limb_{};
    int pending_ = 0;  // additions since the last normalize()
};

}  // namespace zero
