// Conversions between fp64, fp32, bf16 and fp16 against a slow reference that rounds by the definition, in double.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "support/instruction_sets.hpp"
#include "tensor/vector.hpp"

using zero::dtype;

namespace {

struct format {
    dtype type;
    int fraction_bits, least_exponent, most_exponent;
};
constexpr format brain{dtype::bf16, 7, -126, 127}, half{dtype::f16, 10, -14, 15};

double decoded(const format& how, std::uint16_t bits) {
    const int fraction = bits & ((1 << how.fraction_bits) - 1);
    const int exponent = (bits & 0x7fff) >> how.fraction_bits;
    const double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == how.most_exponent * 2 + 1)
        return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(fraction, how.least_exponent - how.fraction_bits);
    return sign * std::ldexp(fraction + (1 << how.fraction_bits), exponent - how.most_exponent - how.fraction_bits);
}

// x rounded to the spacing of its binade, ties to even; the scaling by powers of two is exact where it matters.
double rounded(const format& how, double x) {
    if (!std::isfinite(x) || x == 0) return x;
    const int exponent = std::max(std::ilogb(x), how.least_exponent);
    const double scaled = std::nearbyint(std::ldexp(x, how.fraction_bits - exponent));
    const double result = std::ldexp(scaled, exponent - how.fraction_bits);
    const double most = std::ldexp(2 - std::ldexp(1.0, -how.fraction_bits), how.most_exponent);
    if (std::fabs(result) > most) return std::copysign(std::numeric_limits<double>::infinity(), x);
    return std::copysign(result, x);
}

bool same(double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <typename T>
std::int64_t wrong(const format& how, dtype from, const std::vector<T>& values) {
    std::vector<std::uint16_t> narrow(values.size());
    zero::vector::convert(how.type, narrow.data(), from, values.data(), static_cast<std::int64_t>(values.size()));
    std::int64_t failures = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!same(decoded(how, narrow[i]), rounded(how, static_cast<double>(values[i])))) ++failures;
    }
    return failures;
}

float float_of(std::uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// Every 16-bit value, the point halfway to the next, and the neighbours of both in the wider type.
template <typename T>
std::vector<T> borders(const format& how) {
    std::vector<T> values;
    const T infinite = std::numeric_limits<T>::infinity();
    for (unsigned bits = 0; bits < 0x7fff; ++bits) {
        const double here = decoded(how, static_cast<std::uint16_t>(bits));
        if (!std::isfinite(here)) continue;
        double next = decoded(how, static_cast<std::uint16_t>(bits + 1));
        if (!std::isfinite(next)) next = std::ldexp(1.0, how.most_exponent + 1);
        for (const double point : {here, (here + next) / 2}) {
            const auto x = static_cast<T>(point);
            for (const T y : {x, std::nextafter(x, infinite), std::nextafter(x, -infinite)}) {
                values.push_back(y);
                values.push_back(-y);
            }
        }
    }
    values.insert(values.end(),
                  {infinite, -infinite, std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::max(),
                   std::numeric_limits<T>::lowest(), std::numeric_limits<T>::denorm_min(), T(0), -T(0)});
    return values;
}

}  // namespace

TEST_CASE("all 65,536 values of bf16 and fp16 widen exactly and come back", "[convert]") {
    std::vector<std::uint16_t> all(65536), back(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    const auto count = static_cast<std::int64_t>(all.size());
    for_each_instruction_set([&](const char* set) {
        INFO(set);
        for (const format& how : {brain, half}) {
            std::vector<float> single(all.size());
            std::vector<double> wide(all.size());
            zero::vector::convert(dtype::f32, single.data(), how.type, all.data(), count);
            zero::vector::convert(dtype::f64, wide.data(), how.type, all.data(), count);
            std::int64_t failures = 0;
            for (std::size_t i = 0; i < all.size(); ++i) {
                const double right = decoded(how, all[i]);
                failures += !same(static_cast<double>(single[i]), right) || !same(wide[i], right);
            }
            CHECK(failures == 0);
            const auto returns = [&](dtype from, const void* data) {
                zero::vector::convert(how.type, back.data(), from, data, count);
                std::int64_t changed = 0;
                for (std::size_t i = 0; i < all.size(); ++i) {
                    changed +=
                        std::isnan(decoded(how, all[i])) ? !std::isnan(decoded(how, back[i])) : back[i] != all[i];
                }
                return changed;
            };
            CHECK(returns(dtype::f32, single.data()) == 0);
            CHECK(returns(dtype::f64, wide.data()) == 0);
        }
    });
}

TEST_CASE("values, ties and their neighbours round to nearest even from fp32 and, once, from fp64", "[convert]") {
    for (const format& how : {brain, half}) {
        const auto singles = borders<float>(how);
        const auto doubles = borders<double>(how);
        for_each_instruction_set([&](const char* set) {
            INFO(set);
            CHECK(wrong(how, dtype::f32, singles) == 0);
            CHECK(wrong(how, dtype::f64, doubles) == 0);
        });
    }
}

TEST_CASE("millions of floats over all bit patterns narrow as the reference does", "[convert]") {
    std::vector<float> values;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 1999)
        values.push_back(float_of(static_cast<std::uint32_t>(bits)));
    for_each_instruction_set([&](const char* set) {
        INFO(set);
        CHECK(wrong(brain, dtype::f32, values) == 0);
        CHECK(wrong(half, dtype::f32, values) == 0);
    });
}

TEST_CASE("random doubles of all useful exponents narrow with one rounding", "[convert]") {
    std::mt19937_64 random(9);
    std::uniform_int_distribution<int> exponent(-160, 140);
    std::uniform_real_distribution<double> fraction(-2, 2);
    std::vector<double> values(500'000);
    for (auto& x : values) x = std::ldexp(fraction(random), exponent(random));
    for_each_instruction_set([&](const char* set) {
        INFO(set);
        CHECK(wrong(brain, dtype::f64, values) == 0);
        CHECK(wrong(half, dtype::f64, values) == 0);
        std::vector<float> single(values.size());
        zero::vector::convert(dtype::f32, single.data(), dtype::f64, values.data(),
                              static_cast<std::int64_t>(values.size()));
        std::int64_t failures = 0;
        for (std::size_t i = 0; i < values.size(); ++i) failures += single[i] != static_cast<float>(values[i]);
        CHECK(failures == 0);
    });
}
