// Sums without rounding until the end: the one right result by the definition of rounding to nearest even, in every order,
// every grouping and on every instruction set.
#include "tensor/exact_vector.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "core/exact_sum.hpp"
#include "support/instruction_sets.hpp"
#include "tensor/vector.hpp"

using zero::dtype;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using terms = std::vector<double>;  // of one element

template <typename T>
constexpr dtype type_of() {
    return sizeof(T) == 4 ? dtype::f32 : dtype::f64;
}

// The sign of 2 * (the sum of `all`) - a - b, where infinity stands for the power of two beyond the range of T.
template <typename T>
double twice_minus(const terms& all, double a, double b) {
    zero::exact_sum sum;
    for (const double x : all) {
        sum.add(x);
        sum.add(x);
    }
    for (const double x : {a, b}) {
        const double half = sizeof(T) == 4 ? 0x1p127 : 0x1p1023;
        if (std::isinf(x)) {
            sum.add(std::copysign(half, -x));
            sum.add(std::copysign(half, -x));
        } else {
            sum.add(-x);
        }
    }
    return sum.value();
}

template <typename T>
bool even(T x) {
    unsigned char low;
    std::memcpy(&low, &x, 1);
    return low % 2 == 0;
}

// Is x the sum, rounded to nearest, to even in a tie? Asked of the neighbours of x, not by rounding anything.
template <typename T>
bool is_nearest(T x, const terms& all) {
    constexpr T far = std::numeric_limits<T>::infinity();
    const double above = twice_minus<T>(all, x, x == far ? infinity : std::nextafter(x, far));
    const double below = twice_minus<T>(all, x, x == -far ? -infinity : std::nextafter(x, -far));
    const bool upwards = x == far || above < 0 || (above == 0 && even(x));
    return upwards && (x == -far || below > 0 || (below == 0 && even(x)));
}

template <typename T>
bool same(T a, T b) {
    return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0;
}

// Arrays of `type`, one per term; elements[i][k] is in array k.
struct sources {
    sources(const std::vector<terms>& elements, const std::vector<dtype>& of) : types(of) {
        for (std::size_t k = 0; k < types.size(); ++k) {
            terms one;
            for (const auto& element : elements) one.push_back(element[k]);
            arrays.emplace_back(one.size() * sizeof(double) + 1);
            zero::vector::convert(types[k], arrays.back().data(), dtype::f64, one.data(), static_cast<std::int64_t>(one.size()));
            starts.push_back(arrays.back().data());
        }
        count = static_cast<std::int64_t>(elements.size());
    }
    std::vector<dtype> types;
    std::vector<std::vector<std::byte>> arrays;
    std::vector<const void*> starts;
    std::int64_t count;
};

template <typename T>
std::vector<T> at_once(const sources& from) {
    std::vector<T> sums(static_cast<std::size_t>(from.count));
    zero::vector::order_free_sum(type_of<T>(), sums.data(), from.starts.data(), from.types.data(), static_cast<int>(from.types.size()), from.count);
    return sums;
}

// In groups of the given sizes, kept between; `further` becomes the number of vectors beyond two.
template <typename T>
std::vector<T> in_groups(const sources& from, const std::vector<std::size_t>& groups, std::size_t& further) {
    const auto count = static_cast<std::size_t>(from.count);
    std::vector<double> upper(count, 7), lower(count, 7);  // what was there before goes
    zero::exact_vector sum(upper.data(), lower.data(), from.count);
    std::vector<T> sums(count);
    for (int window = 0; window < 2; ++window) {  // the second begins anew
        std::size_t done = 0;
        for (const std::size_t size : groups) {
            // in two pieces, as tiles come
            for (const auto& [first, number] : {std::pair{std::int64_t{0}, from.count / 3}, {from.count / 3, from.count - from.count / 3}}) {
                std::vector<const void*> starts;
                for (std::size_t k = done; k < done + size; ++k)
                    starts.push_back(from.arrays[k].data() + first * zero::size_of(from.types[k]));
                sum.add(first, starts.data(), from.types.data() + done, static_cast<int>(size), number, done == 0);
            }
            done += size;
        }
        sum.round(type_of<T>(), sums.data(), 0, from.count);
    }
    further = static_cast<std::size_t>(sum.further_bytes()) / sizeof(double) / count;
    return sums;
}

