// Every optimizer's kernel on a device against the host's loops: masters of both types, 16-bit copies, clipping, limits, decay,
// several steps, odd counts and places, and many ranges in one call.
#include "compute/both.hpp"
#ifdef ZERO_CUDA_EMULATION
#include "emulation/control.hpp"
#endif

using namespace both_processors;
using optimizer::hyper;
using optimizer::kind;

namespace {

struct held {
    dtype type;
    std::int64_t count;
    twin value, copy, gradient, first, second;

    held(processors& work, dtype of, std::int64_t n, unsigned seed, std::int64_t shift, bool wild)
        : type(of), count(n), value(work, sum_type(of), numbers(n, seed, wild), shift), copy(work, is_16bit(of) ? of : dtype::bf16, numbers(n, 1, false), shift),
          gradient(work, sum_type(of), numbers(n, seed + 1, wild), shift), first(work, sum_type(of), numbers(n, seed + 2, false), shift),
          second(work, sum_type(of), squares(n, seed + 3), shift) {}

    static std::vector<double> squares(std::int64_t n, unsigned seed) {
        auto made = numbers(n, seed, false);
        for (auto& x : made) x = x * x;
        return made;
    }
    optimizer::update_range range(const compute::processor& p) const {
        return {type, value.at(p), is_16bit(type) ? copy.at(p) : nullptr, gradient.at(p), {first.at(p), second.at(p)}, count};
    }
    bool equal() const { return value.equal() && copy.equal() && gradient.equal() && first.equal() && second.equal(); }
};

struct choice {
    const char* what;
    kind which;
    hyper numbers;
};

std::vector<choice> choices() {
    hyper plain, decay, limits, momentum, nesterov;
    plain.weight_decay = 0;
    decay.weight_decay = 0.01;
    decay.decoupled = false;
    limits.weight_decay = 0.1;
    limits.lower = -0.5;
    limits.upper = 1.5;
    limits.bias_correction = false;
    momentum.momentum = 0.9;
    nesterov.momentum = 0.8;
    nesterov.nesterov = true;
    nesterov.weight_decay = 0.01;
    return {{"adam", kind::adam, plain},   {"adam with L2", kind::adam, decay},  {"adamw in limits", kind::adam, limits},
            {"sgd", kind::sgd, decay},     {"momentum", kind::sgd, momentum},    {"nesterov", kind::sgd, nesterov},
            {"lion", kind::lion, plain},   {"lion with decay", kind::lion, limits}, {"adagrad", kind::adagrad, decay}};
}

}  // namespace

TEST_CASE("every optimizer updates on a device as on the host", "[cuda]") {
    processors work;
    for (const choice& one : choices()) {
        for (const dtype type : all_types) {
            for (const std::int64_t count : {1, 5, 1003}) {
                const held all(work, type, count, 10, shifts[count % 3], count > 100);
                for (int step = 1; step <= 3; ++step)
                    work.each([&](compute::processor& p) { p.update(one.which, one.numbers, step == 2 ? 0.37 : 1, step, all.range(p)); });
                INFO(one.what << ", " << name(type) << ", " << count);
                REQUIRE(all.equal());
            }
        }
    }
}

TEST_CASE("masters without a 16-bit copy are updated on a device", "[cuda]") {
    processors work;
    const held all(work, dtype::f16, 100, 3, 0, false);
    work.each([&](compute::processor& p) {
        auto range = all.range(p);
        range.copy16 = nullptr;
        p.update(kind::adam, {}, 1, 1, range);
    });
    REQUIRE(all.equal());
}

TEST_CASE("one call updates hundreds of ranges of all types, few kernels do it", "[cuda]") {
    processors work;
    std::vector<held> all;
    for (int k = 0; k < 600; ++k)
        all.emplace_back(work, all_types[k % 4], k % 40, static_cast<unsigned>(k), k % 3, false);
    hyper numbers;
    numbers.weight_decay = 0.01;
#ifdef ZERO_CUDA_EMULATION
    zero_emulation::reset_counters();
#endif
    work.each([&](compute::processor& p) {
        std::vector<optimizer::update_range> parts;
        for (const held& one : all) parts.push_back(one.range(p));
        p.update(kind::adam, numbers, 0.5, 2, parts);
    });
    work.device->wait();
#ifdef ZERO_CUDA_EMULATION
    CHECK(zero_emulation::count().kernels == 3);  // 450 ranges of masters in fp32, 150 in fp64, 256 at once, less the empty ones
#endif
    for (const held& one : all) REQUIRE(one.equal());
}

TEST_CASE("LAMB's two passes on a device", "[cuda]") {
    processors work;
    hyper numbers;
    numbers.weight_decay = 0.02;
    for (const dtype type : all_types) {
        for (const bool in_place : {true, false}) {
            const held all(work, type, 1003, 20, 1, false);
            const twin apart(work, sum_type(type), both_processors::numbers(1003, 1, false), 1);
            const twin& direction = in_place ? all.gradient : apart;
            for (int step = 1; step <= 2; ++step) {
                work.each([&](compute::processor& p) {
                    p.lamb_direction(numbers, 0.7, step, all.range(p), direction.at(p));
                    compute::totals value, move;
                    p.dot(sum_type(type), all.value.at(p), all.value.at(p), 1003, value);
                    p.dot(sum_type(type), direction.at(p), direction.at(p), 1003, move);
                    p.wait();
                    const double trust = optimizer::lamb_trust(numbers, std::sqrt(value.squares.value()), std::sqrt(move.squares.value()));
                    p.lamb_apply(numbers, trust, all.range(p), direction.at(p));
                });
            }
            INFO(name(type) << (in_place ? " in place" : ""));
            REQUIRE(all.equal());
            REQUIRE(direction.equal());
        }
    }
}

TEST_CASE("a device refuses what the host refuses", "[cuda]") {
    processors work;
    const held all(work, dtype::f32, 10, 3, 0, false);
    auto range = all.range(*work.device);
    REQUIRE_THROWS_AS(work.device->update(kind::lamb, {}, 1, 1, range), zero::error);
    range.states[1] = nullptr;
    REQUIRE_THROWS_AS(work.device->update(kind::adam, {}, 1, 1, range), zero::error);
    range.value_type = dtype::i32;
    REQUIRE_THROWS_AS(work.device->update(kind::sgd, {}, 1, 1, range), zero::error);
}
