// A model with tensors of every type, or all of one, that takes steps and tells all bits that a checkpoint must bring back.
#pragma once
#include <cmath>
#include <optional>

#include "jobs.hpp"

namespace zero::test {

// Tensors of every type, sizes 0, 1, odd, a scalar, a frozen one; gradients differ by rank, tensor, element and step.
struct varied {
    varied(MPI_Comm comm, const std::string& json, bool with_values, std::optional<dtype> only = {}) : z(&comm, json) {
        z.add_group(R"({"frozen": true})");
        z.add_group(R"({"lr": 0.05})");
        using int64s = std::vector<std::int64_t>;
        const std::vector<std::pair<dtype, int64s>> shapes{{dtype::f32, {5, 7}}, {dtype::bf16, {33}}, {dtype::f64, {4}},
                                                           {dtype::f32, {0}},    {dtype::f32, {}},    {dtype::f16, {3}},
                                                           {dtype::f32, {101}},  {dtype::bf16, {6}}};
        for (std::size_t k = 0; k < shapes.size(); ++k)
            z.add_tensor("block/" + std::to_string(k), only.value_or(shapes[k].first), shapes[k].second, nullptr,
                         k == 7   ? 1
                         : k == 6 ? 2
                                  : 0);
        z.commit();
        if (with_values)
            for (int id = 0; id < z.tensors().count(); ++id) z.fill(id, "normal", 0, 1, 42);
    }
    // `by_rank` false: the same gradients everywhere, small dyadic numbers, so that their mean has the same bits on any
    // number of ranks.
    void step(int number, bool by_rank = true) {
        const int own = by_rank ? z.ranks().rank() * 11 : 0;
        for (const tensor& one : z.tensors().all()) {
            std::vector<std::uint16_t> g16(static_cast<std::size_t>(one.count) + 1);
            std::vector<float> g32(g16.size());
            std::vector<double> g64(g16.size());
            for (std::int64_t k = 0; k < one.count; ++k) {
                const double g = std::ldexp(
                    static_cast<double>((k * 7 + one.id * 5 + number * 3 + own) % 29 - 14), -3);
                const float single = static_cast<float>(g);
                g64[static_cast<std::size_t>(k)] = g;
                g32[static_cast<std::size_t>(k)] = single;
                std::uint32_t bits = 0;
                std::memcpy(&bits, &single, 4);
                g16[static_cast<std::size_t>(k)] =
                    one.type == dtype::bf16 ? static_cast<std::uint16_t>(bits >> 16) : std::uint16_t{0x3c00};
            }
            const void* g = one.type == dtype::f64   ? static_cast<const void*>(g64.data())
                            : one.type == dtype::f32 ? static_cast<const void*>(g32.data())
                                                     : g16.data();
            z.reduce(one.id, 1, g);
        }
        z.step();
    }
    // Every bit that a checkpoint must bring back, on every rank.
    std::string bits() {
        std::string all;
        for (const tensor& one : z.tensors().all()) {
            std::string part(static_cast<std::size_t>(one.bytes()) + 1, '\0');
            z.gather_to(one.id, -1, part.data());
            all += part;
            std::vector<std::string> states = z.state_names(one.id);
            if (!states.empty()) states.push_back("master");
            for (const std::string& state : states) {
                std::string vector(static_cast<std::size_t>(one.count * 8) + 1, '\0');
                z.gather_state(one.id, state, -1, vector.data());
                all += vector;
            }
        }
        const progress_state now = z.progress();
        return all + std::to_string(now.step) + " " + std::to_string(now.skipped);
    }
    engine z;
};

inline std::string told_by_first(std::string mine) {
    std::int64_t length = static_cast<std::int64_t>(mine.size());
    MPI_Bcast(&length, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    mine.resize(static_cast<std::size_t>(length));
    MPI_Bcast(mine.data(), static_cast<int>(length), MPI_CHAR, 0, MPI_COMM_WORLD);
    return mine;
}

}  // namespace zero::test
