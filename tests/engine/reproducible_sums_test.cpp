// libzero.reproducible where sums are delicate: cancellation, subnormals, signed zeros, what is not finite or only on the way,
// scaled losses, micro-gradients that are missing. On any number of ranks the bits are those of one rank, and where a sum is known,
// it is that one. Not here: what else may be set (reproducible_test.cpp).
#include "reproducible.hpp"

#include <array>
#include <cstring>

using namespace engine_test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::array types{dtype::f32, dtype::f64, dtype::bf16, dtype::f16};

// What the micro-gradients of an element add up to exactly, and its terms; between them others are zero.
struct known_sum {
    double sum;
    std::vector<double> terms;
};

std::vector<known_sum> known_sums(dtype type) {
    const auto cancelled = [](double large, double small) { return known_sum{small, {large, small, -large}}; };
    const auto through_infinity = [](double large, double small) { return known_sum{small, {large, large, small, -large, -large}}; };
    const known_sum least{0x1p-24, {0x1p-24, 0x1p-24, -0x1p-24}}, zero{0.0, {-0.0, 0.5, -0.5}};
    if (type == dtype::f16) return {cancelled(60000, 0x1p-24), cancelled(0.5, 0x1p-14), least, zero};
    if (type == dtype::bf16)
        return {cancelled(1e30, 1), cancelled(0x1p127, 0x1p-133), cancelled(0x1p-126, 0x1p-133), through_infinity(0x1p127, 1), least, zero};
    if (type == dtype::f32)
        return {cancelled(1e30, 1), cancelled(0x1p127, 0x1p-149), cancelled(0x1p-126, 0x1p-149), through_infinity(0x1p127, 0x1p-149), least,
                zero, {0x1.000002p0, {1, 0x1p-24, 0x1p-149}}, {1, {1, 0x1p-24, -0x1p-149}}};
    return {cancelled(1e30, 1), cancelled(1e300, 0x1p-1074), cancelled(0x1p-1022, 0x1p-1074), through_infinity(0x1p1023, 0x1p-1074), least, zero,
            {1 + 0x1p-52, {1, 0x1p-53, 0x1p-1074}}, {1, {1, 0x1p-53, -0x1p-1074}}};
}

// Where the terms lie among the micro-gradients, and so among the ranks, differs from element to element.
double term_of(const known_sum& one, int micro_gradients, int micro, std::int64_t i) {
    const auto place = static_cast<std::size_t>((micro * 5 + static_cast<int>(i)) % micro_gradients);
    return place < one.terms.size() ? one.terms[place] : 0.0;
}

// One update, of a sum of that many micro-gradients.
run one_sum_of(dtype type, int micro_gradients) {
    run r;
    r.type = type;
    r.updates = 1;
    r.factor = 1;
    r.micro_gradients = micro_gradients;
    r.more_libzero = R"(, "gradient_reduction": "sum")";
    return r;
}

// All tensors' gradients after training, with sums and no mean.
std::vector<double> gradients_after(run r) {
    r.vectors = {"gradient"};
    const auto bits = train(MPI_COMM_WORLD, r);
    std::vector<double> all;
    std::size_t at = sizeof(double);
    for (const auto& shape : shapes()) {
        const std::int64_t n = count_of(shape);
        std::vector<double> sums(static_cast<std::size_t>(n));
        at += static_cast<std::size_t>(n * zero::size_of(r.type));  // the values
        const auto bytes = static_cast<std::size_t>(n * zero::size_of(zero::sum_type(r.type)));
        std::vector<double> aligned(bytes / sizeof(double) + 1);
        std::memcpy(aligned.data(), bits.data() + at, bytes);
        zero::vector::convert(dtype::f64, sums.data(), zero::sum_type(r.type), aligned.data(), n);
        at += bytes;
        all.insert(all.end(), sums.begin(), sums.end());
    }
    return all;
}

}  // namespace

