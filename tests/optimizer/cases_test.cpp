// Cases from public bug reports that concern the update of an element alone; the whole library runs them again
// elsewhere.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "held.hpp"
#include "optimizer/optimizer.hpp"
#include "support/instruction_sets.hpp"
#include "tensor/vector.hpp"

using zero::dtype;
using zero::optimizer::hyper;
using zero::optimizer::kind;

namespace {

hyper adam_standard() {
    hyper h;
    h.lr = 0.1;
    return h;
}

double one_step(const hyper& h, double gradient) {
    held<double> model({1});
    model.step(kind::adam, h, 1, 1, {gradient});
    return model.value[0];
}

}  // namespace

TEST_CASE("B04: the step number comes from the caller, not from the count of calls", "[optimizer][B04]") {
    for_each_instruction_set([](const char* set) {
        INFO(set);
        held<double> model(std::vector<double>(23));
        const std::vector<double> gradient(23, 1);
        for (int step = 1; step <= 3; ++step) {
            for (std::int64_t first = 0; first < 23; first += 8) {  // sub-groups of 8
                auto part = model.range(gradient);
                part.value = model.value.data() + first;
                part.gradient = gradient.data() + first;
                part.states = {model.first.data() + first, model.second.data() + first};
                part.count = std::min<std::int64_t>(8, 23 - first);
                zero::optimizer::update(kind::adam, adam_standard(), 1, step, part);
            }
        }
        for (const double p : model.value) CHECK(std::fabs(p + 0.3 / (1 + 1e-8)) < 1e-12);
    });
}

TEST_CASE("B10: Lion's decay does not enter the sign", "[optimizer][B10]") {
    hyper h;
    h.lr = 0.1;
    h.beta1 = 0.9;
    h.beta2 = 0.99;
    h.weight_decay = 0.1;
    for (const double sign : {1.0, -1.0}) {
        held<double> model({sign});
        model.step(kind::lion, h, 1, 1, {-0.01 * sign});
        CHECK(model.value[0] == Approx(1.09 * sign).epsilon(1e-12));
        CHECK(model.first[0] == Approx(-1e-4 * sign).epsilon(1e-12));
        model.step(kind::lion, h, 1, 2, {-0.01 * sign});
        CHECK(model.value[0] == Approx(1.1791 * sign).epsilon(1e-12));
        CHECK(model.first[0] == Approx(-1.99e-4 * sign).epsilon(1e-12));
    }
}

TEST_CASE("B40: small steps gather in the fp32 master, not in the bf16 copy", "[optimizer][B40]") {
    hyper h;
    h.lr = 0x1p-12;
    held<float> model({1});
    model.type = dtype::bf16;
    const auto copy = [&] {
        float shown = 0;
        zero::vector::convert(dtype::f32, &shown, dtype::bf16, model.copy.data(), 1);
        return shown;
    };
    for (int step = 1; step <= 16; ++step) model.step(kind::sgd, h, 1, step, {-1});
    CHECK(model.value[0] == 1.00390625f);
    CHECK(copy() == 1);
    for (int step = 17; step <= 32; ++step) model.step(kind::sgd, h, 1, step, {-1});
    CHECK(model.value[0] == 1.0078125f);
    CHECK(copy() == 1.0078125f);
}

TEST_CASE("S04: a zero gradient moves nothing, whatever eps rounds to", "[optimizer][S04]") {
    for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
        for (const double eps : {1e-8, 1e-60}) {  // the second is zero in float
            hyper h = adam_standard();
            h.eps = eps;
            held<float> model(std::vector<double>(40, 0.5));
            model.type = type;
            for (int step = 1; step <= 3; ++step) model.step(kind::adam, h, 1, step, std::vector<float>(40, 0));
            for (const float p : model.value) CHECK(p == 0.5f);
            held<float> adagrad(std::vector<double>(40, 0.5));
            adagrad.step(kind::adagrad, h, 1, 1, std::vector<float>(40, 0));
            for (const float p : adagrad.value) CHECK(p == 0.5f);
        }
    }
}

TEST_CASE("S07: Adam with L2 is not AdamW", "[optimizer][S07]") {
    hyper h = adam_standard();
    h.weight_decay = 0.1;
    CHECK(one_step(h, 0) == Approx(0.99).epsilon(1e-12));
    h.decoupled = false;
    CHECK(one_step(h, 0) == Approx(0.90).epsilon(1e-6));
}

TEST_CASE("S09: decay comes before the update", "[optimizer][S09]") {
    hyper h = adam_standard();
    h.weight_decay = 0.1;
    CHECK(one_step(h, 1) == Approx(0.99 - 0.1 / (1 + 1e-8)).epsilon(1e-14));
    CHECK(one_step(h, 1) == Approx(0.89).epsilon(1e-8));
}

TEST_CASE("an infinite value stays infinite without decay", "[optimizer]") {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const kind which : {kind::adam, kind::sgd, kind::lion, kind::adagrad}) {
        held<double> model({infinity, 1});
        model.step(which, adam_standard(), 1, 1, {1, 1});
        CHECK(model.value[0] == infinity);
    }
}

TEST_CASE("SGD's first step takes the gradient, whatever the buffer holds", "[optimizer]") {
    hyper h;
    h.lr = 1;
    h.momentum = 0.9;
    held<double> model({0});
    model.first[0] = std::numeric_limits<double>::quiet_NaN();
    model.step(kind::sgd, h, 1, 1, {2});
    CHECK(model.value[0] == -2);
    model.step(kind::sgd, h, 1, 2, {2});
    CHECK(model.value[0] == Approx(-2 - 3.8));
}