std::vector<std::size_t> random_groups(std::size_t number, std::mt19937_64& random) {
    std::vector<std::size_t> groups;
    while (number > 0) {
        groups.push_back(1 + random() % number);
        number -= groups.back();
    }
    return groups;
}

// Terms of type T whose exponents lie up to `spread` apart, at a random place in the range; some are each other's opposite.
template <typename T>
terms random_terms(std::size_t number, int spread, std::mt19937_64& random) {
    const int least = sizeof(T) == 4 ? -149 : -1074, most = sizeof(T) == 4 ? 126 : 1022;
    const int width = std::min(spread, most - least);
    const int start = least + static_cast<int>(random() % static_cast<unsigned>(most - least - width + 1));
    std::uniform_real_distribution<double> fraction(-1, 1);
    terms all;
    for (std::size_t k = 0; k < number; ++k) {
        const int exponent = start + static_cast<int>(random() % static_cast<unsigned>(width + 1));
        const bool opposite = k > 0 && random() % 4 == 0;
        all.push_back(opposite ? -all[random() % k] : static_cast<double>(static_cast<T>(std::ldexp(fraction(random), exponent))));
    }
    std::shuffle(all.begin(), all.end(), random);
    return all;
}

template <typename T>
void check_random_sums() {
    std::mt19937_64 random(42);
    for (const int spread : {8, 60, 150, 3000}) {
        for (const std::size_t number : {1u, 2u, 3u, 8u, 24u}) {
            std::vector<terms> elements;
            for (int i = 0; i < 300; ++i) elements.push_back(random_terms<T>(number, spread, random));
            const std::vector<dtype> types(number, type_of<T>());
            const auto sums = at_once<T>(sources(elements, types));
            bool nearest = true, equal = true;
            for (std::size_t i = 0; i < sums.size(); ++i) nearest = nearest && is_nearest(sums[i], elements[i]);
            for (auto& element : elements) std::shuffle(element.begin(), element.end(), random);
            const sources shuffled(elements, types);
            std::size_t further = 0;
            const auto again = at_once<T>(shuffled), kept = in_groups<T>(shuffled, random_groups(number, random), further);
            for (std::size_t i = 0; i < sums.size(); ++i) equal = equal && same(sums[i], again[i]) && same(sums[i], kept[i]);
            INFO("spread " << spread << ", " << number << " terms, " << sizeof(T) << " bytes");
            CHECK(nearest);
            CHECK(equal);
            if (spread == 8) CHECK(further == 0);
            if (spread == 3000 && number == 24) CHECK(further > 0);
        }
    }
}

// All orders, all first groups.
template <typename T>
void check_permutations(terms all, T expected) {
    std::sort(all.begin(), all.end(), [](double a, double b) { return std::signbit(a) != std::signbit(b) ? std::signbit(a) : a < b; });
    do {
        const sources from({all}, std::vector<dtype>(all.size(), type_of<T>()));
        CAPTURE(all, expected, sizeof(T));
        REQUIRE(same(at_once<T>(from)[0], expected));
        for (std::size_t first = 1; first <= all.size(); ++first) {
            std::size_t further = 0;
            std::vector<std::size_t> groups{first};
            if (first < all.size()) groups.push_back(all.size() - first);
            REQUIRE(same(in_groups<T>(from, groups, further)[0], expected));
        }
    } while (std::next_permutation(all.begin(), all.end(), [](double a, double b) { return std::signbit(a) != std::signbit(b) ? std::signbit(a) : a < b; }));
}

}  // namespace

TEST_CASE("random terms of every magnitude: nearest, in any order and grouping") {
    for_each_instruction_set([](const char* which) {
        INFO(which);
        check_random_sums<float>();
        check_random_sums<double>();
    });
}

