// Faults that users of similar systems reported (their ids in front), where the engine is the place that could have them.
#include "support.hpp"

#include "core/error.hpp"

using namespace engine_test;
using zero::code;
using zero::dtype;

namespace {

// One tensor "w" of n equal elements that start at p0.
struct line {
    line(int stage, dtype type, std::int64_t n, double p0, const std::string& optimizer, const std::string& more = "", std::int64_t persistence = 0)
        : type_(type), n_(n), z(world(), [&] {
              setup s;
              s.stage = stage;
              s.optimizer = optimizer;
              s.more = more;
              s.persistence = persistence;
              return json(s);
          }()) {
        const std::int64_t dims[1] = {n};
        id = z.add_tensor("w", type, dims, nullptr, 0);
        z.commit();
        z.fill(id, "constant", p0, 0, 0);
    }
    void hand_over(const std::vector<double>& g) {
        std::vector<std::byte> typed(g.size() * 8 + 8);
        zero::vector::convert(type_, typed.data(), dtype::f64, g.data(), static_cast<std::int64_t>(g.size()));
        z.reduce(id, 1, typed.data());
    }
    void step(const std::vector<double>& g) {
        z.gather(id);
        z.release(id);
        hand_over(g);
        z.step();
    }
    void step(double g) { step(std::vector<double>(static_cast<std::size_t>(n_), g)); }
    std::vector<double> values() {
        std::vector<std::byte> raw(static_cast<std::size_t>(n_) * 8 + 8);
        std::vector<double> wide(static_cast<std::size_t>(n_));
        z.gather_to(id, -1, raw.data());
        zero::vector::convert(dtype::f64, wide.data(), type_, raw.data(), n_);
        return wide;
    }
    dtype type_;
    std::int64_t n_;
    zero::engine z;
    int id = -1;
};

}  // namespace

TEST_CASE("B02 squares are taken in double") {
    const std::string fp16 = R"(, "fp16": {"enabled": true, "loss_scale": 1}, "gradient_clipping": 1.0)";
    for (const int stage : {0, 1, 2, 3}) {
        line a(stage, dtype::f16, 4, 0, sgd, fp16);
        a.step(300);
        CHECK(a.z.get_real("grad_norm") == 600);
        CHECK(a.z.get_integer("skipped_steps") == 0);
        for (double p : a.values()) CHECK(p == Approx(-0.5).epsilon(1e-3));
        line b(stage, dtype::f16, 10000, 0, sgd, R"(, "fp16": {"enabled": true, "loss_scale": 1})");
        b.step(1e-4);
        CHECK(b.z.get_real("grad_norm") == Approx(1.0001659e-2).epsilon(1e-6));
    }
}

TEST_CASE("B04 one step count for all sub-groups") {
    for (const int stage : {0, 1, 2, 3}) {
        setup s;
        s.stage = stage;
        s.optimizer = R"("type": "Adam", "params": {"lr": 0.1})";
        s.more_zero = R"(, "sub_group_size": 8)";
        zero::engine z(world(), json(s));
        std::vector<int> ids;
        for (const std::int64_t n : {5, 7, 11}) {
            const std::int64_t dims[1] = {n};
            ids.push_back(z.add_tensor("", dtype::f64, dims, nullptr, 0));
        }
        z.commit();
        const std::vector<double> ones(11, 1.0);
        for (int k = 0; k < 3; ++k) {
            for (int id : ids) {
                z.gather(id);
                z.release(id);
                z.reduce(id, 1, ones.data());
            }
            z.step();
        }
        for (std::size_t t = 0; t < 3; ++t) {
            std::vector<double> p(11);
            z.gather_to(ids[t], -1, p.data());
            for (std::size_t i = 0; i < (t == 0 ? 5U : t == 1 ? 7U : 11U); ++i) CHECK(p[i] == Approx(-0.3 / (1 + 1e-8)).epsilon(1e-12));
        }
    }
}

TEST_CASE("B06 zero gradients work and non-finite ones skip everywhere") {
    for (const dtype type : {dtype::f32, dtype::bf16, dtype::f64}) {
        for (const int stage : {0, 1, 2, 3}) {
            for (const std::string& optimizer : {sgd, std::string(R"("type": "Adam", "params": {"lr": 0.1})")}) {
                line m(stage, type, 3, 4, optimizer, R"(, "gradient_clipping": 1.0)");
                m.step(0);
                CHECK(m.z.get_real("grad_norm") == 0);
                CHECK(m.values() == std::vector<double>{4, 4, 4});
                for (const double bad : {std::nan(""), HUGE_VAL}) {
                    std::vector<double> g(3, 2.0);
                    if (rank() == size() - 1) g[1] = bad;
                    m.step(g);
                    CHECK_FALSE(std::isfinite(m.z.get_real("grad_norm")));
                    CHECK(m.z.get_integer("overflow") == 1);
                    CHECK(m.values() == std::vector<double>{4, 4, 4});
                }
                CHECK(m.z.get_integer("skipped_steps") == 2);
                CHECK(m.z.get_integer("step") == 1);
                m.step(2);
                CHECK(m.values()[0] < 4);
            }
        }
    }
}