TEST_CASE("reproducible: cancellation, ties, subnormals and ranges give the one right sum, wherever the terms lie") {
    for (const dtype type : types) {
        const auto known = known_sums(type);
        for (const int micro_gradients : {24, 7 * size()}) {
            run r = one_sum_of(type, micro_gradients);
            r.element = [&](int, int micro, std::size_t, std::int64_t i) {
                return term_of(known[static_cast<std::size_t>(i) % known.size()], micro_gradients, micro, i);
            };
            const auto expected = expected_of(r);
            for (const int stage : {0, 1, 2, 3}) {
                r.stage = stage;
                INFO("stage " << stage << " " << name(type) << " of " << micro_gradients);
                CHECK(train(MPI_COMM_WORLD, r) == expected);
                const auto found = gradients_after(r);
                std::size_t at = 0, wrong = 0;
                for (const auto& shape : shapes())
                    for (std::int64_t i = 0; i < count_of(shape); ++i, ++at)
                        wrong += found[at] != known[static_cast<std::size_t>(i) % known.size()].sum || std::signbit(found[at]);
                CHECK(wrong == 0);
            }
        }
    }
}

TEST_CASE("reproducible: a sum of zeros is negative where all of them are") {
    for (const dtype type : types) {
        for (const int micro_gradients : {24, size()}) {
            run r = one_sum_of(type, micro_gradients);
            r.element = [&](int, int micro, std::size_t, std::int64_t i) { return i % 3 == 1 && micro == static_cast<int>(i) % micro_gradients ? 0.0 : -0.0; };
            for (const int stage : {0, 1, 2, 3}) {
                r.stage = stage;
                INFO("stage " << stage << " " << name(type) << " of " << micro_gradients);
                const auto found = gradients_after(r);
                std::size_t at = 0, wrong = 0;
                for (const auto& shape : shapes())
                    for (std::int64_t i = 0; i < count_of(shape); ++i, ++at) wrong += found[at] != 0 || std::signbit(found[at]) == (i % 3 == 1);
                CHECK(wrong == 0);
            }
        }
    }
}

TEST_CASE("reproducible: what is not finite is skipped everywhere, and leaves nothing behind") {
    const double most_f32 = std::numeric_limits<float>::max(), most_f64 = std::numeric_limits<double>::max();
    struct poison {
        double first, last;  // of the first and the last micro-gradient of one update
    };
    for (const dtype type : types) {
        const double most = type == dtype::f64 ? most_f64 : type == dtype::bf16 ? 0x1.fep127 : type == dtype::f32 ? most_f32 : infinity;
        for (const auto& [first, last] : {poison{0, infinity}, {std::nan(""), 1}, {infinity, -infinity}, {most, most}}) {
            run r;
            r.type = type;
            r.skipped = 1;
            r.factor = 1;
            r.element = [&, type, first = first, last = last](int update, int micro, std::size_t tensor, std::int64_t i) {
                const bool here = update == 0 && i == 5 && tensor == 3;
                return here && micro == 0 ? first : here && micro == 23 ? last : wide_gradient(type, update, micro, tensor, i);
            };
            const auto expected = expected_of(r);
            for (const int stage : {0, 1, 2, 3}) {
                r.stage = stage;
                r.library_owned = stage == 2;
                INFO("stage " << stage << " " << name(type) << " " << first << " " << last);
                CHECK(train(MPI_COMM_WORLD, r) == expected);
            }
        }
    }
}

TEST_CASE("reproducible with a loss scale that falls and grows") {
    run r;
    r.type = dtype::f16;
    r.updates = 5;
    r.skipped = 1;
    r.fp16 = R"({"enabled": true, "initial_scale_power": 5, "loss_scale_window": 1, "hysteresis": 1})";
    r.element = [](int update, int micro, std::size_t tensor, std::int64_t i) {
        return update == 1 && micro == 11 && i == 2 ? infinity : wide_gradient(dtype::f16, update, micro, tensor, i);
    };
    const auto expected = expected_of(r);
    for (const int stage : {0, 1, 2, 3}) {
        r.stage = stage;
        r.overlap = stage > 1;
        INFO("stage " << stage);
        CHECK(train(MPI_COMM_WORLD, r) == expected);
    }
}

TEST_CASE("reproducible: ranks hand over different tensors, and some nobody does") {
    run r;
    r.handed = [](int micro, std::size_t tensor) { return tensor != 3 && (micro * 5 + static_cast<int>(tensor) * 3) % 4 != 0; };
    r.bucket = 500'000'000;  // one bucket: no rank waits for another in a hand-over
    for (const dtype type : {dtype::f32, dtype::bf16}) {
        r.type = type;
        const auto expected = expected_of(r);
        for (const int stage : {0, 1, 2, 3}) {
            r.stage = stage;
            INFO("stage " << stage << " " << name(type));
            CHECK(train(MPI_COMM_WORLD, r) == expected);
        }
    }
}
