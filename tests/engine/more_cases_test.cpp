// More faults that users of similar systems reported: uneven parts, missing gradients, buckets that begin anywhere, first
// rates. And list gathers with prefetch, contributions of different width, values rewritten under open copies.
#include "support.hpp"

#include "core/error.hpp"

using namespace engine_test;
using zero::code;
using zero::dtype;

namespace {

const std::string adam = R"("type": "Adam", "params": {"lr": 0.1, "betas": [0.9, 0.999], "eps": 1e-8})";

std::string config(int stage, const std::string& optimizer, const std::string& zero_more = "", const std::string& more = "",
                   std::int64_t bucket = 500'000'000) {
    setup s;
    s.stage = stage;
    s.optimizer = optimizer;
    s.more_zero = zero_more;
    s.more = more;
    s.bucket = bucket;
    return json(s);
}

std::vector<double> values(zero::engine& z, int id, dtype type, std::int64_t n) {
    std::vector<std::byte> raw(static_cast<std::size_t>(n) * 8 + 8);
    std::vector<double> wide(static_cast<std::size_t>(n));
    z.gather_to(id, -1, raw.data());
    zero::vector::convert(dtype::f64, wide.data(), type, raw.data(), n);
    return wide;
}

void hand_over(zero::engine& z, int id, dtype type, double factor, const std::vector<double>& g) {
    std::vector<std::byte> typed(g.size() * 8 + 8);
    zero::vector::convert(type, typed.data(), dtype::f64, g.data(), static_cast<std::int64_t>(g.size()));
    z.reduce(id, factor, typed.data());
}

// After one SGD-1 step from 0 the parameters show the mean gradient; every element of every rank is different.
void check_sums(int stage, std::int64_t bucket, const std::vector<std::int64_t>& sizes) {
    zero::engine z(world(), config(stage, sgd, "", "", bucket));
    std::vector<int> ids;
    for (const std::int64_t n : sizes) ids.push_back(z.add_tensor("", dtype::f64, {&n, 1}, nullptr, 0));
    z.commit();
    const auto g = [](int r, std::size_t t, std::int64_t i) { return 1000.0 * (r + 1) + 100.0 * static_cast<double>(t) + static_cast<double>(i); };
    for (int step = 1; step <= 2; ++step) {
        for (std::size_t t = 0; t < sizes.size(); ++t) {
            fetch(z, ids[t]);
            std::vector<double> mine;
            for (std::int64_t i = 0; i < sizes[t]; ++i) mine.push_back(g(rank(), t, i));
            z.reduce(ids[t], 1, mine.data());
        }
        z.step();
        for (std::size_t t = 0; t < sizes.size(); ++t) {
            const auto p = values(z, ids[t], dtype::f64, sizes[t]);
            for (std::int64_t i = 0; i < sizes[t]; ++i) {
                double mean = 0;
                for (int r = 0; r < size(); ++r) mean += g(r, t, i) / size();
                REQUIRE(p[static_cast<std::size_t>(i)] == Approx(-step * mean).epsilon(1e-12));
            }
        }
    }
}

}  // namespace

TEST_CASE("S01: every rank gets the sum of its own uneven part") {
    for (const int stage : {0, 1, 2, 3}) {
        check_sums(stage, 500'000'000, {4});        // parts of 1, 2, 1 and padding
        check_sums(stage, 500'000'000, {50, 1, 2}); // several slices, the last not full
    }
}

TEST_CASE("S13: buckets that begin at offsets no multiple of the number of ranks") {
    for (const int stage : {0, 1, 2, 3}) {
        check_sums(stage, 7, {7, 12, 9});
        check_sums(stage, 1, {7, 1, 13, 2});
    }
}

TEST_CASE("S14: many tiny tensors beside a big one, collected on rank 0 alone") {
    for (const int stage : {0, 1, 2, 3}) {
        zero::engine z(world(), config(stage, adam));
        std::vector<int> ids;
        for (int t = 0; t < 30; ++t) {
            const std::int64_t n = t == 15 ? 5000 : 1;
            ids.push_back(z.add_tensor("", dtype::f32, {&n, 1}, nullptr, 0));
        }
        z.commit();
        for (const int id : ids) z.fill(id, "constant", id, 0, 0);
        for (const int id : ids) {
            std::vector<float> p(5000, -1.0F), m(5000, -1.0F);
            z.gather_to(id, 0, rank() == 0 ? p.data() : nullptr);
            z.gather_state(id, "exp_avg", 0, rank() == 0 ? m.data() : nullptr);
            if (rank() != 0) continue;
            const std::size_t n = id == 15 ? 5000 : 1;
            CHECK((p[0] == static_cast<float>(id) && p[n - 1] == static_cast<float>(id) && m[n - 1] == 0));
        }
    }
}

