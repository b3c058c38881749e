// The step in parts, second hand-overs, buffers of the library, groups, limits, gathers and their caps.
#include "support.hpp"

#include "core/error.hpp"

using namespace engine_test;
using zero::code;
using zero::dtype;

namespace {

std::string config(int stage, const std::string& optimizer = sgd, const std::string& zero_more = "", const std::string& more = "") {
    setup s;
    s.stage = stage;
    s.optimizer = optimizer;
    s.more_zero = zero_more;
    s.more = more;
    return json(s);
}

std::vector<float> values(zero::engine& z, int id, std::int64_t n) {
    std::vector<float> p(static_cast<std::size_t>(n));
    z.gather_to(id, -1, p.data());
    return p;
}

}  // namespace

TEST_CASE("finish, look, step gives the bits of step alone; edits of the gradient count") {
    for (const int stage : {0, 1, 2, 3}) {
        setup s;
        s.stage = stage;
        s.more = ", \"gradient_clipping\": 0.5";
        s.bucket = 64;
        model whole(s), parts(s);
        for (int k = 0; k < 3; ++k) {
            for (model* m : {&whole, &parts}) {
                m->fetch();
                m->hand_over(k, true);
            }
            whole.z.step();
            parts.z.finish();
            for (std::size_t t = 0; t < shapes().size(); ++t) parts.z.slice(static_cast<int>(t), "gradient");
            parts.z.step();
        }
        CHECK(whole.bits() == parts.bits());

        setup plain;
        plain.stage = stage;
        plain.optimizer = sgd;
        model edited(plain);
        edited.fetch();
        edited.hand_over(0, true);
        edited.z.finish();
        for (std::size_t t = 0; t < shapes().size(); ++t) {
            const auto part = edited.z.slice(static_cast<int>(t), "gradient");
            for (std::int64_t i = 0; i < part.count; ++i) static_cast<float*>(part.data)[i] = 2;
        }
        edited.z.step();
        for (std::size_t t = 0; t < shapes().size(); ++t) {
            const auto p = edited.numbers(t);
            for (std::size_t i = 0; i < p.size(); ++i) REQUIRE(p[i] == initial_value(t, static_cast<std::int64_t>(i)) - 2);
        }
    }
}

TEST_CASE("a second hand-over adds, before and after the bucket has left, scaled or not") {
    for (const int stage : {0, 1, 2, 3}) {
        zero::engine z(world(), config(stage, sgd, R"(, "overlap_comm": true)"));
        const std::int64_t n = 40;
        const int a = z.add_tensor("a", dtype::f32, {&n, 1}, nullptr, 0), b = z.add_tensor("b", dtype::f32, {&n, 1}, nullptr, 0);
        z.commit();
        const std::vector<float> g(40, 1.0F);
        for (int step = 1; step <= 3; ++step) {
            fetch(z, a);
            fetch(z, b);
            z.reduce(b, 1, g.data());
            z.reduce(a, 1, g.data());
            if (rank() == 0) z.reduce(b, 2, g.data());  // on one rank only, and late
            z.step();
            CHECK(values(z, a, n)[0] == -static_cast<float>(step));
            CHECK(values(z, b, n)[39] == Approx(-step * (1 + 2.0 / size())).epsilon(1e-6));
        }
    }
}

TEST_CASE("late additions are divided once, whoever sent the bucket early") {
    for (const int stage : {0, 1, 2, 3}) {
        zero::engine z(world(), config(stage, sgd, R"(, "overlap_comm": true)"));
        const std::int64_t n = 200;
        const int id = z.add_tensor("w", dtype::f32, {&n, 1}, nullptr, 0);
        z.commit();
        const std::vector<float> g(200, static_cast<float>(size()));
        fetch(z, id);
        z.reduce(id, 1, g.data());
        z.step();  // once from every rank: what the next step expects
        CHECK(values(z, id, n) == std::vector<float>(200, -static_cast<float>(size())));
        fetch(z, id);
        for (int time = 0; rank() == size() - 1 && time < 2; ++time) z.reduce(id, 1, g.data());
        z.step();  // leaves early and goes again on the last rank, and at the end of the step on the others
        CHECK(values(z, id, n) == std::vector<float>(200, -static_cast<float>(size() + 2)));
        CHECK(z.get_real("grad_norm") == Approx(2 * std::sqrt(200.0)));
    }
}