TEST_CASE("B08 a skipped update moves neither schedule nor Adam's count") {
    const std::string scheduler = R"(, "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 8, "hysteresis": 1},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 0.1, "warmup_num_steps": 10, "warmup_type": "linear"}})";
    for (const std::string& optimizer : {sgd, std::string(R"("type": "Adam", "params": {"lr": 0.1})")}) {
        const auto scaled = [](line& m) { m.step(m.z.get_real("loss_scale")); };
        line x(2, dtype::f16, 5, 0, optimizer, scheduler);
        std::vector<double> rates;
        for (int k = 0; k < 6; ++k) {
            rates.push_back(x.z.get_real("lr"));
            scaled(x);
        }
        line y(2, dtype::f16, 5, 0, optimizer, scheduler);
        for (int call = 1, applied = 0; call <= 8; ++call) {
            if (call == 2 || call == 4) {
                y.step(rank() == size() - 1 ? HUGE_VAL : 1.0);
                continue;
            }
            CHECK(y.z.get_real("lr") == rates[static_cast<std::size_t>(applied++)]);
            scaled(y);
        }
        CHECK(y.z.get_integer("skipped_steps") == 2);
        CHECK(y.z.get_integer("step") == 6);
        std::vector<float> p(5), q(5);
        x.z.gather_state(x.id, "master", -1, p.data());
        y.z.gather_state(y.id, "master", -1, q.data());
        CHECK(p == q);
    }
}

TEST_CASE("B12 the mean is formed once") {
    for (const int stage : {0, 1, 2, 3}) {
        for (const int accumulation : {1, 2, 4}) {
            setup s;
            s.stage = stage;
            s.accumulation = accumulation;
            s.optimizer = sgd;
            zero::engine z(world(), json(s));
            const std::int64_t dims[1] = {9};
            const int id = z.add_tensor("w", dtype::f32, dims, nullptr, 0);
            z.commit();
            const std::vector<float> g(9, 8.0F);
            z.gather(id);
            z.release(id);
            for (int a = 0; a < accumulation; ++a) {
                z.reduce(id, 1, g.data());
                CHECK(z.get_integer("micro_step") == a);
                z.step();
            }
            std::vector<float> p(9);
            z.gather_to(id, -1, p.data());
            CHECK(p == std::vector<float>(9, -8.0F));
            CHECK(z.get_real("grad_norm") == 24);
        }
    }
}

TEST_CASE("B14 tensors without elements, and B28 ranks without elements") {
    for (const int stage : {0, 1, 2, 3}) {
        for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{8, 0, 24}, {16, 0, 16}, {0, 32}, {32, 0}, {2}, {0}}) {
            setup s;
            s.stage = stage;
            s.optimizer = sgd;
            zero::engine z(world(), json(s));
            std::vector<std::vector<float>> arrays;
            for (auto n : sizes) arrays.emplace_back(static_cast<std::size_t>(n), 0.0F);
            for (std::size_t t = 0; t < sizes.size(); ++t)
                z.add_tensor("t" + std::to_string(t), dtype::f32, {&sizes[t], 1}, sizes[t] == 0 ? nullptr : arrays[t].data(), 0);
            z.commit();
            const std::vector<float> g(32, 1.0F);
            std::int64_t elements = 0;
            for (std::size_t t = 0; t < sizes.size(); ++t) {
                z.gather(static_cast<int>(t));
                z.release(static_cast<int>(t));
                z.reduce(static_cast<int>(t), 1, sizes[t] == 0 ? nullptr : g.data());
                elements += sizes[t];
            }
            z.step();
            CHECK(z.get_real("grad_norm") == Approx(std::sqrt(static_cast<double>(elements))));
            for (std::size_t t = 0; t < sizes.size(); ++t) {
                std::vector<float> p(static_cast<std::size_t>(sizes[t]) + 1);
                z.gather_to(static_cast<int>(t), -1, p.data());
                for (std::int64_t i = 0; i < sizes[t]; ++i) CHECK(p[static_cast<std::size_t>(i)] == -1);
            }
        }
    }
}

TEST_CASE("B16 padding never counts") {
    for (const int stage : {0, 1, 2, 3}) {
        setup s;
        s.stage = stage;
        s.bucket = 16;
        s.optimizer = sgd;
        zero::engine z(world(), json(s));
        const std::vector<float> g(100, 2.0F);
        for (const std::int64_t n : {5, 100, 5}) z.add_tensor("", dtype::f32, {&n, 1}, nullptr, 0);
        z.commit();
        for (int id = 0; id < 3; ++id) {
            z.gather(id);
            z.release(id);
            z.reduce(id, 1, g.data());
        }
        z.step();
        CHECK(z.get_real("grad_norm") == Approx(20.976177).epsilon(1e-7));
        std::vector<float> p(100);
        z.gather_to(1, -1, p.data());
        CHECK(p == std::vector<float>(100, -2.0F));
    }
}

