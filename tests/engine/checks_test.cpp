// What commit and step check and say besides training: options that differ between ranks, tensors that got no gradient,
// squares that vanish in fp32; and the forecast of models of several arrays.
#include "support.hpp"

#include "core/log.hpp"

using namespace engine_test;
using zero::code;
using zero::dtype;

namespace {

std::vector<double> values(zero::engine& z, int id, std::int64_t n) {
    std::vector<double> p(static_cast<std::size_t>(n));
    z.gather_to(id, -1, p.data());
    return p;
}

// The code, and its sentence.
template <typename Call>
code answer(const Call& call, std::string& text) {
    try {
        call();
    } catch (const zero::error& e) {
        text = e.what();
        return e.which();
    }
    return code::ok;
}

}  // namespace

TEST_CASE("options that differ between ranks are named with both values, at init and at commit") {
    if (size() == 1) return;
    const bool odd = rank() == size() - 1;
    const auto says = [&](const std::string& text, const char* what) {
        INFO(text);
        CHECK(text.find(what) != std::string::npos);
    };
    std::string text;
    CHECK(answer([&] { zero::engine z(world(), odd ? R"({"zero_optimization": {"stage": 2}})" : R"({"zero_optimization": {"stage": 1}})"); }, text) ==
          code::mismatch);
    says(text, "zero_optimization.stage = 2 here and zero_optimization.stage = 1 on rank 0");
    zero::engine z(world(), R"({"zero_optimization": {"stage": 1}})");
    z.set("libzero.stale_check", std::int64_t{0});
    if (odd) z.set("gradient_clipping", 2.5);
    CHECK(answer([&] { z.commit(); }, text) == code::mismatch);
    says(text, "gradient_clipping = 2.5 here and gradient_clipping is not set on rank 0");
    if (!odd) {
        z.set("gradient_clipping", 2.5);
        z.set("optimizer.params.lr", 0.5);
        z.set("zero_optimization.sub_group_size", std::int64_t{7});
    }
    CHECK(answer([&] { z.commit(); }, text) == code::mismatch);
    says(text, "optimizer.params.lr is not set here and optimizer.params.lr = 0.5 on rank 0");
    if (odd) z.set("optimizer.params.lr", 0.5);
    CHECK(answer([&] { z.commit(); }, text) == code::mismatch);
    says(text, "zero_optimization.sub_group_size is not set here and zero_optimization.sub_group_size = 7 on rank 0");
    if (odd) z.set("zero_optimization.sub_group_size", std::int64_t{7});
    z.commit();
}

TEST_CASE("a helper thread that is asked for and cannot be had is refused") {
    int level = 0;
    MPI_Query_thread(&level);
    const bool possible = size() == 1 || level == MPI_THREAD_MULTIPLE;
    for (const std::string wish : {"auto", "on"}) {
        zero::engine z(world(), R"({"zero_optimization": {"stage": 1, "overlap_comm": true}, "libzero": {"node_shared": false}})");
        z.set("libzero.overlap_thread", wish);
        std::string text;
        INFO(wish << ": " << text);
        CHECK(answer([&] { z.commit(); }, text) == (possible || wish == "auto" ? code::ok : code::unsupported));
        CHECK((text.find("MPI_THREAD_MULTIPLE") != std::string::npos) == (!possible && wish == "on"));
    }
}

TEST_CASE("ignore_unused_parameters: false names the tensor that no rank handed over, and the window goes on") {
    for (const int stage : {0, 1, 2, 3}) {
        setup s;
        s.stage = stage;
        s.optimizer = sgd;
        s.bucket = 16;
        s.accumulation = 2;
        s.more_zero = ", \"ignore_unused_parameters\": false";
        zero::engine z(world(), json(s));
        const std::int64_t n = 20, nothing = 0;
        const int still = z.add_group(R"({"frozen": true})");
        const int a = z.add_tensor("a", dtype::f64, {&n, 1}, nullptr, 0), b = z.add_tensor("b", dtype::f64, {&n, 1}, nullptr, 0);
        z.add_tensor("empty", dtype::f64, {&nothing, 1}, nullptr, 0);
        z.add_tensor("frozen", dtype::f64, {&n, 1}, nullptr, still);
        z.commit();
        const std::vector<double> g(20, 2.0 * size());
        const auto hand_over = [&](int id, bool everyone) {
            fetch(z, id);
            if (everyone || rank() == size() - 1) z.reduce(id, 1, g.data());
        };
        INFO("stage " << stage);
        hand_over(a, true);
        z.step();  // inside the window nothing is missing yet
        std::string text;
        CHECK(answer([&] { z.step(); }, text) == code::state);
        CHECK(text.find("'b' got no gradient") != std::string::npos);
        CHECK((z.get_integer("step") == 0 && z.get_integer("micro_step") == 1));
        CHECK(values(z, a, n) == std::vector<double>(20, 0.0));
        hand_over(b, false);  // one rank is enough
        z.step();
        CHECK(z.get_integer("step") == 1);
        CHECK(values(z, a, n) == std::vector<double>(20, -static_cast<double>(size())));
        CHECK(values(z, b, n) == std::vector<double>(20, -1.0));
        // In the first micro-step of a window alone.
        hand_over(a, true);
        hand_over(b, true);
        z.step();
        z.step();
        CHECK(z.get_integer("step") == 2);
        // Frozen since.
        z.set("groups.0.frozen", std::int64_t{1});
        z.step();
        z.step();
        CHECK(z.get_integer("step") == 3);
    }
}

