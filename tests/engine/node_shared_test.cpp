// Ranks that share memory give the bits of ranks that talk by plain MPI: values, states and norm, in every stage, type and
// optimizer, over random shapes. And what only sharing could break: contexts beside each other, one whose commit fails and
// is repeated, and what a context leaves behind. Edits of gathered values: node_edits_test.cpp.
#include <cstdlib>
#include <random>

#include "device/processes.hpp"
#include "support.hpp"

using namespace engine_test;
using zero::dtype;

namespace {

struct variant {
    int stage = 0, accumulation = 1;
    dtype type = dtype::f32;
    std::string optimizer;
    bool clipping = false;
    unsigned seed = 0;
};

const std::vector<std::string>& optimizers() {
    static const std::vector<std::string> all{
        R"("type": "Adam", "params": {"lr": 0.01, "weight_decay": 0.1, "adam_w_mode": false})",
        R"("type": "AdamW", "params": {"lr": 0.01, "weight_decay": 0.1})",
        R"("type": "Lion", "params": {"lr": 0.01, "betas": [0.9, 0.99], "weight_decay": 0.1})",
        R"("type": "SGD", "params": {"lr": 0.01, "momentum": 0.9})",
        R"("type": "Adagrad", "params": {"lr": 0.01})",
        R"("type": "Lamb", "params": {"lr": 0.01, "weight_decay": 0.1})"};
    return all;
}

// Everything that a run is judged by.
struct outcome {
    std::vector<std::byte> bits;
    std::vector<double> norms;
    std::int64_t forecast = 0, committed = 0, trained = 0, sharing = 0;
};

// Random tensors in three groups, one of them frozen, the caller's and the library's, trained on random gradients that
// depend on what the tensors hold.
class trainee {
public:
    trainee(const variant& what, bool shared) : how(what), random(what.seed) {
        const std::int64_t buckets[4] = {1, 300, 2000, 500'000'000};
        setup s;
        s.stage = how.stage;
        s.type = how.type;
        s.optimizer = how.optimizer;
        s.accumulation = how.accumulation;
        s.bucket = buckets[random() % 4];
        s.persistence = random() % 2 == 0 ? 0 : 100;
        s.more_zero = std::string(", \"overlap_comm\": ") + (random() % 2 == 0 ? "true" : "false") +
                      ", \"allgather_bucket_size\": " + std::to_string(random() % 2 == 0 ? 256 : 500'000'000);
        s.more = std::string(how.clipping ? ", \"gradient_clipping\": 0.5" : "") + ", \"libzero\": {\"node_shared\": " + (shared ? "true" : "false") + "}";
        z = std::make_unique<zero::engine>(world(), json(s));
        z->add_group(R"({"frozen": true})");
        z->add_group(R"({"lr": 0.003})");
        z->add_state("mine");
        const std::int64_t tensors = 3 + static_cast<std::int64_t>(random() % 10);
        for (std::int64_t t = 0; t < tensors; ++t) add(random() % 12 == 0 ? 0 : static_cast<std::int64_t>(random() % (t % 4 == 3 ? 9000 : 400)));
        seen.forecast = z->forecast(zero::place::host).first;
        z->commit();
        seen.committed = seen.trained = z->memory(zero::place::host).first;
        for (std::size_t t = 0; t < counts.size(); ++t) {
            if (random() % 3 == 0) z->fill(static_cast<int>(t), "normal", 0, 1, 7);
        }
        seen.sharing = z->get_integer("ranks_sharing_values");
    }

    outcome train(int updates) {
        for (int update = 0; update < updates; ++update) {
            for (int micro = 0; micro < how.accumulation; ++micro) micro_step();
            seen.norms.push_back(z->get_real("grad_norm"));
        }
        look();
        if (in_order()) seen.trained = z->memory(zero::place::host).first - z->get_integer("memory.handoff");
        return seen;
    }

