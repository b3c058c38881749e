// Every optimizer against the serial fp64 reference over ten steps, equal bits on every instruction set, and the parts
// of the fused pass: clip, limits, 16-bit copy.
#include "optimizer/optimizer.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "held.hpp"
#include "reference.hpp"
#include "support/instruction_sets.hpp"
#include "tensor/vector.hpp"

using zero::dtype;
using zero::optimizer::hyper;
using zero::optimizer::kind;

namespace {

struct setting {
    std::string name;
    kind which;
    hyper numbers;
};

std::vector<setting> settings() {
    hyper plain;
    plain.lr = 0.01;
    hyper decayed = plain;
    decayed.weight_decay = 0.1;
    hyper coupled = decayed;
    coupled.decoupled = false;
    hyper uncorrected = plain;
    uncorrected.bias_correction = false;
    hyper momentum = decayed;
    momentum.momentum = 0.9;
    hyper nesterov = momentum;
    nesterov.nesterov = true;
    hyper limited = decayed;
    limited.lower = -1.5;
    limited.upper = 1.5;
    return {{"Adam", kind::adam, plain},
            {"AdamW", kind::adam, decayed},
            {"Adam with L2", kind::adam, coupled},
            {"Adam uncorrected", kind::adam, uncorrected},
            {"AdamW limited", kind::adam, limited},
            {"SGD", kind::sgd, plain},
            {"SGD decayed", kind::sgd, decayed},
            {"SGD momentum", kind::sgd, momentum},
            {"SGD Nesterov", kind::sgd, nesterov},
            {"Lion", kind::lion, plain},
            {"Lion decayed", kind::lion, decayed},
            {"Adagrad", kind::adagrad, plain},
            {"Adagrad decayed", kind::adagrad, decayed},
            {"LAMB", kind::lamb, plain},
            {"LAMB decayed", kind::lamb, decayed}};
}

// Magnitudes from 0.5 to 2, either sign, exact in float.
std::vector<double> numbers(std::size_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<float> magnitude(0.5f, 2);
    std::vector<double> values(count);
    for (auto& x : values) x = static_cast<double>(random() % 2 ? magnitude(random) : -magnitude(random));
    return values;
}

template <typename T>
void check_against_reference(const setting& how, double tolerance) {
    const std::size_t count = 203;
    const auto start = numbers(count, 1);
    held<T> model(start);
    reference right(how.which, how.numbers, start);
    const double clip = 0.75;
    for (int step = 1; step <= 10; ++step) {
        const auto g = numbers(count, static_cast<unsigned>(100 + step));
        model.step(how.which, how.numbers, clip, step, std::vector<T>(g.begin(), g.end()));
        right.step(g, clip);
    }
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i) {
        worst = std::max(worst, std::fabs(static_cast<double>(model.value[i]) - right.p[i]) / std::fabs(right.p[i]));
    }
    INFO(how.name << " of " << sizeof(T) << " bytes");
    CHECK(worst <= tolerance);
    CHECK(std::isfinite(worst));
}

// Values from everywhere: all magnitudes, subnormals, zeros, infinities, NaN.
template <typename T>
std::vector<T> wild(std::size_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<int> exponent(sizeof(T) == 8 ? -1074 : -149, sizeof(T) == 8 ? 1020 : 125);
    std::uniform_real_distribution<double> fraction(-2, 2);
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<T>(i % 3 ? fraction(random) : std::ldexp(fraction(random), exponent(random)));
    const T infinite = std::numeric_limits<T>::infinity();
    const T special[] = {
        T(0), -T(0), infinite, -infinite, std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::denorm_min()};
    for (std::size_t i = seed % 7; i < count; i += 29) values[i] = special[(i / 29) % 6];
    return values;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] != a[i] && b[i] != b[i]) continue;
        if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
    }
    return a.size() == b.size();
}

template <typename T>
void check_instruction_sets(const setting& how, dtype type) {
    const auto wild_start = wild<T>(1003, 1);
    std::vector<held<T>> results;
    for_each_instruction_set([&](const char*) {
        held<T> model(std::vector<double>(wild_start.begin(), wild_start.end()));
        model.type = type;
        for (int step = 1; step <= 4; ++step)
            model.step(how.which, how.numbers, 0.9, step, wild<T>(1003, static_cast<unsigned>(50 + step)));
        results.push_back(model);
    });
    INFO(how.name << " of " << zero::name(type));
    for (const auto& other : results) {
        CHECK(same_bits(other.value, results[0].value));
        CHECK(same_bits(other.first, results[0].first));
        CHECK(same_bits(other.second, results[0].second));
        CHECK(other.copy == results[0].copy);
    }
}

}  // namespace