TEST_CASE("stage 3: a step to which nobody hands over anything is no training of old values") {
    for (const bool parts : {false, true}) {
        setup s;
        s.stage = 3;
        s.optimizer = sgd;
        zero::engine z(world(), json(s));
        const std::int64_t n = 20;
        const int id = z.add_tensor("w", dtype::f64, {&n, 1}, nullptr, 0);
        z.commit();
        const std::vector<double> g(20, 1.0);
        fetch(z, id);
        z.reduce(id, 1, g.data());
        z.step();
        if (parts) z.finish();
        z.step();
        CHECK(z.get_integer("step") == 2);
        CHECK(values(z, id, n) == std::vector<double>(20, -1.0));
    }
}

TEST_CASE("squares of gradients that vanish in fp32 are said once, with the group") {
    for (const char* optimizer : {"Adam", "Lamb", "Lion"}) {
        for (const int stage : {0, 1, 2, 3}) {
            setup s;
            s.stage = stage;
            s.optimizer = "\"type\": \"" + std::string(optimizer) + "\"";
            zero::engine z(world(), json(s));
            std::vector<std::string> said;
            z.logger().redirect([&](zero::log_level level, const std::string& text) {
                if (level == zero::log_level::warning) said.push_back(text);
            });
            const std::int64_t n = 640;
            const dtype types[] = {dtype::f32, dtype::f32, dtype::f64, dtype::f32};
            const double sizes[] = {1, 1e-25, 1e-25, 0};  // seen; not seen; seen in fp64; no moments to begin with
            std::vector<int> ids;
            for (int group = 0; group < 4; ++group) {
                if (group > 0) REQUIRE(z.add_group("") == group);
                ids.push_back(z.add_tensor("", types[group], {&n, 1}, nullptr, group));
            }
            z.commit();
            for (int step = 0; step < 6; ++step) {  // one group is judged in each step from the second on
                for (std::size_t t = 0; t < 4; ++t) {
                    fetch(z, ids[t]);
                    const std::vector<double> wide(640, sizes[t]);
                    std::vector<std::byte> g(640 * 8);
                    zero::vector::convert(types[t], g.data(), dtype::f64, wide.data(), n);
                    z.reduce(ids[t], 1, g.data());
                }
                z.step();
            }
            INFO(optimizer << " stage " << stage);
            REQUIRE(said.size() == (std::string(optimizer) == "Lion" ? 0 : 1));
            if (!said.empty()) CHECK(said[0].find("group 1: the squares of all gradients are 0") != std::string::npos);
        }
    }
}

TEST_CASE("whether squares vanish is judged over the slices of all ranks, and said on all of them") {
    struct { double first, rest; std::size_t warnings; } const cases[] = {{1, 1e-25, 0}, {1e-25, 1, 0}, {1e-25, 0, 1}};
    for (const int stage : {0, 1, 2, 3}) {
        for (const auto& one : cases) {
            setup s;
            s.stage = stage;
            s.optimizer = R"("type": "Adam")";
            zero::engine z(world(), json(s));
            std::size_t warnings = 0;
            z.logger().redirect([&](zero::log_level level, const std::string&) { warnings += level == zero::log_level::warning; });
            const std::int64_t n = 640;
            const int id = z.add_tensor("", dtype::f32, {&n, 1}, nullptr, 0);
            z.commit();
            std::vector<float> g(static_cast<std::size_t>(n), static_cast<float>(one.rest));
            g[0] = static_cast<float>(one.first);  // of one rank's slice
            for (int step = 0; step < 3; ++step) {
                fetch(z, id);
                z.reduce(id, 1, g.data());
                z.step();
            }
            INFO("stage " << stage << ", " << one.first << ", then " << one.rest);
            CHECK(warnings == one.warnings);
        }
    }
}

TEST_CASE("forecast and ledger are equal for six arrays of the caller's and a state of its own") {
    for (const dtype type : {dtype::f32, dtype::bf16}) {
        for (const int stage : {0, 1, 2, 3}) {
            for (const bool offload : {false, true}) {
                for (const std::int64_t bucket : {1, 3000, 500'000'000}) {
                    if (offload && stage == 0) continue;
                    setup s;
                    s.stage = stage;
                    s.type = type;
                    s.bucket = bucket;
                    s.persistence = 40;  // the smallest stay whole in stage 3
                    s.more_zero = R"(, "stage3_prefetch_bucket_size": 0)";  // one tensor gathered at a time, as the forecast says
                    if (offload) s.more_zero += R"(, "offload_optimizer": {"device": "cpu"})";
                    zero::engine z(world(), json(s));
                    const std::int64_t counts[] = {1000, 7, 2500, 33, 64, 1};
                    std::vector<std::vector<std::byte>> arrays;
                    const int still = z.add_group(R"({"frozen": true})");
                    z.add_state("history");
                    for (std::size_t t = 0; t < 6; ++t) {
                        arrays.emplace_back(static_cast<std::size_t>(counts[t] * zero::size_of(type)));
                        z.add_tensor("", type, {&counts[t], 1}, arrays[t].data(), t == 4 ? still : 0);
                    }
                    const auto forecast = z.forecast(zero::place::host);
                    z.commit();
                    INFO("stage " << stage << " " << name(type) << " offload " << offload << " bucket " << bucket);
                    CHECK(z.memory(zero::place::host).first == forecast.first);
                    for (int step = 0; step < 2; ++step) {
                        for (int t = 5; t >= 0; --t) {
                            fetch(z, t);
                            z.reduce(t, 1, arrays[static_cast<std::size_t>(t)].data());
                        }
                        z.step();
                    }
                    CHECK(z.memory(zero::place::host).first == forecast.first);
                    CHECK(z.memory(zero::place::host).second == forecast.second);
                }
            }
        }
    }
}
