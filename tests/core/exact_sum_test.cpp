// The exact sum against 113-bit arithmetic, and the properties that make a norm independent of ranks and cuts.
#include "core/exact_sum.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

using zero::exact_sum;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double least = std::numeric_limits<double>::denorm_min();

exact_sum sum_of(const std::vector<double>& numbers) {
    exact_sum sum;
    for (const double x : numbers) sum.add(x);
    return sum;
}
double value_of(std::initializer_list<double> numbers) {
    return sum_of(numbers).value();
}

std::vector<std::int64_t> limbs_of(exact_sum sum) {
    sum.normalize();
    return {sum.data().begin(), sum.data().end()};
}

std::vector<double> wild(std::size_t count, int low, int high, unsigned seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> fraction(-2, 2);
    std::uniform_int_distribution<int> exponent(low, high);
    std::vector<double> numbers(count);
    for (auto& x : numbers) x = std::ldexp(fraction(random), exponent(random));
    return numbers;
}

}  // namespace

TEST_CASE("exact sum equals 113-bit arithmetic where that is exact", "[exact_sum]") {
    for (unsigned seed = 0; seed < 300; ++seed) {
        const int base = static_cast<int>(seed % 20) * 90 - 900;
        const auto numbers = wild(500, base - 20, base + 20, seed);
        __float128 reference = 0;
        for (const double x : numbers) reference += static_cast<__float128>(x);
        REQUIRE(sum_of(numbers).value() == static_cast<double>(reference));
    }
}

TEST_CASE("exact sum does not depend on order", "[exact_sum]") {
    auto numbers = wild(100'000, -1080, 1000, 7);
    const exact_sum first = sum_of(numbers);
    std::mt19937 random(3);
    for (int round = 0; round < 5; ++round) {
        std::shuffle(numbers.begin(), numbers.end(), random);
        const exact_sum again = sum_of(numbers);
        REQUIRE(again.value() == first.value());
        REQUIRE(limbs_of(again) == limbs_of(first));
    }
}

TEST_CASE("exact sum loses nothing to cancellation", "[exact_sum]") {
    CHECK(value_of({1e308, 1, -1e308}) == 1);
    CHECK(value_of({1e308, least, -1e308}) == least);
    CHECK(value_of({-1e300, 3, 1e300, -3, -least}) == -least);
    CHECK(value_of({}) == 0);
    CHECK(value_of({-5, 5}) == 0);
    auto numbers = wild(2000, -1070, 1010, 11);
    const auto half = numbers;
    for (const double x : half) numbers.push_back(-x);
    numbers.push_back(0.1);
    CHECK(sum_of(numbers).value() == 0.1);
}

TEST_CASE("exact sum rounds to nearest even, once", "[exact_sum]") {
    const double ulp = 0x1p-52;
    CHECK(value_of({1, ulp / 2}) == 1);
    CHECK(value_of({1, ulp / 2, least}) == 1 + ulp);
    CHECK(value_of({1, ulp / 2, -least}) == 1);
    CHECK(value_of({1 + ulp, ulp / 2}) == 1 + 2 * ulp);
    CHECK(value_of({-1 - ulp, -ulp / 2}) == -1 - 2 * ulp);
    CHECK(value_of({2 - ulp, ulp / 2}) == 2);  // the carry leaves the mantissa
    CHECK(value_of({1, -ulp / 4, -least}) == 1 - ulp / 2);
}

TEST_CASE("exact sum of subnormals", "[exact_sum]") {
    exact_sum sum;
    for (int i = 0; i < 1000; ++i) sum.add(least);
    CHECK(sum.value() == 1000 * least);
    CHECK(value_of({DBL_MIN, -least}) == DBL_MIN - least);
    CHECK(value_of({DBL_MIN - least, least}) == DBL_MIN);
}

TEST_CASE("exact sum beyond the range is infinite and comes back", "[exact_sum]") {
    CHECK(value_of({DBL_MAX, DBL_MAX}) == infinity);
    CHECK(value_of({-DBL_MAX, -DBL_MAX}) == -infinity);
    CHECK(value_of({DBL_MAX, DBL_MAX, -DBL_MAX}) == DBL_MAX);
    const double half_ulp = 0x1p970;  // a tie goes to the even side, which is beyond
    CHECK(value_of({DBL_MAX, half_ulp}) == infinity);
    CHECK(value_of({DBL_MAX, half_ulp, -least}) == DBL_MAX);
    CHECK(sum_of(std::vector<double>(100'000, DBL_MAX)).value() == infinity);
}

TEST_CASE("limbs of several ranks add as integers", "[exact_sum]") {
    const auto numbers = wild(10'000, -1074, 900, 5);
    const exact_sum whole = sum_of(numbers);
    for (std::size_t ranks = 1; ranks <= 7; ++ranks) {
        exact_sum total, by_object;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            exact_sum part;
            for (std::size_t i = rank; i < numbers.size(); i += ranks) part.add(numbers[i]);
            by_object.add(part);
            part.normalize();
            for (std::size_t i = 0; i < exact_sum::limbs; ++i) total.data()[i] += part.data()[i];
        }
        CHECK(total.value() == whole.value());
        CHECK(by_object.value() == whole.value());
        CHECK(limbs_of(total) == limbs_of(whole));
    }
}

TEST_CASE("limbs of 2^20 ranks have room", "[exact_sum]") {
    for (const double x : {-1.5, 1e300, least, -DBL_MAX / 0x1p21}) {
        exact_sum sum;
        sum.add(x);
        sum.add(x / 4);
        const double one = sum.value();
        sum.normalize();
        for (auto& limb : sum.data()) limb *= 1 << 20;
        sum.add(0.0);
        CHECK(sum.value() == one * 0x1p20);
    }
}

TEST_CASE("an exact sum adds to itself and clears", "[exact_sum]") {
    exact_sum sum;
    sum.add(-3);
    for (int i = 0; i < 60; ++i) sum.add(sum);
    CHECK(sum.value() == -3 * 0x1p60);
    sum.clear();
    CHECK(sum.value() == 0);
}