TEST_CASE("ten steps equal the serial fp64 reference", "[optimizer]") {
    for_each_instruction_set([](const char* set) {
        INFO(set);
        for (const auto& how : settings()) {
            check_against_reference<float>(how, 1e-6);
            check_against_reference<double>(how, 1e-12);
        }
    });
}

TEST_CASE("every instruction set gives the same bits, special values included", "[optimizer]") {
    for (const auto& how : settings()) {
        check_instruction_sets<float>(how, dtype::f32);
        check_instruction_sets<double>(how, dtype::f64);
        check_instruction_sets<float>(how, dtype::bf16);
        check_instruction_sets<float>(how, dtype::f16);
    }
}

TEST_CASE("the 16-bit copy is the new master, rounded", "[optimizer]") {
    for (const dtype type : {dtype::bf16, dtype::f16}) {
        for (const auto& how : settings()) {
            held<float> plain(numbers(77, 3)), copied(numbers(77, 3));
            copied.type = type;
            const auto g = numbers(77, 4);
            const std::vector<float> gradient(g.begin(), g.end());
            plain.step(how.which, how.numbers, 1, 1, gradient);
            copied.step(how.which, how.numbers, 1, 1, gradient);
            std::vector<std::uint16_t> expected(77);
            zero::vector::convert(type, expected.data(), dtype::f32, plain.value.data(), 77);
            INFO(how.name << " to " << zero::name(type));
            CHECK(same_bits(copied.value, plain.value));
            CHECK(copied.copy == expected);
        }
    }
}

TEST_CASE("limits hold where set, and NaN is not hidden by them", "[optimizer]") {
    hyper h;
    h.lr = 1;
    h.lower = 0.25;
    h.upper = 2;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    held<double> model({1, 1, 1, nan});
    model.step(kind::sgd, h, 1, 1, {5, -5, 0.5, 0});
    CHECK(model.value[0] == 0.25);
    CHECK(model.value[1] == 2);
    CHECK(model.value[2] == 0.5);
    CHECK(std::isnan(model.value[3]));
    h.lower = -std::numeric_limits<double>::infinity();
    model.step(kind::sgd, h, 1, 1, {100, 0, 0, 0});
    CHECK(model.value[0] == -99.75);
}

TEST_CASE("the factor of clipping", "[optimizer]") {
    using zero::optimizer::clip_factor;
    CHECK(clip_factor(0, 1e9) == 1);
    CHECK(clip_factor(1, 0) == 1);
    CHECK(clip_factor(1, 0.5) == 1);
    CHECK(clip_factor(1, 600) == 1 / (600 + 1e-6));
    CHECK(clip_factor(2, 4) == 2 / (4 + 1e-6));
}

TEST_CASE("LAMB's trust", "[optimizer]") {
    hyper h;
    using zero::optimizer::lamb_trust;
    CHECK(lamb_trust(h, 0, 1) == 1);
    CHECK(lamb_trust(h, 1, 0) == 1);
    CHECK(lamb_trust(h, 6, 2) == 3);
    CHECK(lamb_trust(h, 1e6, 1) == 10);
    CHECK(lamb_trust(h, 1, 1e6) == 0.01);
}

TEST_CASE("names of states", "[optimizer]") {
    using zero::optimizer::state_names;
    using names = std::vector<std::string>;
    CHECK(state_names(kind::adam, 0) == names{"exp_avg", "exp_avg_sq"});
    CHECK(state_names(kind::lamb, 0) == names{"exp_avg", "exp_avg_sq"});
    CHECK(state_names(kind::lion, 0.9) == names{"exp_avg"});
    CHECK(state_names(kind::sgd, 0).empty());
    CHECK(state_names(kind::sgd, 0.9) == names{"momentum"});
    CHECK(state_names(kind::adagrad, 0) == names{"sum"});
}

TEST_CASE("a missing state and LAMB in one pass are refused, an empty range is not", "[optimizer]") {
    held<float> model({1, 2});
    const std::vector<float> gradient = {1, 1};
    auto part = model.range(gradient);
    part.states = {};
    CHECK_THROWS(zero::optimizer::update(kind::adam, hyper{}, 1, 1, part));
    CHECK_THROWS(zero::optimizer::update(kind::lamb, hyper{}, 1, 1, model.range(gradient)));
    zero::optimizer::update_range empty;
    CHECK_NOTHROW(zero::optimizer::update(kind::adam, hyper{}, 1, 1, empty));
}