TEST_CASE("S03: a tensor without gradient has gradient 0, and no step count is moved by it") {
    for (const int stage : {0, 1, 2, 3}) {
        zero::engine z(world(), config(stage, adam));
        const std::int64_t n = 5;
        const int a = z.add_tensor("a", dtype::f64, {&n, 1}, nullptr, 0), b = z.add_tensor("b", dtype::f64, {&n, 1}, nullptr, 0);
        z.commit();
        const std::vector<double> ones(5, 1.0);
        double p = 0, m = 0, v = 0;
        for (int step = 1; step <= 3; ++step) {
            const double g = step == 2 ? 0 : 1;
            fetch(z, a);
            fetch(z, b);
            z.reduce(a, 1, ones.data());
            if (g != 0) z.reduce(b, 1, ones.data());
            z.step();
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            p -= 0.1 * (m / (1 - std::pow(0.9, step))) / (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8);
        }
        for (const double x : values(z, a, dtype::f64, n)) CHECK(x == Approx(-0.3 / (1 + 1e-8)).epsilon(1e-12));
        for (const double x : values(z, b, dtype::f64, n)) CHECK(x == Approx(p).epsilon(1e-12));
    }
}

TEST_CASE("S04: Adam in fp16 with a zero gradient moves nothing") {
    for (const int stage : {0, 1, 2, 3}) {
        zero::engine z(world(), config(stage, adam, "", R"(, "fp16": {"enabled": true, "initial_scale_power": 8})"));
        const std::int64_t n = 9;
        const int id = z.add_tensor("w", dtype::f16, {&n, 1}, nullptr, 0);
        z.commit();
        z.fill(id, "constant", 3, 0, 0);
        for (int step = 0; step < 3; ++step) {
            fetch(z, id);
            hand_over(z, id, dtype::f16, 1, std::vector<double>(9, 0.0));
            z.step();
        }
        CHECK(values(z, id, dtype::f16, n) == std::vector<double>(9, 3.0));
        CHECK(z.get_integer("skipped_steps") == 0);
    }
}

TEST_CASE("S05 and S06: the rates that the first updates really use") {
    // docs/options.md: the first update uses t = -1 (the rate at the start), the second t = 0. Rate 0 leaves the model as it is.
    for (const int stage : {0, 3}) {
        zero::engine z(world(), config(stage, sgd, "", R"(, "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 1,
            "warmup_num_steps": 10, "warmup_type": "log"}})"));
        const std::int64_t n = 3;
        const int id = z.add_tensor("w", dtype::f64, {&n, 1}, nullptr, 0);
        z.commit();
        const std::vector<double> ones(3, 1.0);
        double p = 0;
        for (const double rate : {0.0, 0.0, 0.301029995663981, 0.477121254719662, 0.602059991327962}) {
            CHECK(z.get_real("lr") == Approx(rate).margin(1e-15).epsilon(1e-14));
            fetch(z, id);
            z.reduce(id, 1, ones.data());
            z.step();
            p -= rate;
            CHECK(values(z, id, dtype::f64, n)[2] == Approx(p).margin(1e-14));
        }
    }
}

TEST_CASE("S07 and S09: Adam decays decoupled and before the update, unless adam_w_mode is false") {
    struct entry { const char* params; double g, expected; };
    for (const entry& e : {entry{R"("weight_decay": 0.1)", 0, 0.99}, entry{R"("weight_decay": 0.1, "adam_w_mode": false)", 0, 0.90},
                           entry{R"("weight_decay": 0.1)", 1, 0.89}}) {
        for (const int stage : {0, 1, 2, 3}) {
            zero::engine z(world(), config(stage, std::string(R"("type": "Adam", "params": {"lr": 0.1, )") + e.params + "}"));
            const std::int64_t n = 5;
            const int id = z.add_tensor("w", dtype::f64, {&n, 1}, nullptr, 0);
            z.commit();
            z.fill(id, "constant", 1, 0, 0);
            fetch(z, id);
            hand_over(z, id, dtype::f64, 1, std::vector<double>(5, e.g));
            z.step();
            for (const double x : values(z, id, dtype::f64, n)) CHECK(x == Approx(e.expected).epsilon(1e-7));
        }
    }
}