TEST_CASE("a sum that was not rounded is known from one that was, whichever term is larger") {
    for_each_instruction_set([](const char* which) {
        INFO(which);
        struct trial {
            double before, term;
            bool exact;
        };
        const std::vector<trial> trials{{1, 2, true},           {1, 0x1p-52, true},   {1, 0x1p-53, false},         {0x1p-53, 1, false},
                                        {1, -0x1p-53, true},    {1, -0x1p-54, false}, {-0x1p-54, 1, false},        {0, 0x1p-1074, true},
                                        {0x1p-1074, -1, false}, {-0.0, 0, true},      {-0.0, -0.0, true},          {0x1p1023, 0x1p1023, false},
                                        {3, infinity, false},   {infinity, 3, false}, {0x1p53 - 1, 0x1p53, false}, {0x1p53, -0x1p53, true}};
        for (const auto& one : trials) {
            for (std::size_t at = 0; at < 37; ++at) {  // in every lane, and in the rest
                terms sums(37, 1), from(37, 0.5);
                sums[at] = one.before;
                from[at] = one.term;
                CAPTURE(one.before, one.term, at);
                REQUIRE(zero::vector::add_unrounded(sums.data(), dtype::f64, from.data(), 37) == one.exact);
                if (one.exact) REQUIRE(same(sums[at], one.before + one.term));
                REQUIRE(sums[at == 0 ? 1 : 0] == 1.5);
            }
        }
    });
}

TEST_CASE("windows of terms near and far apart, in pieces that cut blocks, by two threads") {
    constexpr std::size_t number = 3, count = 700;
    const std::vector<std::int64_t> cuts{0, 100, 256, 300, 480, 700};  // the second thread begins at 300
    std::mt19937_64 random(5);
    std::vector<double> upper(count, 7), lower(count, 7);
    zero::exact_vector kept(upper.data(), lower.data(), count);
    std::size_t wrong = 0;
    for (int window = 0; window < 60; ++window) {
        std::vector<terms> elements(count, terms(number));
        for (std::size_t k = 0; k < number; ++k) {
            for (std::size_t piece = 0; piece + 1 < cuts.size(); ++piece) {
                const bool far = random() % 3 == 0;  // what one double does not hold
                for (auto i = static_cast<std::size_t>(cuts[piece]); i < static_cast<std::size_t>(cuts[piece + 1]); ++i)
                    elements[i][k] = static_cast<double>(random() % 1000) * (far ? 0x1p-60 : 1.0);
            }
        }
        const sources from(elements, std::vector<dtype>(number, dtype::f64));
        for (std::size_t k = 0; k < number; ++k) {
            const auto add = [&](std::size_t first, std::size_t last) {
                for (std::size_t piece = first; piece < last; ++piece) {
                    const void* start = from.arrays[k].data() + cuts[piece] * 8;
                    kept.add(cuts[piece], &start, from.types.data(), 1, cuts[piece + 1] - cuts[piece], k == 0);
                }
            };
            std::thread other([&] { add(3, cuts.size() - 1); });
            add(0, 3);
            other.join();
        }
        std::vector<double> sums(count);
        kept.round(dtype::f64, sums.data(), 0, 333);  // cuts a block, too
        kept.round(dtype::f64, sums.data() + 333, 333, count - 333);
        const auto expected = at_once<double>(from);
        for (std::size_t i = 0; i < count; ++i) wrong += !same(sums[i], expected[i]);
    }
    CHECK(wrong == 0);
    CHECK(kept.further_bytes() == 0);
}

