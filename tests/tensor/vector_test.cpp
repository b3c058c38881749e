// Accumulation, ordered sums, norms and dot products on every instruction set, against plain loops written here.
#include "tensor/vector.hpp"

#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "support/instruction_sets.hpp"

using zero::dtype;
using zero::exact_sum;
using bytes = std::vector<unsigned char>;

namespace {

constexpr dtype all_types[] = {dtype::f32, dtype::f64, dtype::bf16, dtype::f16};
constexpr std::int64_t counts[] = {0, 1, 7, 16, 33, 1000, 5003};

// Random elements of a type, with a few special ones.
bytes elements(dtype type, std::int64_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, 2);
    std::vector<double> values(static_cast<std::size_t>(count));
    for (auto& x : values) x = normal(random);
    const double special[] = {0.0, -0.0, 1e-42, 6e-8, 60000, -3e38};
    for (std::size_t i = 0; i < values.size(); i += 11) values[i] = special[(i / 11) % 6];
    bytes data(static_cast<std::size_t>(count * zero::size_of(type)));
    zero::vector::convert(type, data.data(), dtype::f64, values.data(), count);
    return data;
}

std::vector<double> doubles(dtype type, const bytes& data) {
    std::vector<double> values(data.size() / static_cast<std::size_t>(zero::size_of(type)));
    zero::vector::convert(dtype::f64, values.data(), type, data.data(), static_cast<std::int64_t>(values.size()));
    return values;
}

template <typename T>
std::vector<T> as(const bytes& data) {
    std::vector<T> values(data.size() / sizeof(T));
    if (!data.empty()) std::memcpy(values.data(), data.data(), data.size());
    return values;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) && std::isnan(b[i])) continue;
        if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
    }
    return true;
}

template <typename T>
T product(double factor, double element) {
    return factor == 1 ? static_cast<T>(element) : static_cast<T>(element * factor);
}

template <typename T>
void check_accumulate(dtype sum_type) {
    for (const dtype from : all_types) {
        for (const std::int64_t count : counts) {
            const bytes source = elements(from, count, 1), start = elements(sum_type, count, 2);
            const auto x = doubles(from, source);
            for (const double factor : {1.0, 0.5, 0.3, -3.0}) {
                for (const bool assign : {true, false}) {
                    auto expected = as<T>(start);
                    for (std::size_t i = 0; i < x.size(); ++i) {
                        const T term = product<T>(factor, x[i]);
                        expected[i] = assign ? term : static_cast<T>(expected[i] + term);
                    }
                    auto sum = as<T>(start);
                    zero::vector::accumulate(sum_type, sum.data(), from, source.data(), factor, count, assign);
                    INFO(zero::name(sum_type)
                         << " from " << zero::name(from) << " factor " << factor << " count " << count);
                    REQUIRE(same_bits(sum, expected));
                }
            }
        }
    }
}

// kind 0: all of the sum type; 1: mixed; 2: all bf16.
dtype source_type(dtype sum_type, int kind, int rank) {
    if (kind == 0) return sum_type;
    return kind == 1 ? all_types[(rank * 3 + 1) % 4] : dtype::bf16;
}

template <typename T>
void check_ordered_sum(dtype sum_type, int ranks, int kind, bool add, bool target_is_source, std::int64_t count) {
    std::vector<bytes> data;
    std::vector<dtype> types;
    for (int k = 0; k < ranks; ++k) {
        types.push_back(source_type(sum_type, kind, k));
        data.push_back(elements(types.back(), count, static_cast<unsigned>(10 + k)));
    }
    bytes apart = elements(sum_type, count, 5);
    bytes& target = target_is_source ? data[static_cast<std::size_t>(ranks / 2)] : apart;
    const auto before = as<T>(target);
    std::vector<T> expected(static_cast<std::size_t>(count));
    std::vector<const void*> sources;
    for (std::size_t k = 0; k < data.size(); ++k) {
        const auto x = doubles(types[k], data[k]);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const T term = static_cast<T>(x[i]);
            expected[i] = k == 0 ? term : static_cast<T>(expected[i] + term);
        }
        sources.push_back(data[k].data());
    }
    for (std::size_t i = 0; add && i < expected.size(); ++i) expected[i] = before[i] + expected[i];
    zero::vector::ordered_sum(sum_type, target.data(), add, sources.data(), types.data(), ranks, count);
    INFO(zero::name(sum_type) << " ranks " << ranks << " kind " << kind << " add " << add << " aliased "
                              << target_is_source << " count " << count);
    REQUIRE(same_bits(as<T>(target), expected));
}

