// A model that is split over two model ranks, on a grid of two data ranks each, or of four for several nodes: norm, clipping,
// tensors that all model ranks hold, and what one corner does to all. Against a serial reference in double of the whole model.
#include "support.hpp"

#include "../optimizer/reference.hpp"
#include "optimizer/optimizer.hpp"
#include "support/grid.hpp"

using namespace engine_test;
using zero::code;
using zero::dtype;

namespace {

constexpr int model_size = 2;
int data_size() { return size() / model_size; }  // 2; with nodes 4

struct grid : zero::test::grid {
    grid() : zero::test::grid(data_size()) {}
};

// The tensors of the whole model: each model rank's own one, and one that both hold.
struct whole_tensor {
    int model_rank;  // -1: all
    std::int64_t count;
};
const whole_tensor parts[] = {{0, 113}, {1, 40}, {-1, 77}};

std::vector<double> start_of(std::size_t t) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < parts[t].count; ++i) values.push_back(initial_value(t, i));
    return values;
}
std::vector<double> gradient_on(int data_rank, int step, std::size_t t) {
    std::vector<double> g;
    for (std::int64_t i = 0; i < parts[t].count; ++i) g.push_back(gradient_of(data_rank, step, t, i));
    return g;
}
std::vector<double> mean_gradient(int step, std::size_t t) {
    std::vector<double> mean(static_cast<std::size_t>(parts[t].count));
    for (int r = 0; r < data_size(); ++r) {
        const auto g = gradient_on(r, step, t);
        for (std::size_t i = 0; i < g.size(); ++i) mean[i] += g[i] / data_size();
    }
    return mean;
}

// This rank's share of the model, "own" and "shared", in a context over the grid.
struct split_model {
    split_model(const grid& where, const setup& how) : at(where), z(&where.data, json(how)), type(how.type) {
        z.set_model_comm(&where.model);
        const int replicated = z.add_group(R"({"model_replicated": true})");
        for (std::size_t t = 0; t < std::size(parts); ++t) {
            ids.push_back(-1);
            if (!mine(t)) continue;
            const bool shared = parts[t].model_rank < 0;
            ids[t] = z.add_tensor(shared ? "shared" : "own", type, {&parts[t].count, 1}, nullptr, shared ? replicated : 0);
        }
        z.commit();
        for (std::size_t t = 0; t < std::size(parts); ++t)
            if (mine(t)) z.scatter(ids[t], -1, typed(start_of(t)).data());
    }
    bool mine(std::size_t t) const { return parts[t].model_rank < 0 || parts[t].model_rank == at.model_rank; }
    std::vector<std::byte> typed(const std::vector<double>& wide) const {
        const auto n = static_cast<std::int64_t>(wide.size());
        std::vector<std::byte> narrow(wide.size() * static_cast<std::size_t>(zero::size_of(type)));
        zero::vector::convert(type, narrow.data(), dtype::f64, wide.data(), n);
        return narrow;
    }
    void hand_over(std::size_t t, const std::vector<double>& g) {
        fetch(z, ids[t]);
        z.reduce(ids[t], 1, typed(g).data());
    }
    void train(int step) {
        for (std::size_t t = 0; t < std::size(parts); ++t)
            if (mine(t)) hand_over(t, gradient_on(at.data_rank, step, t));
        z.step();
    }
    std::vector<double> values(std::size_t t) {
        std::vector<std::byte> narrow = typed(std::vector<double>(static_cast<std::size_t>(parts[t].count)));
        z.gather_to(ids[t], -1, narrow.data());
        std::vector<double> wide(static_cast<std::size_t>(parts[t].count));
        zero::vector::convert(dtype::f64, wide.data(), type, narrow.data(), parts[t].count);
        return wide;
    }

    const grid& at;
    zero::engine z;
    dtype type;
    std::vector<int> ids;
};

}  // namespace

