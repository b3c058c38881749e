// A model of odd sizes, gradients that differ by rank, tensor, element and step, and its serial double reference.
#pragma once
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <mpi.h>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "support/world.hpp"
#include "tensor/vector.hpp"

namespace engine_test {

inline int rank() { return zero::test::world_rank(); }
inline int size() { return zero::test::world_size(); }
inline const void* world() {
    static const MPI_Comm comm = MPI_COMM_WORLD;
    return &comm;
}

// Dyadic numbers with few digits: exact in every type, so that 16-bit sums have one right value.
inline double pattern(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    const std::int64_t mixed = (a * 7919 + b * 104729 + c * 1299709 + d * 15485863 + 17) % 61;
    return static_cast<double>(mixed - 30) / 16.0;
}
inline double initial_value(std::size_t tensor, std::int64_t i) { return pattern(static_cast<std::int64_t>(tensor), i, 5, 3) / 4; }
inline double gradient_of(int rank, std::int64_t micro, std::size_t tensor, std::int64_t i) {
    return pattern(rank + 1, micro + 1, static_cast<std::int64_t>(tensor) + 1, i + 1);
}

inline const std::vector<std::vector<std::int64_t>>& shapes() {
    static const std::vector<std::vector<std::int64_t>> all{{5}, {10, 10}, {0}, {33}, {3, 7, 11}, {}, {1}, {512}};
    return all;
}
inline std::int64_t count_of(const std::vector<std::int64_t>& dims) {
    std::int64_t n = 1;
    for (auto d : dims) n *= d;
    return n;
}

struct setup {
    int stage = 0;
    zero::dtype type = zero::dtype::f32;
    bool library_owned = false;
    std::string optimizer = R"("type": "AdamW", "params": {"lr": 0.01, "weight_decay": 0.1})";
    std::int64_t bucket = 500'000'000, persistence = 0;
    int accumulation = 1;
    std::string more;  // further top-level JSON, starting with ','
    std::string more_zero;
};

inline std::string json(const setup& s) {
    return "{\"zero_optimization\": {\"stage\": " + std::to_string(s.stage) + ", \"reduce_bucket_size\": " + std::to_string(s.bucket) +
           ", \"stage3_param_persistence_threshold\": " + std::to_string(s.persistence) + s.more_zero + "}, \"optimizer\": {" + s.optimizer +
           "}, \"gradient_accumulation_steps\": " + std::to_string(s.accumulation) + s.more + "}";
}

inline const std::string sgd = R"("type": "SGD", "params": {"lr": 1})";  // after a step from 0 the values are minus the gradient

inline void fetch(zero::engine& z, int id) {
    z.gather(id);
    z.release(id);
}

template <typename Call>
zero::code code_of(Call&& call) {
    try {
        call();
    } catch (const zero::error& e) {
        return e.which();
    }
    return zero::code::ok;
}

// A context with the tensors of shapes(), trained by patterns.
struct model {
    explicit model(const setup& how) : s(how), z(world(), json(how)) {
        for (std::size_t t = 0; t < shapes().size(); ++t) {
            const std::int64_t n = count_of(shapes()[t]);
            arrays.emplace_back(static_cast<std::size_t>(n * zero::size_of(s.type)) + 1);
            std::vector<double> start;
            for (std::int64_t i = 0; i < n; ++i) start.push_back(initial_value(t, i));
            zero::vector::convert(s.type, arrays[t].data(), zero::dtype::f64, start.data(), n);
            z.add_tensor("tensor/" + std::to_string(t), s.type, shapes()[t], s.library_owned ? nullptr : arrays[t].data(), 0);
        }
        if (s.library_owned) {
            z.commit();
            for (std::size_t t = 0; t < shapes().size(); ++t) z.scatter(static_cast<int>(t), 0, rank() == 0 ? arrays[t].data() : nullptr);
        } else {
            z.commit();
        }
    }
    void fetch() {
        for (std::size_t t = 0; t < shapes().size(); ++t) z.gather(static_cast<int>(t));
        for (std::size_t t = 0; t < shapes().size(); ++t) z.release(static_cast<int>(t));
    }
    void hand_over(std::int64_t number, bool reversed) {
        const int n = static_cast<int>(shapes().size());
        for (int k = 0; k < n; ++k) {
            const int t = reversed ? n - 1 - k : (k + rank()) % n;  // ranks may come in different orders
            const std::int64_t elements = count_of(shapes()[static_cast<std::size_t>(t)]);
            std::vector<double> g;
            for (std::int64_t i = 0; i < elements; ++i) g.push_back(gradient_of(rank(), number, static_cast<std::size_t>(t), i));
            std::vector<std::byte> typed(static_cast<std::size_t>(elements * zero::size_of(s.type)) + 1);
            zero::vector::convert(s.type, typed.data(), zero::dtype::f64, g.data(), elements);
            z.reduce(t, 1, typed.data());
        }
    }
    void train(int updates) {
        for (int u = 0; u < updates; ++u) {
            fetch();
            for (int a = 0; a < s.accumulation; ++a) {
                hand_over(micro, u % 2 == 0);
                z.step();
                ++micro;
            }
        }
    }
    // All values, bit by bit, in the parameters' type.
    std::vector<std::byte> bits() {
        std::vector<std::byte> all;
        for (std::size_t t = 0; t < shapes().size(); ++t) {
            const auto bytes = static_cast<std::size_t>(count_of(shapes()[t]) * zero::size_of(s.type));
            std::vector<std::byte> one(bytes + 1);
            z.gather_to(static_cast<int>(t), -1, one.data());
            all.insert(all.end(), one.begin(), one.begin() + static_cast<std::ptrdiff_t>(bytes));
        }
        return all;
    }
    std::vector<double> numbers(std::size_t t, const std::string& state = "") {
        const std::int64_t n = count_of(shapes()[t]);
        const zero::dtype type = state.empty() ? s.type : zero::sum_type(s.type);
        std::vector<std::byte> one(static_cast<std::size_t>(n * zero::size_of(type)) + 1);
        if (state.empty()) z.gather_to(static_cast<int>(t), -1, one.data());
        else z.gather_state(static_cast<int>(t), state, -1, one.data());
        std::vector<double> wide(static_cast<std::size_t>(n));
        zero::vector::convert(zero::dtype::f64, wide.data(), type, one.data(), n);
        return wide;
    }

    setup s;
    zero::engine z;
    std::vector<std::vector<std::byte>> arrays;
    std::int64_t micro = 0;
};

}  // namespace engine_test