TEST_CASE("B10: Lion's decay does not enter the sign, in any stage") {
    for (const int stage : {0, 1, 2, 3}) {
        for (const double sign : {1.0, -1.0}) {
            zero::engine z(world(), config(stage, R"("type": "Lion", "params": {"lr": 0.1, "betas": [0.9, 0.99], "weight_decay": 0.1})"));
            const std::int64_t n = 7;
            const int id = z.add_tensor("w", dtype::f64, {&n, 1}, nullptr, 0);
            z.commit();
            z.fill(id, "constant", sign, 0, 0);
            const double expected[2] = {1.09, 1.1791}, momentum[2] = {-1e-4, -1.99e-4};
            for (int step = 0; step < 2; ++step) {
                fetch(z, id);
                hand_over(z, id, dtype::f64, 1, std::vector<double>(7, -0.01 * sign));
                z.step();
                std::vector<double> m(7);
                z.gather_state(id, "exp_avg", -1, m.data());
                CHECK(values(z, id, dtype::f64, n)[6] == Approx(sign * expected[step]).epsilon(1e-12));
                CHECK(m[6] == Approx(sign * momentum[step]).epsilon(1e-12));
            }
        }
    }
}

TEST_CASE("B26: a bucket size of 5e8 costs a small model nothing") {
    for (const int stage : {0, 1, 2, 3}) {
        for (const char* spelled : {"5e8", "500000000.0"}) {
            zero::engine z(world(), std::string(R"({"zero_optimization": {"reduce_bucket_size": )") + spelled + R"(, "stage": )" + std::to_string(stage) + "}}");
            const std::int64_t n = 5;
            z.add_tensor("w", dtype::f32, {&n, 1}, nullptr, 0);
            z.commit();
            CHECK(z.get_integer("zero_optimization.reduce_bucket_size") == 500'000'000);
            CHECK(z.memory(zero::place::host).second < 64 * 1024);
        }
    }
}

TEST_CASE("S20: lists of gathers with prefetch and overlap: right from the second step on, and gone afterwards") {
    for (const int reuse : {0, 1000}) {
        zero::engine z(world(), config(3, sgd, R"(, "overlap_comm": true, "stage3_prefetch_bucket_size": 200, "stage3_max_reuse_distance": )" +
                                                   std::to_string(reuse)));
        std::vector<int> ids;
        std::vector<std::int64_t> sizes;
        for (int t = 0; t < 9; ++t) {
            sizes.push_back(t == 4 ? 0 : 17 + 10 * t);
            ids.push_back(z.add_tensor("", dtype::f32, {&sizes.back(), 1}, nullptr, 0));
        }
        z.commit();
        const std::int64_t own = z.get_integer("live_elements");
        const std::vector<std::vector<int>> lists{{0, 1, 2}, {3}, {4, 5}, {6, 7, 8}};
        const auto visit = [&](const std::vector<int>& list, int step, bool backward) {
            std::vector<void*> whole(list.size());
            z.gather_list(list, whole.data());
            for (std::size_t k = 0; k < list.size(); ++k) {
                const auto n = static_cast<std::size_t>(sizes[static_cast<std::size_t>(list[k])]);
                const auto* w = static_cast<const float*>(whole[k]);
                std::vector<float> g(n + 1);
                for (std::size_t i = 0; i < n; ++i) {
                    REQUIRE(w[i] == -static_cast<float>(step * (list[k] + 1)) * static_cast<float>(i % 5));
                    g[i] = static_cast<float>(list[k] + 1) * static_cast<float>(i % 5);
                }
                if (backward) z.reduce(list[k], 1, g.data());
            }
            z.release_list(list);
        };
        for (int step = 0; step < 5; ++step) {
            for (const auto& list : lists) visit(list, step, false);
            if (step == 2) visit({8, 0}, step, false);      // off the record once
            if (step == 3) visit({2, 2, 1}, step, false);   // the same tensor twice in a list
            for (auto list = lists.rbegin(); list != lists.rend(); ++list) visit(*list, step, true);
            z.step();
            CHECK(z.get_integer("live_elements") == own);
        }
    }
}

