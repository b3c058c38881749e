// One training with libzero.reproducible and everything that may be set beside it, as the bits of its results. Not here: what they
// are compared with (reproducible_test.cpp, reproducible_sums_test.cpp).
#pragma once
#include "support.hpp"

#include <cstdint>
#include <functional>
#include <limits>

namespace engine_test {

using zero::dtype;

struct run {
    dtype type = dtype::f32;
    int stage = 0;
    bool exact = true;
    int micro_gradients = 24, updates = 2;
    std::int64_t bucket = 100;
    bool library_owned = false, overlap = false, build_in_place = false;
    int threads = 1, skipped = 0;  // updates that are to be skipped
    std::string optimizer = R"("type": "AdamW", "params": {"lr": 0.01, "weight_decay": 0.1})";
    std::string fp16 = R"({"enabled": false})", more, more_libzero;
    std::vector<std::string> vectors{"gradient", "exp_avg", "exp_avg_sq"};  // compared beside values and norm
    double factor = 0.75;
    std::function<double(int update, int micro, std::size_t tensor, std::int64_t i)> element{};  // none: wide_gradient
    std::function<bool(int micro, std::size_t tensor)> handed{};                                 // none: all are
};

// All digits of the type, and exponents far apart; where there is room for it, some elements need more than two doubles.
inline double wide_gradient(dtype type, int update, int micro, std::size_t tensor, std::int64_t i) {
    const auto seed = static_cast<std::uint64_t>(((update * 31 + micro) * 37 + static_cast<int>(tensor)) * 1009 + i + 1);
    const std::uint64_t mixed = (seed * 0x9e3779b97f4a7c15u) ^ (seed * 0xd1342543de82ef95u >> 29);
    const double fraction = static_cast<double>(mixed >> 11) * 0x1p-53 - 0.5;
    const int reach = type == dtype::f16 ? 9 : i % 11 == 3 ? 110 : 15;
    return std::ldexp(fraction, static_cast<int>(mixed % static_cast<unsigned>(reach)) - reach);
}

inline std::vector<std::byte> typed_gradient(const run& r, int update, int micro, std::size_t tensor) {
    std::vector<double> g;
    for (std::int64_t i = 0; i < count_of(shapes()[tensor]); ++i)
        g.push_back(r.element ? r.element(update, micro, tensor, i) : wide_gradient(r.type, update, micro, tensor, i));
    std::vector<std::byte> typed(g.size() * static_cast<std::size_t>(zero::size_of(r.type)) + 1);
    zero::vector::convert(r.type, typed.data(), dtype::f64, g.data(), static_cast<std::int64_t>(g.size()));
    return typed;
}

inline void append(std::vector<std::byte>& bits, const std::vector<std::byte>& one, std::int64_t count, dtype type) {
    bits.insert(bits.end(), one.begin(), one.begin() + static_cast<std::ptrdiff_t>(count * zero::size_of(type)));
}

inline std::vector<std::byte> train(MPI_Comm ranks, const run& r) {
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
    s.more = std::string(R"(, "gradient_clipping": 0.5, "fp16": )") + r.fp16 + R"(, "libzero": {"reproducible": )" +
             (r.exact ? "true" : "false") + R"(, "threads": )" + std::to_string(r.threads) + r.more_libzero + "}" + r.more;
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
                const int micro = a * all + own;
                if (r.handed && !r.handed(micro, static_cast<std::size_t>(t))) continue;
                const auto gradient = typed_gradient(r, update, micro, static_cast<std::size_t>(t));
                void* place = r.build_in_place ? z.gradient(t) : nullptr;
                if (place != nullptr) std::memcpy(place, gradient.data(), gradient.size() - 1);
                z.reduce(t, r.factor, place != nullptr ? nullptr : gradient.data());
            }
            z.step();
        }
    }
    CHECK(z.get_integer("step") == r.updates - r.skipped);
    std::vector<std::byte> bits(sizeof(double));
    const double norm = z.get_real("grad_norm");
    std::memcpy(bits.data(), &norm, sizeof norm);
    for (int t = 0; t < tensors; ++t) {
        const std::int64_t count = count_of(shapes()[static_cast<std::size_t>(t)]);
        std::vector<std::byte> one(static_cast<std::size_t>(count) * sizeof(double) + 1);
        z.gather_to(t, -1, one.data());
        append(bits, one, count, r.type);
        for (const auto& vector : r.vectors) {
            z.gather_state(t, vector, -1, one.data());
            append(bits, one, count, zero::sum_type(r.type));
        }
    }
    return bits;
}

inline std::vector<std::byte> expected_of(run r) {
    r.stage = 0;
    r.bucket = 500'000'000;
    r.overlap = r.build_in_place = false;
    r.threads = 1;
    return train(MPI_COMM_SELF, r);
}

}  // namespace engine_test