TEST_CASE("buffers of the library: zeros first, the same until handed over, nothing when not") {
    for (const dtype type : {dtype::f32, dtype::bf16}) {
        for (const int stage : {0, 1, 2, 3}) {
            zero::engine z(world(), config(stage));
            const std::int64_t n = 50;
            const int id = z.add_tensor("w", type, {&n, 1}, nullptr, 0);
            z.commit();
            const std::size_t width = static_cast<std::size_t>(zero::size_of(type));
            const std::vector<std::byte> zeros(50 * width);
            for (int step = 1; step <= 2; ++step) {
                fetch(z, id);
                void* place = z.gradient(id);
                CHECK(std::memcmp(place, zeros.data(), zeros.size()) == 0);
                const std::vector<double> ones(50, 1.0);
                zero::vector::convert(type, place, dtype::f64, ones.data(), 50);
                CHECK(z.gradient(id) == place);
                z.reduce(id, 2, nullptr);
                z.gradient(id);  // asked for and never handed over: contributes nothing
                z.step();
                std::vector<std::byte> raw(50 * width);
                std::vector<double> p(50);
                z.gather_to(id, -1, raw.data());
                zero::vector::convert(dtype::f64, p.data(), type, raw.data(), 50);
                CHECK(p[0] == -2.0 * step);
            }
        }
    }
}

TEST_CASE("ranks and tensors that hand over nothing count as zero") {
    for (const int stage : {0, 1, 2, 3}) {
        zero::engine z(world(), config(stage));
        const std::int64_t n = 33;
        const int a = z.add_tensor("a", dtype::f32, {&n, 1}, nullptr, 0), b = z.add_tensor("b", dtype::f32, {&n, 1}, nullptr, 0);
        z.commit();
        fetch(z, a);
        const std::vector<float> g(33, static_cast<float>(size()));
        if (rank() == size() - 1) z.reduce(a, 1, g.data());
        z.step();
        CHECK(values(z, a, n)[32] == -1);
        CHECK(values(z, b, n)[0] == 0);
        z.step();  // nobody hands over anything
        CHECK(values(z, a, n)[32] == -1);
        CHECK(z.get_integer("step") == 2);
    }
}

TEST_CASE("a rank that hands over nothing to many buckets keeps nobody waiting, not even between gathers") {
    for (const int stage : {0, 1, 2, 3}) {
        setup s;
        s.stage = stage;
        s.optimizer = sgd;
        s.bucket = 10;
        zero::engine z(world(), json(s));
        const std::int64_t n = 40;
        std::vector<int> ids;
        for (int t = 0; t < 6; ++t) ids.push_back(z.add_tensor("", dtype::f32, {&n, 1}, nullptr, 0));
        z.commit();
        const std::vector<float> g(40, static_cast<float>(size()));
        for (int step = 1; step <= 3; ++step) {
            for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
                fetch(z, *id);
                if (rank() == size() - 1) z.reduce(*id, 1, g.data());
            }
            z.step();
            for (const int id : ids) CHECK(values(z, id, n)[39] == -static_cast<float>(step));
        }
    }
}

TEST_CASE("groups: own rate, limits, frozen at run time") {
    for (const int stage : {0, 1, 2, 3}) {
        zero::engine z(world(), config(stage));
        const int slow = z.add_group(R"({"lr": 0.5, "lower": -0.75, "upper": 1})");
        const std::int64_t n = 20;
        const int a = z.add_tensor("a", dtype::f64, {&n, 1}, nullptr, 0), b = z.add_tensor("b", dtype::f64, {&n, 1}, nullptr, slow);
        z.commit();
        const std::vector<double> g(20, 1.0);
        const auto train = [&] {
            for (const int id : {a, b}) {
                fetch(z, id);
                z.reduce(id, 1, g.data());
            }
            z.step();
        };
        const auto at = [&](int id) {
            std::vector<double> p(20);
            z.gather_to(id, -1, p.data());
            return p[19];
        };
        train();
        CHECK(at(a) == -1);
        CHECK(at(b) == -0.5);
        train();
        CHECK(at(b) == -0.75);
        z.set("groups.1.lower", -10.0);
        z.set("groups.1.lr", 2.0);
        train();
        CHECK(at(b) == -2.75);
        z.set("groups.1.frozen", std::int64_t{1});
        train();
        CHECK(at(b) == -2.75);
        CHECK(at(a) == -4);
        z.set("groups.1.frozen", std::int64_t{0});
        train();
        CHECK(at(b) == -4.75);
    }
}