// The atoms by definition: (k, k+8) for floats, then (k, k+4), (k, k+2), (k, k+1), in double.
template <typename T>
exact_sum products_by_definition(const std::vector<T>& a, const std::vector<T>& b) {
    constexpr std::size_t size = 64 / sizeof(T);
    exact_sum sum;
    for (std::size_t first = 0; first < a.size(); first += size) {
        double term[16] = {};
        for (std::size_t i = 0; i < size && first + i < a.size(); ++i) {
            term[i] = static_cast<double>(a[first + i]) * static_cast<double>(b[first + i]);
        }
        for (std::size_t width = size / 2; width > 0; width /= 2) {
            for (std::size_t k = 0; k < width; ++k) term[k] += term[k + width];
        }
        sum.add(term[0]);
    }
    return sum;
}

std::vector<std::int64_t> limbs(exact_sum sum) {
    sum.normalize();
    return {sum.data().begin(), sum.data().end()};
}

template <typename T>
std::vector<T> spread(std::size_t count, int low, int high, unsigned seed) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<int> exponent(low, high);
    std::uniform_real_distribution<double> fraction(-2, 2);
    std::vector<T> values(count);
    for (auto& x : values) x = static_cast<T>(std::ldexp(fraction(random), exponent(random)));
    return values;
}

template <typename T>
void check_norm(dtype type, int low, int high) {
    for (const std::size_t count : {0u, 1u, 15u, 16u, 17u, 127u, 8192u, 8193u, 30011u}) {
        const auto values = spread<T>(count, low, high, static_cast<unsigned>(count));
        const auto others = spread<T>(count, low, high, static_cast<unsigned>(count) + 1);
        const auto size = static_cast<std::int64_t>(count);
        INFO(zero::name(type) << " count " << count << " exponents " << low << " to " << high);
        for (const double divisor : {1.0, 4.0, 3.0, 0.1}) {
            auto data = values;
            auto divided = values;
            for (auto& x : divided) {
                if (divisor != 1) x = static_cast<T>(static_cast<double>(x) / divisor);
            }
            exact_sum squares;
            REQUIRE(zero::vector::divide_and_norm(type, data.data(), divisor, size, squares));
            REQUIRE(same_bits(data, divided));
            REQUIRE(limbs(squares) == limbs(products_by_definition(divided, divided)));
            data = values;
            zero::vector::divide(type, data.data(), divisor, size);
            REQUIRE(same_bits(data, divided));
        }
        exact_sum products;
        REQUIRE(zero::vector::dot(type, values.data(), others.data(), size, products));
        REQUIRE(limbs(products) == limbs(products_by_definition(values, others)));
    }
}

