// Threads change no bit: the same training with one and with more threads per rank.
#include "support.hpp"

using namespace engine_test;
using zero::dtype;

TEST_CASE("threads change no bit, in any stage and type, with and without shared memory") {
    const auto train = [](const std::string& optimizer, int stage, dtype type, bool shared, int threads, double& norm) {
        const std::int64_t n = 300'000, small = 77;
        const bool library_owned = stage % 2 == 0;
        zero::engine z(world(), R"({"zero_optimization": {"stage": )" + std::to_string(stage) + R"(, "stage3_param_persistence_threshold": 100},
            "optimizer": {"type": ")" + optimizer + R"(", "params": {"lr": 0.01, "weight_decay": 0.1}}, "gradient_clipping": 0.5,
            "libzero": {"threads": )" + std::to_string(threads) + R"(, "node_shared": )" + (shared ? "true" : "false") + "}}");
        std::vector<std::byte> a(static_cast<std::size_t>(n * zero::size_of(type))), b(static_cast<std::size_t>(small * zero::size_of(type)));
        const int ids[2] = {z.add_tensor("a", type, {&n, 1}, library_owned ? nullptr : a.data(), 0),
                            z.add_tensor("b", type, {&small, 1}, library_owned ? nullptr : b.data(), 0)};
        z.commit();
        for (int step = 0; step < 3; ++step) {
            for (const int id : ids) {
                fetch(z, id);
                std::vector<double> g;
                for (std::int64_t i = 0; i < (id == ids[0] ? n : small); ++i) g.push_back(gradient_of(rank(), step, static_cast<std::size_t>(id), i));
                std::vector<std::byte> own(g.size() * static_cast<std::size_t>(zero::size_of(type)));
                zero::vector::convert(type, own.data(), dtype::f64, g.data(), static_cast<std::int64_t>(g.size()));
                z.reduce(id, 1, own.data());
            }
            z.step();
        }
        norm = z.get_real("grad_norm");
        std::vector<std::byte> all(a.size() + b.size());
        z.gather_to(ids[0], -1, all.data());
        z.gather_to(ids[1], -1, all.data() + a.size());
        return all;
    };
    for (const int stage : {0, 1, 2, 3}) {
        for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16}) {
            for (const bool shared : {true, false}) {
                for (const std::string optimizer : {"AdamW", "Lamb"}) {
                    if (optimizer == "Lamb" && (type == dtype::f64 || !shared)) continue;  // takes the same way through them
                    double norm[2] = {0, 1};
                    INFO(optimizer << " stage " << stage << " " << name(type) << " shared " << shared);
                    const auto one = train(optimizer, stage, type, shared, 1, norm[0]);
                    const auto two = train(optimizer, stage, type, shared, 2, norm[1]);
                    CHECK((one == two));
                    CHECK(norm[0] == norm[1]);
                }
            }
        }
    }
}
