// Stages 0 to 3 give the same bits, whatever the bucket size, the owner of the memory and overlap; and the right ones.
#include "support.hpp"

#include "../optimizer/reference.hpp"
#include "core/error.hpp"

using namespace engine_test;
using zero::dtype;

namespace {

std::vector<double> mean_gradient(const setup& s, std::int64_t first_micro, std::size_t tensor) {
    std::vector<double> mean(static_cast<std::size_t>(count_of(shapes()[tensor])));
    for (std::size_t i = 0; i < mean.size(); ++i) {
        for (int a = 0; a < s.accumulation; ++a)
            for (int r = 0; r < size(); ++r) mean[i] += gradient_of(r, first_micro + a, tensor, static_cast<std::int64_t>(i));
        mean[i] /= size() * s.accumulation;
    }
    return mean;
}

double norm_of(const std::vector<std::vector<double>>& all) {
    double squares = 0;
    for (const auto& one : all)
        for (double x : one) squares += x * x;
    return std::sqrt(squares);
}

}  // namespace

TEST_CASE("every stage, bucket size, owner and type gives the bits of stage 0") {
    for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
        for (const int accumulation : {1, 3}) {
            setup base;
            base.type = type;
            base.accumulation = accumulation;
            base.more = ", \"gradient_clipping\": 0.5";
            model reference_run(base);
            reference_run.train(3);
            const auto expected = reference_run.bits();
            const double norm = reference_run.z.get_real("grad_norm");
            for (const int stage : {0, 1, 2, 3}) {
                for (const std::int64_t bucket : {1, 100, 500'000'000}) {
                    for (const bool library_owned : {false, true}) {
                        setup s = base;
                        s.stage = stage;
                        s.bucket = bucket;
                        s.library_owned = library_owned;
                        s.persistence = bucket == 100 ? 40 : 0;
                        if (bucket == 1) s.more_zero = ", \"overlap_comm\": " + std::string(stage == 1 ? "true" : "false");
                        model m(s);
                        m.train(3);
                        INFO("stage " << stage << " bucket " << bucket << " library " << library_owned << " type " << name(type) << " A " << accumulation);
                        CHECK(m.bits() == expected);
                        CHECK(m.z.get_real("grad_norm") == norm);
                    }
                }
            }
        }
    }
}

TEST_CASE("the optimizers through the stages against a serial reference in double") {
    using zero::optimizer::kind;
    struct entry { kind which; const char* json; zero::optimizer::hyper h; };
    std::vector<entry> all;
    const auto hyper = [](auto&& change) {
        zero::optimizer::hyper h;
        h.lr = 0.01;
        change(h);
        return h;
    };
    all.push_back({kind::adam, R"("type": "AdamW", "params": {"lr": 0.01, "weight_decay": 0.1})", hyper([](auto& h) { h.weight_decay = 0.1; })});
    all.push_back({kind::sgd, R"("type": "SGD", "params": {"lr": 0.01, "momentum": 0.9, "nesterov": true})",
                   hyper([](auto& h) { h.momentum = 0.9; h.nesterov = true; })});
    all.push_back({kind::lion, R"("type": "Lion", "params": {"lr": 0.01, "betas": [0.9, 0.99], "weight_decay": 0.1})",
                   hyper([](auto& h) { h.beta2 = 0.99; h.weight_decay = 0.1; })});
    all.push_back({kind::adagrad, R"("type": "Adagrad", "params": {"lr": 0.01})", hyper([](auto& h) { h.eps = 1e-10; })});
    all.push_back({kind::lamb, R"("type": "Lamb", "params": {"lr": 0.01, "weight_decay": 0.1})", hyper([](auto& h) { h.weight_decay = 0.1; })});
    for (const auto& e : all) {
        for (const int stage : {0, 1, 2, 3}) {
            setup s;
            s.stage = stage;
            s.type = dtype::f64;
            s.optimizer = e.json;
            s.bucket = 64;
            s.accumulation = 2;
            s.more = ", \"gradient_clipping\": 3";
            model m(s);
            m.train(4);
            std::vector<reference> serial;
            for (std::size_t t = 0; t < shapes().size(); ++t) {
                std::vector<double> start;
                for (std::int64_t i = 0; i < count_of(shapes()[t]); ++i) start.push_back(initial_value(t, i));
                serial.emplace_back(e.which, e.h, start);
            }
            for (int update = 0; update < 4; ++update) {
                std::vector<std::vector<double>> g;
                for (std::size_t t = 0; t < shapes().size(); ++t) g.push_back(mean_gradient(s, 2 * update, t));
                const double clip = zero::optimizer::clip_factor(3, norm_of(g));
                for (std::size_t t = 0; t < shapes().size(); ++t) serial[t].step(g[t], clip);
            }
            for (std::size_t t = 0; t < shapes().size(); ++t) {
                const auto got = m.numbers(t);
                for (std::size_t i = 0; i < got.size(); ++i) {
                    INFO(e.json << " stage " << stage << " tensor " << t << " element " << i);
                    REQUIRE(got[i] == Approx(serial[t].p[i]).epsilon(1e-12).margin(1e-13));
                }
            }
        }
    }
}