template <typename T>
void check_cuts(dtype type) {
    const auto whole = spread<T>(100'003, -60, 60, 4);
    const auto other = spread<T>(whole.size(), -60, 60, 5);
    const std::int64_t count = static_cast<std::int64_t>(whole.size()), atom = zero::vector::atom(type);
    exact_sum once, once_dot;
    auto data = whole;
    zero::vector::divide_and_norm(type, data.data(), 8, count, once);
    zero::vector::dot(type, whole.data(), other.data(), count, once_dot);
    std::mt19937 random(1);
    for (int round = 0; round < 10; ++round) {
        std::uniform_int_distribution<std::int64_t> length(1, round < 5 ? 40 : 2000);
        exact_sum cut, cut_dot;
        data = whole;
        for (std::int64_t first = 0; first < count;) {
            const std::int64_t part = std::min(length(random) * atom, count - first);
            REQUIRE(zero::vector::divide_and_norm(type, data.data() + first, 8, part, cut));
            REQUIRE(zero::vector::dot(type, whole.data() + first, other.data() + first, part, cut_dot));
            first += part;
        }
        REQUIRE(limbs(cut) == limbs(once));
        REQUIRE(limbs(cut_dot) == limbs(once_dot));
    }
}

// Blocks that every way through the exact sum must take: one exponent here, another there, zeros of both signs, the
// least numbers beside large ones. A block is 512 atoms, so the counts end inside one.
template <typename T>
void check_mixed_blocks(dtype type, int least, int low, int high) {
    constexpr std::size_t atom = 64 / sizeof(T), block = 512 * atom;
    std::vector<T> a = spread<T>(4 * block + 3 * atom + 5, -12, -8, 21), b = spread<T>(a.size(), -3, 0, 22);
    const auto wide = spread<T>(block, low, high, 23);
    std::fill_n(a.begin(), block, T(0));  // zeros; their products are minus zero
    std::fill_n(b.begin(), block, T(-1));
    for (std::size_t i = 0; i < block; i += 7) a[block + i] = wide[i];     // a few far apart
    for (std::size_t i = 0; i < block; ++i) a[2 * block + i] = static_cast<T>(std::ldexp(i % 3 == 0 ? 3.0 : 0.0, least));
    a[2 * block + 100] = T(1);                                             // one beside the least numbers
    for (std::size_t i = 0; i < block; ++i) b[2 * block + i] = static_cast<T>(std::ldexp(-5.0, least));
    b[2 * block + 300] = T(2);
    a[3 * block] = static_cast<T>(std::ldexp(1.0, high));
    const auto check = [&](std::size_t first, std::size_t size) {
        const std::vector<T> left(a.begin() + static_cast<std::ptrdiff_t>(first), a.begin() + static_cast<std::ptrdiff_t>(first + size));
        const std::vector<T> right(b.begin() + static_cast<std::ptrdiff_t>(first), b.begin() + static_cast<std::ptrdiff_t>(first + size));
        auto data = left;
        exact_sum squares, products;
        INFO(zero::name(type) << " from " << first << ", " << size << " elements");
        REQUIRE(zero::vector::divide_and_norm(type, data.data(), 1, static_cast<std::int64_t>(size), squares));
        REQUIRE(limbs(squares) == limbs(products_by_definition(left, left)));
        REQUIRE(zero::vector::dot(type, left.data(), right.data(), static_cast<std::int64_t>(size), products));
        REQUIRE(limbs(products) == limbs(products_by_definition(left, right)));
    };
    check(0, a.size());
    for (std::size_t k = 0; k < 4; ++k) check(k * block, block);
    for (std::size_t k = 0; k < 4; ++k) check(k * block, block - atom - 3);
}

// The same magnitude in every element, the largest of its binade: sums of a block are as large as they become.
template <typename T>
void check_full_blocks(dtype type) {
    for (const int exponent : {-40, 0, 40}) {
        const T most = static_cast<T>(std::ldexp(2.0 - std::ldexp(1.0, sizeof(T) == 4 ? -23 : -52), exponent));
        const std::vector<T> a(3 * 512 * (64 / sizeof(T)), most), b(a.size(), -most);
        auto data = a;
        exact_sum squares, products;
        const auto size = static_cast<std::int64_t>(a.size());
        REQUIRE(zero::vector::divide_and_norm(type, data.data(), 1, size, squares));
        REQUIRE(zero::vector::dot(type, a.data(), b.data(), size, products));
        REQUIRE(limbs(squares) == limbs(products_by_definition(a, a)));
        REQUIRE(limbs(products) == limbs(products_by_definition(a, b)));
    }
}

template <typename T>
void check_not_finite(dtype type) {
    for (const T bad : {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::quiet_NaN()}) {
        for (std::size_t at = 0; at < 133; ++at) {
            std::vector<T> data(133, T(2)), ones(133, T(1));
            data[at] = bad;
            exact_sum squares, products;
            REQUIRE_FALSE(zero::vector::dot(type, data.data(), ones.data(), 133, products));
            REQUIRE_FALSE(zero::vector::divide_and_norm(type, data.data(), 2, 133, squares));
            REQUIRE(data[(at + 1) % 133] == 1);  // the pass is finished all the same
        }
    }
}

}  // namespace

TEST_CASE("accumulate rounds product and sum one after the other", "[vector]") {
    for_each_instruction_set([](const char* set) {
        INFO(set);
        check_accumulate<float>(dtype::f32);
        check_accumulate<double>(dtype::f64);
    });
}

TEST_CASE("ordered sums keep the order of ranks", "[vector]") {
    for_each_instruction_set([](const char* set) {
        INFO(set);
        for (int ranks : {1, 2, 3, 4, 5, 9}) {
            for (int kind = 0; kind < 3; ++kind) {
                for (const bool add : {false, true}) {
                    for (const std::int64_t count : {0, 1, 31, 1024, 2500}) {
                        check_ordered_sum<float>(dtype::f32, ranks, kind, add, false, count);
                        check_ordered_sum<double>(dtype::f64, ranks, kind, add, false, count);
                        if (kind == 0) check_ordered_sum<float>(dtype::f32, ranks, kind, add, true, count);
                        if (kind == 0) check_ordered_sum<double>(dtype::f64, ranks, kind, add, true, count);
                    }
                }
            }
        }
    });
}

TEST_CASE("squares and dot products are sums of atoms, exactly, and division rounds once", "[vector]") {
    for_each_instruction_set([](const char* set) {
        INFO(set);
        check_norm<float>(dtype::f32, -10, 2);
        check_norm<float>(dtype::f32, -120, 120);
        check_norm<double>(dtype::f64, -10, 2);
        check_norm<double>(dtype::f64, -300, 300);
        check_norm<double>(dtype::f64, -505, 505);  // squares from 2^-1010 to 2^1010: beyond the fast path at both ends
    });
}