    std::unique_ptr<zero::engine> z;

private:
    void add(std::int64_t count) {
        const bool library = random() % 2 == 0;
        const int group = static_cast<int>(random() % 3);
        arrays.emplace_back(static_cast<std::size_t>(count * zero::size_of(how.type)) + 1);
        fill(arrays.back().data(), count, random);
        z->add_tensor("t" + std::to_string(counts.size()), how.type, {&count, 1}, library ? nullptr : arrays.back().data(), group);
        counts.push_back(count);
        groups.push_back(group);
    }
    void fill(std::byte* to, std::int64_t count, std::mt19937_64& from) const {
        std::vector<double> wide;
        for (std::int64_t i = 0; i < count; ++i) wide.push_back((static_cast<double>(from() % 20001) - 10000) / 7000);
        zero::vector::convert(how.type, to, dtype::f64, wide.data(), count);
    }
    // Half of the runs keep the order of a backward pass; in the others ranks leave out some, and staging buckets grow.
    bool in_order() const { return how.seed % 2 == 0; }
    void micro_step() {
        std::mt19937_64 own(how.seed * 1000 + static_cast<unsigned>(rank()) + 77 * static_cast<unsigned>(++micro_steps_));
        for (std::size_t k = 0; k < counts.size(); ++k) {
            const std::size_t t = in_order() ? counts.size() - 1 - k : k;
            const int id = static_cast<int>(t);
            const void* values = z->gather(id);
            const auto bytes = static_cast<std::size_t>(counts[t] * zero::size_of(how.type));
            std::uint64_t hash = 0;
            for (std::size_t i = 0; i < bytes; ++i) hash = hash * 31 + static_cast<std::uint64_t>(static_cast<const std::byte*>(values)[i]);
            z->release(id);
            if (!in_order() && own() % 8 == 0) continue;  // this rank has nothing for it
            std::mt19937_64 gradient(hash ^ own());
            if (own() % 3 == 0 && groups[t] != 1) {
                void* place = z->gradient(id);
                fill(static_cast<std::byte*>(counts[t] == 0 ? gradient_.data() : place), counts[t], gradient);
                z->reduce(id, 1, nullptr);
            } else {
                gradient_.resize(bytes + 1);
                fill(gradient_.data(), counts[t], gradient);
                z->reduce(id, own() % 5 == 0 ? 0.37 : 1, gradient_.data());
            }
        }
        z->step();
    }
    void look() {
        for (std::size_t t = 0; t < counts.size(); ++t) {
            const int id = static_cast<int>(t);
            take(t, zero::size_of(how.type), [&](void* to) { z->gather_to(id, -1, to); });
            for (const auto& name : z->state_names(id)) take(t, zero::size_of(zero::sum_type(how.type)), [&](void* to) { z->gather_state(id, name, -1, to); });
            if (!z->state_names(id).empty()) take(t, zero::size_of(zero::sum_type(how.type)), [&](void* to) { z->gather_state(id, "master", -1, to); });
        }
    }
    template <typename Gather>
    void take(std::size_t t, std::int64_t width, const Gather& gather) {
        const std::size_t before = seen.bits.size(), bytes = static_cast<std::size_t>(counts[t] * width);
        seen.bits.resize(before + bytes + 1);
        gather(seen.bits.data() + before);
    }

    variant how;
    std::mt19937_64 random;
    std::vector<std::int64_t> counts;
    std::vector<int> groups;  // 1: frozen
    std::vector<std::vector<std::byte>> arrays;
    std::vector<std::byte> gradient_ = std::vector<std::byte>(1);
    int micro_steps_ = 0;
    outcome seen;
};

bool node_shared_is_forced() { return std::getenv("ZERO_LIBZERO_NODE_SHARED") != nullptr; }

void compare(const variant& one) {
    if (node_shared_is_forced()) return;
    INFO("stage " << one.stage << " " << zero::name(one.type) << " " << one.optimizer << " clipping " << one.clipping << " A "
                  << one.accumulation << " seed " << one.seed);
    const outcome plain = trainee(one, false).train(2), shared = trainee(one, true).train(2);
    CHECK(plain.bits == shared.bits);
    CHECK(plain.norms == shared.norms);
    CHECK(plain.forecast == plain.committed);
    CHECK(shared.forecast == shared.committed);
    CHECK(plain.trained - plain.committed == shared.trained - shared.committed);  // staging of buckets that are open together
    CHECK(plain.sharing == 1);
}


}  // namespace

