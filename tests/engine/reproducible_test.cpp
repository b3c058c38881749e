// libzero.reproducible: the same micro-gradients give the same bits of values and states on any number of ranks, in every
// stage and type, whatever else is set. Expected is what one rank makes of all of them; the plain sums of these gradients differ.
#include "support.hpp"

#include <limits>

using namespace engine_test;
using zero::dtype;

namespace {

struct run {
    dtype type = dtype::f32;
    int stage = 0;
    bool exact = true;
    int micro_gradients = 24, updates = 2;
    std::int64_t bucket = 100;
    bool library_owned = false, overlap = false, build_in_place = false;
    int threads = 1, overflow_at = -1;  // the update whose last micro-gradient is infinite somewhere
    std::string optimizer = R"("type": "AdamW", "params": {"lr": 0.01, "weight_decay": 0.1})", more;
    std::vector<std::string> states{"exp_avg", "exp_avg_sq"};
};

// All digits of the type, and exponents far apart; where there is room for it, some elements need more than two doubles.
double wide_gradient(dtype type, int update, int micro, std::size_t tensor, std::int64_t i) {
    const auto seed = static_cast<std::uint64_t>(((update * 31 + micro) * 37 + static_cast<int>(tensor)) * 1009 + i + 1);
    const std::uint64_t mixed = (seed * 0x9e3779b97f4a7c15u) ^ (seed * 0xd1342543de82ef95u >> 29);
    const double fraction = static_cast<double>(mixed >> 11) * 0x1p-53 - 0.5;
    const int reach = type == dtype::f16 ? 9 : i % 11 == 3 ? 110 : 15;
    return std::ldexp(fraction, static_cast<int>(mixed % static_cast<unsigned>(reach)) - reach);
}

std::vector<std::byte> typed_gradient(const run& r, int update, int micro, std::size_t tensor) {
    std::vector<double> g;
    for (std::int64_t i = 0; i < count_of(shapes()[tensor]); ++i) g.push_back(wide_gradient(r.type, update, micro, tensor, i));
    if (update == r.overflow_at && micro + 1 == r.micro_gradients && g.size() > 5) g[5] = std::numeric_limits<double>::infinity();
    std::vector<std::byte> typed(g.size() * static_cast<std::size_t>(zero::size_of(r.type)) + 1);
    zero::vector::convert(r.type, typed.data(), dtype::f64, g.data(), static_cast<std::int64_t>(g.size()));
    return typed;
}

void append(std::vector<std::byte>& bits, const std::vector<std::byte>& one, std::int64_t count, dtype type) {
    bits.insert(bits.end(), one.begin(), one.begin() + static_cast<std::ptrdiff_t>(count * zero::size_of(type)));
}

std::vector<std::byte> train(MPI_Comm ranks, const run& r) {
    int own = 0, all = 1;
    MPI_Comm_rank(ranks, &own);
    MPI_Comm_size(ranks, &all);
    setup s;
    s.stage = r.stage;
    s.type = r.type;
    s.bucket = r.bucket;
    s.accumulation = r.micro_gradients / all;
    s.optimizer = r.optimizer;
    s.more_zero = std::string(R"(, "overlap_comm": )") + (r.overlap ? "true" : "false");
    s.more = std::string(R"(, "gradient_clipping": 0.5, "fp16": {"enabled": false}, "libzero": {"reproducible": )") +
             (r.exact ? "true" : "false") + R"(, "threads": )" + std::to_string(r.threads) + "}" + r.more;
    std::vector<std::vector<std::byte>> arrays;
    zero::engine z(&ranks, json(s));
    const int tensors = static_cast<int>(shapes().size());
    for (std::size_t t = 0; t < shapes().size(); ++t) {
        arrays.emplace_back(static_cast<std::size_t>(count_of(shapes()[t]) * zero::size_of(r.type)) + 1);
        z.add_tensor("t" + std::to_string(t), r.type, shapes()[t], r.library_owned ? nullptr : arrays[t].data(), 0);
    }
    const std::int64_t forecast = z.forecast(zero::place::host).first;
    z.commit();
    CHECK(z.memory(zero::place::host).first == forecast);
    for (int update = 0; update < r.updates; ++update) {
        for (int t = 0; t < tensors; ++t) fetch(z, t);
        for (int a = 0; a < s.accumulation; ++a) {
            for (int t = 0; t < tensors; ++t) {
                const auto gradient = typed_gradient(r, update, a * all + own, static_cast<std::size_t>(t));
                void* place = r.build_in_place ? z.gradient(t) : nullptr;
                if (place != nullptr) std::memcpy(place, gradient.data(), gradient.size() - 1);
                z.reduce(t, 0.75, place != nullptr ? nullptr : gradient.data());
            }
            z.step();
        }
    }
    CHECK(z.get_integer("step") == r.updates - (r.overflow_at < 0 ? 0 : 1));
    std::vector<std::byte> bits(sizeof(double));
    const double norm = z.get_real("grad_norm");
    std::memcpy(bits.data(), &norm, sizeof norm);
    for (int t = 0; t < tensors; ++t) {
        const std::int64_t count = count_of(shapes()[static_cast<std::size_t>(t)]);
        std::vector<std::byte> one(static_cast<std::size_t>(count) * sizeof(double) + 1);
        z.gather_to(t, -1, one.data());
        append(bits, one, count, r.type);
        for (const auto& state : r.states) {
            z.gather_state(t, state, -1, one.data());
            append(bits, one, count, zero::sum_type(r.type));
        }
    }
    return bits;
}

std::vector<std::byte> expected_of(run r) {
    r.stage = 0;
    r.bucket = 500'000'000;
    r.overlap = r.build_in_place = false;
    r.threads = 1;
    return train(MPI_COMM_SELF, r);
}

}  // namespace

