// Threads change no bit: the same training with one and with more threads per rank.
#include "support.hpp"

#include <map>
#include <tuple>

#include "core/crew.hpp"

using namespace engine_test;
using zero::dtype;

namespace {

constexpr std::int64_t large = 100'000, small = 77;

struct training {
    std::string optimizer = "AdamW";
    int stage = 0;
    dtype type = dtype::f32;
    bool shared = true, exact = false;
    int threads = 1;
    double norm = 0;  // found
    int members = 0;  // threads that there were
};

// Made once, for they take longer than the training.
const std::vector<std::byte>& gradient(dtype type, int step, std::size_t tensor) {
    static std::map<std::tuple<dtype, int, std::size_t>, std::vector<std::byte>> made;
    auto& one = made[{type, step, tensor}];
    if (one.empty()) {
        std::vector<double> wide;
        for (std::int64_t i = 0; i < (tensor == 0 ? large : small); ++i) wide.push_back(gradient_of(rank(), step, tensor, i));
        one.resize(wide.size() * static_cast<std::size_t>(zero::size_of(type)));
        zero::vector::convert(type, one.data(), dtype::f64, wide.data(), static_cast<std::int64_t>(wide.size()));
    }
    return one;
}

std::vector<std::byte> train(training& how) {
    const bool library_owned = how.stage % 2 == 0;
    zero::engine z(world(), R"({"zero_optimization": {"stage": )" + std::to_string(how.stage) + R"(, "stage3_param_persistence_threshold": 100},
        "optimizer": {"type": ")" + how.optimizer + R"(", "params": {"lr": 0.01, "weight_decay": 0.1}}, "gradient_clipping": 0.5,
        "fp16": {"enabled": false}, "gradient_accumulation_steps": )" + (how.exact ? "2" : "1") +
        R"(, "libzero": {"threads": )" + std::to_string(how.threads) + R"(, "node_shared": )" + (how.shared ? "true" : "false") +
        R"(, "reproducible": )" + (how.exact ? "true" : "false") + "}}");
    const std::size_t width = static_cast<std::size_t>(zero::size_of(how.type));
    std::vector<std::byte> a(static_cast<std::size_t>(large) * width), b(static_cast<std::size_t>(small) * width);
    const int ids[2] = {z.add_tensor("a", how.type, {&large, 1}, library_owned ? nullptr : a.data(), 0),
                        z.add_tensor("b", how.type, {&small, 1}, library_owned ? nullptr : b.data(), 0)};
    z.commit();
    how.members = static_cast<int>(z.get_integer("threads"));
    for (int step = 0; step < 2; ++step) {
        for (const int id : ids) fetch(z, id);
        for (int micro = 0; micro < (how.exact ? 2 : 1); ++micro) {
            for (const int id : ids) {
                const auto& given = gradient(how.type, step + micro, static_cast<std::size_t>(id));
                void* place = how.stage % 2 == 0 ? z.gradient(id) : nullptr;
                if (place != nullptr) std::memcpy(place, given.data(), given.size());
                z.reduce(id, step == 0 ? 1 : 0.3, place != nullptr ? nullptr : given.data());
            }
            z.step();
        }
    }
    how.norm = z.get_real("grad_norm");
    std::vector<std::byte> all(a.size() + b.size() + 2 * static_cast<std::size_t>(large) * sizeof(double));
    z.gather_to(ids[0], -1, all.data());
    z.gather_to(ids[1], -1, all.data() + a.size());
    z.gather_state(ids[0], "exp_avg", -1, all.data() + a.size() + b.size());
    z.gather_state(ids[0], "exp_avg_sq", -1, all.data() + a.size() + b.size() + static_cast<std::size_t>(large) * sizeof(double));
    return all;
}

void check_threads(training how) {
    INFO(how.optimizer << " stage " << how.stage << " " << name(how.type) << " shared " << how.shared << " exact " << how.exact);
    const auto alone = train(how);
    for (const int threads : {2, 3}) {
        if (threads > 2 && zero::threads_to_use(threads) < threads) continue;  // no such number of cores: the same as with two
        training more = how;
        more.threads = threads;
        const auto together = train(more);
        CHECK(more.members == zero::threads_to_use(threads));
        CHECK((alone == together));
        CHECK(how.norm == more.norm);
    }
}

}  // namespace

TEST_CASE("threads change no bit, in any stage and type, with and without shared memory") {
    for (const int stage : {0, 1, 2, 3}) {
        for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
            for (const bool shared : {true, false}) {
                check_threads({"AdamW", stage, type, shared});
                if (type == dtype::f32 && stage < 3) check_threads({"AdamW", stage, type, shared, true});
                if (type == dtype::bf16 && shared) check_threads({"Lamb", stage, type, shared});  // takes the same way through the others
            }
        }
    }
}