// Every stage with every type and optimizer, and the rest in turn. ZERO_TEST_ALL=<n>: all of it, n times (minutes).
TEST_CASE("the bits of plain MPI: every stage, type and optimizer") {
    const char* const all = std::getenv("ZERO_TEST_ALL");
    unsigned seed = 1;
    if (all != nullptr) seed = static_cast<unsigned>(std::atoi(all)) * 10'000;
    for (const int stage : {0, 1, 2, 3}) {
        for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
            for (const auto& optimizer : optimizers()) {
                for (unsigned rest = 0; rest < 4; ++rest) {
                    ++seed;
                    if (all == nullptr && rest != seed / 4 % 4) continue;
                    compare({stage, rest / 2 == 0 ? 1 : 3, type, optimizer, rest % 2 == 1, seed});
                }
            }
        }
    }
}

TEST_CASE("two contexts at once do not meet") {
    variant one{3, 1, dtype::f32, optimizers()[1], false, 4}, other{1, 3, dtype::bf16, optimizers()[0], true, 10};
    const auto alone_a = trainee(one, true).train(2).bits, alone_b = trainee(other, true).train(2).bits;
    trainee a(one, true), b(other, true);
    CHECK(b.train(2).bits == alone_b);
    CHECK(a.train(2).bits == alone_a);
}

TEST_CASE("a commit that fails on one rank and is repeated begins with zeros, and takes no more memory") {
    for (const int stage : {1, 2, 3}) {
        setup s;
        s.stage = stage;
        zero::engine z(world(), json(s));
        const std::int64_t count = 40'000;
        const int id = z.add_tensor("w", dtype::f32, {&count, 1}, nullptr, 0);
        std::vector<float> mine(10, 3.F);
        const std::int64_t ten = 10;
        const int own = z.add_tensor("own", dtype::f32, {&ten, 1}, mine.data(), 0);
        const auto forecast = z.forecast(zero::place::host).first;
        if (rank() == size() - 1) z.set("gradient_clipping", 0.5);  // differs: all refuse
        const bool alone = size() == 1;
        CHECK((code_of([&] { z.commit(); }) == zero::code::ok) == alone);
        if (!alone) {
            if (rank() == size() - 1) z.set("gradient_clipping", 0.0);
            else z.set("gradient_clipping", 0.0);
            z.commit();
        }
        CHECK(z.memory(zero::place::host).first == forecast);
        std::vector<float> all(static_cast<std::size_t>(count), 1.F);
        z.gather_to(id, -1, all.data());
        CHECK(all == std::vector<float>(static_cast<std::size_t>(count)));
        z.gather_to(own, -1, all.data());
        CHECK(all[9] == 3.F);
    }
}

TEST_CASE("contexts in a row leave no descriptor and no mapping") {
    const auto once = [](int stage) {
        setup s;
        s.stage = stage;
        zero::engine z(world(), json(s));
        const std::int64_t count = 3000;
        const int id = z.add_tensor("w", dtype::f32, {&count, 1}, nullptr, 0);
        z.commit();
        static_cast<float*>(z.gather(id))[0] = 1;
        z.release(id);
        z.close();
    };
    for (const int stage : {0, 1, 2, 3}) once(stage);
    const int files = device_test::open_files();
    const std::int64_t mapped = device_test::mappings_of_node_memory();
    const int times = std::getenv("ZERO_TEST_ALL") != nullptr || size() == 1 ? 500 : 60;
    for (int turn = 0; turn < times; ++turn) once(turn % 4);
    CHECK(device_test::open_files() == files);
    CHECK(device_test::mappings_of_node_memory() == mapped);
}