TEST_CASE("reproducible: the bits of one rank that gets all micro-gradients, in every stage and type") {
    for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
        for (const int micro_gradients : {24, size()}) {  // in several micro-steps, and in one
            run r;
            r.type = type;
            r.micro_gradients = micro_gradients;
            const auto expected = expected_of(r);
            for (const int stage : {0, 1, 2, 3}) {
                r.stage = stage;
                r.library_owned = stage % 2 == 1;
                INFO("stage " << stage << " " << name(type) << " of " << micro_gradients);
                CHECK(train(MPI_COMM_WORLD, r) == expected);
            }
        }
    }
}

TEST_CASE("reproducible, whatever else is set") {
    for (const dtype type : {dtype::f32, dtype::bf16, dtype::f64}) {
        run r;
        r.type = type;
        const auto expected = expected_of(r);
        for (const int stage : {1, 2, 3}) {
            for (const std::int64_t bucket : {1, 500'000'000}) {
                r.stage = stage;
                r.bucket = bucket;
                r.overlap = bucket == 1;
                r.threads = bucket == 1 ? 1 : 2;
                r.build_in_place = stage != 2;
                INFO("stage " << stage << " bucket " << bucket << " " << name(type));
                CHECK(train(MPI_COMM_WORLD, r) == expected);
            }
        }
    }
    run lossy;
    lossy.stage = 2;
    lossy.more = R"(, "communication_data_type": "bf16")";
    CHECK(train(MPI_COMM_WORLD, lossy) == expected_of(lossy));
    run lamb;
    lamb.stage = 1;
    lamb.optimizer = R"("type": "Lamb", "params": {"lr": 0.01, "weight_decay": 0.1})";
    CHECK(train(MPI_COMM_WORLD, lamb) == expected_of(lamb));
    run plain_sgd;
    plain_sgd.stage = 3;
    plain_sgd.type = dtype::f64;
    plain_sgd.optimizer = sgd;
    plain_sgd.states = {};
    CHECK(train(MPI_COMM_WORLD, plain_sgd) == expected_of(plain_sgd));
}

TEST_CASE("reproducible: an infinite micro-gradient is skipped everywhere, and leaves nothing behind") {
    for (const dtype type : {dtype::f32, dtype::f64}) {
        run r;
        r.type = type;
        r.stage = 2;
        r.overflow_at = 0;
        CHECK(train(MPI_COMM_WORLD, r) == expected_of(r));
    }
}

TEST_CASE("the plain sums of these gradients depend on the number of ranks") {
    if (size() == 1) return;
    for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
        run r;
        r.type = type;
        r.stage = 2;
        r.exact = false;
        CHECK(train(MPI_COMM_WORLD, r) != expected_of(r));
    }
}

TEST_CASE("reproducible: what would be rounded by itself is refused") {
    if (size() == 1) return;
    zero::engine z(world(), R"({"zero_optimization": {"stage": 2}, "optimizer": {"type": "SGD"}, "libzero": {"reproducible": true}})");
    const std::int64_t n = 100;
    std::vector<float> values(100), gradient(100, 1);
    const int id = z.add_tensor("w", dtype::f32, {&n, 1}, values.data(), 0);
    z.commit();
    z.reduce(id, 1, gradient.data());
    CHECK(code_of([&] { z.reduce(id, 1, gradient.data()); }) == zero::code::state);
    z.reduce(id, 0, gradient.data());  // nothing
    z.step();
    CHECK(z.get_integer("step") == 1);
}