TEST_CASE("a list of gathers is all or nothing, and so is a list of releases") {
    zero::engine z(world(), config(3, sgd, R"(, "stage3_max_live_parameters": 100)"));
    const std::int64_t n = 60;
    const int a = z.add_tensor("", dtype::f32, {&n, 1}, nullptr, 0), b = z.add_tensor("", dtype::f32, {&n, 1}, nullptr, 0);
    z.commit();
    const std::int64_t own = z.get_integer("live_elements");
    void* whole[2] = {nullptr, nullptr};
    const int both[2] = {a, b}, twice[2] = {a, a};
    CHECK(code_of([&] { z.gather_list(both, whole); }) == code::memory);
    CHECK(code_of([&] { z.release(a); }) == code::state);
    CHECK(z.get_integer("live_elements") == own);
    z.gather(a);
    CHECK(code_of([&] { z.release_list(both); }) == code::state);
    CHECK(code_of([&] { z.release_list(twice); }) == code::state);  // gathered once only
    z.release(a);
    CHECK(z.get_integer("live_elements") == own);
}

TEST_CASE("contributions that travel in 16 and in 32 bits may meet") {
    const std::int64_t n = 700;
    for (const dtype type : {dtype::bf16, dtype::f16}) {
        for (const int stage : {0, 1, 2, 3}) {
            for (const bool overlap : {false, true}) {
                for (int wide = 0; wide < size(); ++wide) {  // the rank that hands over with a factor
                    zero::engine z(world(), config(stage, sgd, std::string(R"(, "overlap_comm": )") + (overlap ? "true" : "false"), "", 300));
                    std::vector<int> ids;
                    for (int t = 0; t < 3; ++t) ids.push_back(z.add_tensor("", type, {&n, 1}, nullptr, 0));
                    z.commit();
                    for (int step = 1; step <= 3; ++step) {
                        for (int t = 0; t < 3; ++t) {
                            fetch(z, ids[static_cast<std::size_t>(t)]);
                            // Multiples of 2 P: the mean is small and whole, so that every type holds it.
                            std::vector<double> g(700);
                            for (std::size_t i = 0; i < g.size(); ++i) g[i] = 2.0 * size() * static_cast<double>((i + static_cast<std::size_t>(t)) % 3);
                            hand_over(z, ids[static_cast<std::size_t>(t)], type, rank() == wide ? 0.5 : 1, g);
                        }
                        z.step();
                    }
                    for (int t = 0; t < 3; ++t) {
                        const auto p = values(z, ids[static_cast<std::size_t>(t)], type, n);
                        const double share = 0.5 + (size() - 1);
                        for (std::size_t i = 0; i < p.size(); ++i)
                            REQUIRE(p[i] == -3 * 2 * share * static_cast<double>((i + static_cast<std::size_t>(t)) % 3));
                    }
                }
            }
        }
    }
}

TEST_CASE("values rewritten under open copies: what stays open counts as fetched, what was released does not") {
    zero::engine z(world(), config(3, sgd));
    const std::int64_t n = 40;
    const int id = z.add_tensor("w", dtype::f32, {&n, 1}, nullptr, 0);
    z.commit();
    const std::vector<float> g(40, 1.0F);
    const auto* w = static_cast<const float*>(z.gather(id));
    const auto part = z.owned(id, "value");  // as zero_load writes them
    for (std::int64_t i = 0; i < part.count; ++i) static_cast<float*>(part.data)[i] = 5;
    z.adopt();
    CHECK((w[0] == 5 && w[39] == 5));
    z.reduce(id, 1, g.data());
    z.step();
    CHECK((w[0] == 4 && w[39] == 4));
    z.release(id);
    z.adopt();
    z.reduce(id, 1, g.data());
    CHECK(code_of([&] { z.step(); }) == code::state);
    fetch(z, id);
    z.step();
    CHECK(values(z, id, dtype::f32, n)[39] == 3);
}