TEST_CASE("cancellation, ties, subnormals and zeros in every order") {
    for_each_instruction_set([](const char* which) {
        INFO(which);
        check_permutations<float>({1e30f, 1, -1e30f}, 1);
        check_permutations<float>({1, 0x1p-24, 0x1p-140}, 1 + 0x1p-23f);       // just above a tie, beyond double
        check_permutations<float>({1, 0x1p-24, -0x1p-140}, 1);                 // just below it
        check_permutations<float>({1 + 0x1p-23, 0x1p-24, -0x1p-140, 0x1p-149}, 1 + 0x1p-23f);
        check_permutations<float>({1, 0x1p-24, 0x1p-60, -0x1p-60}, 1);         // the tie itself, to even
        check_permutations<float>({0x1p-149, 0x1p-149, -0x1p-148, 0x1p-149}, 0x1p-149f);
        check_permutations<float>({0x1p127, 0x1p127, -0x1p127}, 0x1p127f);     // beyond the range on the way
        check_permutations<float>({0x1p127, 0x1p127, 1}, std::numeric_limits<float>::infinity());
        check_permutations<double>({1, 0x1p-53, 0x1p-200}, 1 + 0x1p-52);
        check_permutations<double>({1, 0x1p-53, -0x1p-1000, 0x1p-1074}, 1);
        check_permutations<double>({0x1p1023, 0x1p1023, -0x1p1023, 0x1p-1074}, 0x1p1023);
        check_permutations<double>({0x1p1023, 0x1p1023, 0x1p-1074}, infinity);
        check_permutations<double>({1e300, 1, -1e300, 0x1p-60}, 1 + 0x1p-60);
        check_permutations<double>({1e300, 0x1p-1074, -1e300}, 0x1p-1074);
        for (const std::size_t number : {1u, 2u, 3u, 5u}) {
            terms zeros(number, -0.0);
            check_permutations<float>(zeros, -0.0f);
            check_permutations<double>(zeros, -0.0);
            zeros[0] = 0;
            check_permutations<double>(zeros, 0.0);
        }
        check_permutations<double>({1, -0.0, -1}, 0.0);
    });
}

TEST_CASE("infinities and NaN stay what they are in any order") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double large : {1.0, 0x1p127}) {
        check_permutations<float>({infinity, large, -large, 3}, std::numeric_limits<float>::infinity());
        check_permutations<double>({-infinity, large, 1e-300}, -infinity);
        check_permutations<double>({infinity, large, -infinity}, nan);
    }
    check_permutations<double>({0x1p1023, 0x1p1023, -infinity}, -infinity);
    for (std::size_t at = 0; at < 4; ++at) {  // NaN has no order for std::next_permutation
        terms all{1, 0x1p-200, -1, 5};
        all[at] = nan;
        std::size_t further = 0;
        const sources from({all}, std::vector<dtype>(4, dtype::f64));
        CHECK(std::isnan(at_once<double>(from)[0]));
        CHECK(std::isnan(in_groups<double>(from, {1, 2, 1}, further)[0]));
    }
}

TEST_CASE("sources of several types, and a target that is one of them") {
    std::mt19937_64 random(7);
    const std::vector<dtype> types{dtype::bf16, dtype::f32, dtype::f16, dtype::bf16, dtype::f32};
    std::vector<terms> elements;
    for (int i = 0; i < 700; ++i) {
        terms one = random_terms<float>(types.size(), 20, random);
        for (std::size_t k = 0; k < one.size(); ++k) {
            std::byte narrow[8];
            one[k] = std::ldexp(one[k], -std::ilogb(one[0] == 0 ? 1 : one[0]));  // where f16 has something
            zero::vector::convert(types[k], narrow, dtype::f64, &one[k], 1);
            zero::vector::convert(dtype::f64, &one[k], types[k], narrow, 1);
        }
        if (std::any_of(one.begin(), one.end(), [](double x) { return !std::isfinite(x); })) one.assign(one.size(), 1);
        elements.push_back(one);
    }
    sources from(elements, types);
    std::size_t further = 0;
    const auto sums = at_once<float>(from), kept = in_groups<float>(from, {2, 3}, further);
    for (std::size_t i = 0; i < sums.size(); ++i) REQUIRE((is_nearest(sums[i], elements[i]) && same(sums[i], kept[i])));
    auto* target = reinterpret_cast<float*>(from.arrays[4].data());
    zero::vector::order_free_sum(dtype::f32, target, from.starts.data(), types.data(), 5, from.count);
    for (std::size_t i = 0; i < sums.size(); ++i) REQUIRE(same(sums[i], target[i]));
}