TEST_CASE("stage 3: live cap, counted gathers, order followed by prefetch") {
    zero::engine z(world(), config(3, sgd, R"(, "stage3_max_live_parameters": 100)"));
    const std::int64_t n = 60;
    std::vector<int> ids;
    for (int t = 0; t < 4; ++t) ids.push_back(z.add_tensor("", dtype::f32, {&n, 1}, nullptr, 0));
    z.commit();
    z.gather(ids[0]);
    code got = code::ok;
    try {
        z.gather(ids[1]);
    } catch (const zero::error& e) {
        got = e.which();
    }
    CHECK(got == code::memory);
    z.gather(ids[0]);
    z.release(ids[0]);
    z.release(ids[0]);
    try {
        z.release(ids[0]);
    } catch (const zero::error& e) {
        got = e.which();
    }
    CHECK(got == code::state);

    zero::engine y(world(), config(3, sgd, R"(, "stage3_prefetch_bucket_size": 130, "stage3_max_reuse_distance": 100)"));
    std::vector<int> all;
    for (int t = 0; t < 6; ++t) all.push_back(y.add_tensor("", dtype::f32, {&n, 1}, nullptr, 0));
    y.commit();
    std::vector<float> g(60);
    for (int step = 0; step < 4; ++step) {
        const auto visit = [&](int id, bool backward) {
            const auto* w = static_cast<const float*>(y.gather(id));
            for (std::size_t i = 0; i < 60; ++i) {
                REQUIRE(w[i] == -static_cast<float>(step * (id + 1)));
                g[i] = static_cast<float>(id + 1);
            }
            y.release(id);
            if (backward) y.reduce(id, 1, g.data());
        };
        for (int id : all) visit(id, false);
        if (step == 2) visit(all[3], false);  // off the record once
        for (auto it = all.rbegin(); it != all.rend(); ++it) visit(*it, true);
        y.step();
    }
}

TEST_CASE("copies that stay open over a step show the new values, as whole arrays do") {
    for (const int stage : {0, 1, 2, 3}) {
        zero::engine z(world(), config(stage));
        const std::int64_t n = 30;
        const int id = z.add_tensor("w", dtype::f32, {&n, 1}, nullptr, 0);
        z.commit();
        const auto* w = static_cast<const float*>(z.gather(id));
        const std::vector<float> g(30, 1.0F);
        for (int step = 1; step <= 3; ++step) {
            z.reduce(id, 1, g.data());
            z.step();
            CHECK(w[29] == -static_cast<float>(step));
        }
        z.release(id);
    }
}

TEST_CASE("fill depends on seed, name and element alone") {
    std::vector<float> expected;
    for (const int stage : {0, 1, 2, 3}) {
        zero::engine z(world(), config(stage));
        const std::int64_t n = 1001;
        const int id = z.add_tensor("w", dtype::f32, {&n, 1}, nullptr, 0);
        z.commit();
        z.fill(id, "normal", 1, 2, 42);
        const auto p = values(z, id, n);
        if (expected.empty()) expected = p;
        CHECK(p == expected);
        double mean = 0, squares = 0;
        for (float x : p) mean += x / 1001.0;
        for (float x : p) squares += (x - mean) * (x - mean) / 1000.0;
        CHECK(mean == Approx(1).margin(0.25));
        CHECK(squares == Approx(4).epsilon(0.15));
    }
}

TEST_CASE("states: read, write, dot") {
    for (const int stage : {0, 1, 2, 3}) {
        zero::engine z(world(), config(stage, R"("type": "Adam", "params": {"lr": 0.1})"));
        const std::int64_t n = 70;
        z.add_state("history");
        const int id = z.add_tensor("w", dtype::bf16, {&n, 1}, nullptr, 0);
        z.commit();
        std::vector<float> ramp(70), back(70);
        for (std::size_t i = 0; i < 70; ++i) ramp[i] = static_cast<float>(i) + 0.25F;
        z.scatter_state(id, "history", 0, rank() == 0 ? ramp.data() : nullptr);
        z.scatter_state(id, "master", -1, ramp.data());
        z.gather_state(id, "history", -1, back.data());
        CHECK(back == ramp);
        z.gather_state(id, "master", size() - 1, rank() == size() - 1 ? back.data() : nullptr);
        CHECK(back == ramp);
        double squares = 0;
        for (float x : ramp) squares += static_cast<double>(x) * x;
        CHECK(z.dot("history", "value", -1) == squares);
        std::vector<std::uint16_t> bits(70);
        z.gather_to(id, -1, bits.data());
        CHECK(bits[0] == 0x3e80);  // 0.25: the rounding of the master is everywhere
    }

}

// In arrays of the caller's every rank of stage 0 updates all elements, with states that it holds whole.
TEST_CASE("stage 0: every state that owners wrote into their slices is everybody's before the update") {
    std::vector<float> w(70, 1.0F), g(70, 0.5F);
    const std::int64_t n = 70;
    zero::engine z(world(), config(0, R"("type": "Adam", "params": {"lr": 0.1})"));
    const int id = z.add_tensor("w", dtype::f32, {&n, 1}, w.data(), 0);
    z.commit();
    z.reduce(id, 1, g.data());
    z.finish();
    for (const char* const name : {"exp_avg", "exp_avg_sq"}) {
        const auto part = z.slice(id, name);
        for (std::int64_t i = 0; i < part.count; ++i) static_cast<float*>(part.data)[i] = 0.25F + static_cast<float>(part.first + i);
    }
    z.step();
    std::vector<float> of_first = w;
    MPI_Bcast(of_first.data(), 70, MPI_FLOAT, 0, MPI_COMM_WORLD);
    CHECK((w == of_first));
    CHECK(w[0] != w[69]);
}