TEST_CASE("blocks of mixed magnitudes lose nothing on their way into the exact sum", "[vector]") {
    for_each_instruction_set([](const char* set) {
        INFO(set);
        check_mixed_blocks<float>(dtype::f32, -149, -140, 120);
        check_mixed_blocks<double>(dtype::f64, -537, -500, 500);  // squares and products below the normal numbers
        // squares of 2^-1060: nothing in the upper half of the double, and yet not zero
        exact_sum least;
        std::vector<double> tiny(24, 0x1p-530);
        REQUIRE(zero::vector::divide_and_norm(dtype::f64, tiny.data(), 1, 24, least));
        REQUIRE(limbs(least) == limbs(products_by_definition(tiny, tiny)));
        REQUIRE(least.value() == 24 * 0x1p-1060);
        check_full_blocks<float>(dtype::f32);
        check_full_blocks<double>(dtype::f64);
    });
}

TEST_CASE("any cut at atom borders gives the same norm", "[vector]") {
    for_each_instruction_set([](const char* set) {
        INFO(set);
        check_cuts<float>(dtype::f32);
        check_cuts<double>(dtype::f64);
    });
}

TEST_CASE("an element that is not finite is found wherever it stands", "[vector]") {
    for_each_instruction_set([](const char* set) {
        INFO(set);
        check_not_finite<float>(dtype::f32);
        check_not_finite<double>(dtype::f64);
    });
}

TEST_CASE("B02: squares are taken wide", "[vector][B02]") {
    const auto norm = [](double value, std::int64_t count) {
        std::vector<double> wide(static_cast<std::size_t>(count), value);
        std::vector<std::uint16_t> half(wide.size());
        std::vector<float> sum(wide.size());
        zero::vector::convert(dtype::f16, half.data(), dtype::f64, wide.data(), count);
        zero::vector::accumulate(dtype::f32, sum.data(), dtype::f16, half.data(), 1, count, true);
        exact_sum squares;
        REQUIRE(zero::vector::divide_and_norm(dtype::f32, sum.data(), 1, count, squares));
        return std::sqrt(squares.value());
    };
    CHECK(norm(300, 4) == 600);
    CHECK(norm(1e-4, 10'000) == Approx(1.0001659393e-2).epsilon(1e-9));
}

TEST_CASE("norms at the ends of the range", "[vector]") {
    exact_sum squares;
    std::vector<float> huge(64, FLT_MAX), tiny(64, std::numeric_limits<float>::denorm_min());
    CHECK(zero::vector::divide_and_norm(dtype::f32, huge.data(), 1, 64, squares));
    CHECK(std::sqrt(squares.value()) == 8 * static_cast<double>(FLT_MAX));
    squares.clear();
    CHECK(zero::vector::divide_and_norm(dtype::f32, tiny.data(), 1, 64, squares));
    CHECK(std::sqrt(squares.value()) == 8 * 0x1p-149);
    squares.clear();
    std::vector<double> beyond(64, 1e200);  // finite elements: no overflow of the gradient, a norm beyond the range
    CHECK(zero::vector::divide_and_norm(dtype::f64, beyond.data(), 1, 64, squares));
    CHECK(std::isinf(squares.value()));
    squares.clear();
    std::vector<double> edge(8, std::sqrt(DBL_MAX) * 0.99);  // each square finite, their sum not
    CHECK(zero::vector::divide_and_norm(dtype::f64, edge.data(), 1, 8, squares));
    CHECK(std::isinf(squares.value()));
}

TEST_CASE("a divisor far from one divides subnormals and huge values rightly", "[vector]") {
    const double divisor = 0x1p100;
    std::vector<float> data = {FLT_MAX, FLT_MIN, 0x1.8p-40f, -1.0f};
    exact_sum squares;
    zero::vector::divide_and_norm(dtype::f32, data.data(), divisor, 4, squares);
    CHECK(data[0] == static_cast<float>(static_cast<double>(FLT_MAX) / divisor));
    CHECK(data[1] == 0);
    CHECK(data[2] == 0x1.8p-140f);
    CHECK(data[3] == -0x1p-100f);
}

TEST_CASE("types without arithmetic are refused", "[vector]") {
    float x = 0;
    exact_sum sum;
    CHECK_THROWS(zero::vector::convert(dtype::i32, &x, dtype::f32, &x, 1));
    CHECK_THROWS(zero::vector::divide_and_norm(dtype::bf16, &x, 1, 1, sum));
}