TEST_CASE("a split model trains as the whole one: norm and clipping over all parts, replicated tensors once") {
    if (size() != 4 && size() != 8) return;
    const grid where;
    constexpr double most = 3;  // the norms are well above
    zero::optimizer::hyper numbers;
    numbers.lr = 0.01;
    numbers.momentum = 0.5;  // plain steps show every factor in the gradient; Adam would hide the clipping
    for (const dtype type : {dtype::f64, dtype::f32}) {
        const double tolerance = type == dtype::f64 ? 1e-13 : 1e-5;
        for (const int stage : {0, 1, 2, 3}) {
            setup how;
            how.stage = stage;
            how.type = type;
            how.bucket = 64;
            how.optimizer = R"("type": "SGD", "params": {"lr": 0.01, "momentum": 0.5})";
            how.more = ", \"gradient_clipping\": 3";
            split_model m(where, how);
            std::vector<reference> serial;
            for (std::size_t t = 0; t < std::size(parts); ++t)
                serial.emplace_back(zero::optimizer::kind::sgd, numbers, start_of(t));
            for (int step = 0; step < 4; ++step) {
                double squares = 0, dot = 0, own_dot = 0;
                for (std::size_t t = 0; t < std::size(parts); ++t)
                    for (double g : mean_gradient(step, t)) squares += g * g;
                m.train(step);
                INFO("stage " << stage << " type " << name(type) << " step " << step);
                REQUIRE(std::sqrt(squares) > most);
                CHECK(m.z.get_real("grad_norm") == Approx(std::sqrt(squares)).epsilon(1e-7));
                for (std::size_t t = 0; t < std::size(parts); ++t) {
                    serial[t].step(mean_gradient(step, t), zero::optimizer::clip_factor(most, std::sqrt(squares)));
                    for (double p : serial[t].p) {
                        dot += p * p;
                        if (parts[t].model_rank >= 0) own_dot += p * p;
                    }
                    if (!m.mine(t)) continue;
                    const auto got = m.values(t);
                    for (std::size_t i = 0; i < got.size(); ++i)
                        REQUIRE(got[i] == Approx(serial[t].p[i]).epsilon(tolerance).margin(tolerance));
                }
                CHECK(m.z.dot("value", "value", -1) == Approx(dot).epsilon(1e-6));
                CHECK(m.z.dot("value", "value", 0) == Approx(own_dot).epsilon(1e-6));
                CHECK(m.z.dot("value", "value", 1) == Approx(dot - own_dot).epsilon(1e-6));
            }
        }
    }
}

TEST_CASE("one corner of a split model: an overflow skips everywhere, a tensor without gradient fails everywhere") {
    if (size() != 4 && size() != 8) return;
    const grid where;
    for (const int stage : {0, 1, 2, 3}) {
        setup how;
        how.stage = stage;
        how.optimizer = sgd;
        how.more_zero = ", \"ignore_unused_parameters\": false";
        split_model m(where, how);
        const std::size_t own = static_cast<std::size_t>(where.model_rank), shared = 2;
        const auto none = std::vector<double>(static_cast<std::size_t>(parts[shared].count));
        auto g = gradient_on(where.data_rank, 0, own);
        if (rank() == size() - 1) g.back() = HUGE_VAL;
        m.hand_over(own, g);
        m.hand_over(shared, none);
        m.z.step();
        INFO("stage " << stage);
        CHECK(m.z.get_integer("skipped_steps") == 1);
        CHECK(std::isinf(m.z.get_real("grad_norm")));
        CHECK(m.values(own) == start_of(own));

        m.hand_over(own, gradient_on(where.data_rank, 0, own));
        if (where.model_rank == 0) m.hand_over(shared, none);
        CHECK(code_of([&] { m.z.step(); }) == code::state);
        CHECK(m.z.get_integer("step") == 0);
        if (where.model_rank == 1) m.hand_over(shared, none);
        m.z.step();
        CHECK(m.z.get_integer("step") == 1);
        CHECK(m.values(shared) == start_of(shared));
    }
}