TEST_CASE("the seed configuration runs and gives the bits of the same run without offload") {
    const auto run = [](bool offload) {
        const std::string config = std::string(R"({ "zero_optimization": { "stage": 3, )") +
            (offload ? R"("offload_optimizer": { "device": "cpu", "pin_memory": true }, "offload_param": { "device": "cpu", "pin_memory": true }, )" : "") +
            R"("contiguous_gradients": true, "overlap_comm": true, "reduce_scatter": true, "reduce_bucket_size": 10000000,
               "stage3_prefetch_bucket_size": 50000000, "stage3_param_persistence_threshold": 100000 },
               "optimizer": { "type": "AdamW", "params": { "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01 } } })";
        zero::engine z(world(), config);
        const std::int64_t big[1] = {150'000}, small[1] = {1000};
        const int a = z.add_tensor("big", dtype::f32, big, nullptr, 0), b = z.add_tensor("small", dtype::f32, small, nullptr, 0);
        z.commit();
        z.fill(a, "normal", 0, 1, 7);
        z.fill(b, "uniform", -1, 1, 7);
        std::vector<float> g(150'000);
        for (int step = 0; step < 4; ++step) {
            for (const int id : {a, b}) {
                const auto* p = static_cast<const float*>(z.gather(id));
                for (std::size_t i = 0; i < (id == a ? g.size() : 1000); ++i) g[i] = p[i] * static_cast<float>(rank() + 1) + static_cast<float>(step);
                z.release(id);
                z.reduce(id, 1, g.data());
            }
            z.step();
        }
        std::vector<float> all(151'000);
        z.gather_to(a, -1, all.data());
        z.gather_to(b, -1, all.data() + 150'000);
        return all;
    };
    const auto with = run(true), without = run(false);
    CHECK(std::memcmp(with.data(), without.data(), with.size() * sizeof(float)) == 0);
}

TEST_CASE("forecast, estimate and ledger are equal, stage by stage") {
    for (const dtype type : {dtype::f32, dtype::bf16, dtype::f64}) {
        for (const int stage : {0, 1, 2, 3}) {
            for (const bool offload : {false, true}) {
                if (offload && stage != 3) continue;
                setup s;
                s.stage = stage;
                s.type = type;
                s.bucket = 4096;
                if (offload) s.more_zero = R"(, "offload_optimizer": {"device": "cpu", "pin_memory": true}, "offload_param": {"device": "cpu"})";
                s.more = R"(, "libzero": {"node_shared": true})";  // the estimate counts on it if the configuration does
                zero::engine z(world(), json(s));
                const std::int64_t n = 64'000;
                const std::int64_t dims[1] = {n};
                const int id = z.add_tensor("w", type, dims, nullptr, 0);
                const auto forecast = z.forecast(zero::place::host);
                z.commit();
                std::vector<std::byte> g(static_cast<std::size_t>(n * zero::size_of(type)));
                z.gather(id);
                z.release(id);
                z.reduce(id, 1, g.data());
                z.step();
                INFO("stage " << stage << " " << name(type));
                CHECK(z.memory(zero::place::host).first == forecast.first);
                CHECK(z.memory(zero::place::host).second == forecast.second);
                const auto e = zero::estimate_memory(json(s), type, size(), static_cast<int>(z.get_integer("nodes")), n, n);
                std::int64_t states = 0;
                for (const char* what : {"memory.parameters", "memory.gradients", "memory.master", "memory.states"}) states += z.get_integer(what);
                CHECK(e.host == states);
                // The formulas of the paper with fp32 sums, up to padding.
                const double e_size = static_cast<double>(zero::size_of(type)), sum = type == dtype::f64 ? 8 : 4, p = size();
                const double states_size = 2 * sum + (type == dtype::bf16 ? 4 : 0);
                const double whole = e_size / static_cast<double>(z.get_integer("ranks_sharing_values"));
                const double formula = stage == 0 ? whole + sum + states_size : stage == 1 ? whole + sum + states_size / p
                                     : stage == 2 ? whole + (sum + states_size) / p : (e_size + sum + states_size) / p;
                CHECK(static_cast<double>(states) == Approx(formula * static_cast<double>(n)).epsilon(0.001));
            }
        }
    }
}