TEST_CASE("B20 two communicators do not know each other") {
    if (size() != 4) return;
    MPI_Comm half = MPI_COMM_NULL;
    const int colour = rank() % 2;
    MPI_Comm_split(MPI_COMM_WORLD, colour, rank(), &half);
    for (const int stage : {1, 2, 3}) {
        setup s;
        s.stage = stage;
        s.optimizer = sgd;
        zero::engine z(&half, json(s));
        const std::int64_t n = 10;
        const int id = z.add_tensor("w", dtype::f32, {&n, 1}, nullptr, 0);
        z.commit();
        const std::vector<float> g(10, static_cast<float>(colour + 1));
        z.gather(id);
        z.release(id);
        z.reduce(id, 1, g.data());
        z.step();
        std::vector<float> p(10);
        z.gather_to(id, -1, p.data());
        CHECK(p == std::vector<float>(10, -static_cast<float>(colour + 1)));
        CHECK(z.get_real("grad_norm") == Approx(std::sqrt(10.0) * (colour + 1)));
        std::int64_t owned = z.get_integer("owned_elements");
        std::int64_t all = 0;
        MPI_Allreduce(&owned, &all, 1, MPI_INT64_T, MPI_SUM, half);
        CHECK(all == 10);
    }
    MPI_Comm_free(&half);
}

TEST_CASE("B22 different collectives never pair up") {
    if (size() == 1) return;
    line m(2, dtype::f32, 4, 0, sgd);
    const code got = code_of([&] {
        if (rank() == 0) m.z.publish();
        else m.z.step();
    });
    CHECK(got == code::mismatch);
    m.step(1);
    CHECK(m.values()[0] == -1);
}

TEST_CASE("B24 edits of a gathered copy count only when scattered") {
    line m(3, dtype::bf16, 6, 0, sgd);
    auto* w = static_cast<std::uint16_t*>(m.z.gather(m.id));
    if (rank() == 0) w[0] = 0x40e0;  // 7.0
    m.z.release(m.id);
    CHECK(m.values()[0] == 0);
    m.step(1);
    CHECK(m.values()[0] == -1);

    line n(3, dtype::bf16, 6, 0, sgd);
    w = static_cast<std::uint16_t*>(n.z.gather(n.id));
    if (rank() == 0) w[0] = 0x40e0;
    n.z.scatter(n.id, 0, rank() == 0 ? w : nullptr);
    n.z.release(n.id);
    CHECK(n.values()[0] == 7);
    n.step(1);
    CHECK(n.values()[0] == 6);
}

TEST_CASE("S10 the norm is taken of the reduced gradient") {
    if (size() != 2) return;
    for (const int stage : {0, 1, 2, 3}) {
        line m(stage, dtype::f32, 5, 0, sgd);
        m.step(rank() == 0 ? 3.0 : -3.0);
        CHECK(m.z.get_real("grad_norm") == 0);
    }
}

TEST_CASE("S18 nothing stays gathered after a micro-step") {
    setup s;
    s.stage = 3;
    model m(s);
    const std::int64_t own = m.z.get_integer("live_elements");
    m.train(3);
    CHECK(m.z.get_integer("live_elements") == own);
    std::int64_t all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    std::int64_t elements = 0;
    for (const auto& shape : shapes()) elements += count_of(shape);
    CHECK(all == elements);
}

TEST_CASE("S23 a window ended early uses the mean of what came") {
    for (const int stage : {0, 1, 2, 3}) {
        setup s;
        s.stage = stage;
        s.accumulation = 4;
        s.optimizer = sgd;
        zero::engine z(world(), json(s));
        const std::int64_t n = 5;
        const int id = z.add_tensor("w", dtype::f32, {&n, 1}, nullptr, 0);
        z.commit();
        z.gather(id);
        z.release(id);
        const std::vector<float> one(5, 1.0F), three(5, 3.0F);
        z.reduce(id, 1, one.data());
        z.step();
        z.reduce(id, 1, three.data());
        z.set("libzero.end_window", std::int64_t{1});
        z.step();
        std::vector<float> p(5);
        z.gather_to(id, -1, p.data());
        CHECK(p == std::vector<float>(5, -2.0F));
        CHECK(z.get_integer("step") == 1);
    }
}

TEST_CASE("stage 3: a gradient of values that were never fetched is refused before anything changes") {
    if (size() == 1) return;
    line m(3, dtype::f32, 64, 0, sgd);
    m.step(1);
    m.z.gather_to(m.id, -1, std::vector<float>(64).data());
    m.hand_over(std::vector<double>(64, 1.0));
    m.z.step();
    CHECK(m.z.get_integer("step") == 2);
    m.hand_over(std::vector<double>(64, 1.0));
    CHECK(code_of([&] { m.z.step(); }) == code::state);
    CHECK(m.z.get_integer("step") == 2);
    m.z.gather(m.id);
    m.z.release(m.id);
    m.z.step();  // the window is still there
    CHECK(m.z.get_integer("step") == 3);
    CHECK(m.values()[0] == -3);
}
