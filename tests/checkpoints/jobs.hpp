// Jobs of fewer ranks inside one MPI run, and small contexts in them, for tests of zero_save and zero_load.
#pragma once
#include <mpi.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/files.hpp"
#include "checkpoints/load.hpp"
#include "checkpoints/save.hpp"
#include "engine/engine.hpp"
#include "support/grid.hpp"
#include "support/shared_folder.hpp"
#include "support/world.hpp"

namespace zero::test {

// Runs `work` on the first `ranks` ranks, with a communicator of their own; the others wait.
inline void job(int ranks, const std::function<void(MPI_Comm)>& work) {
    MPI_Comm mine = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() < ranks ? 0 : MPI_UNDEFINED, world_rank(), &mine);
    if (mine != MPI_COMM_NULL) {
        work(mine);
        MPI_Comm_free(&mine);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// On rank 0 alone, between two barriers.
inline void on_first(const std::function<void()>& work) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 0) work();
    MPI_Barrier(MPI_COMM_WORLD);
}

inline std::string json_for(int stage, const std::string& optimizer, const std::string& more = "") {
    return R"({"zero_optimization": {"stage": )" + std::to_string(stage) +
           R"(, "stage3_param_persistence_threshold": 0, "reduce_bucket_size": 40}, "libzero": {"stale_check": false}, "optimizer": )" +
           optimizer + more + "}";
}
inline const std::string adam = R"({"type": "Adam", "params": {"lr": 0.1}})";
inline const std::string sgd_momentum = R"({"type": "SGD", "params": {"lr": 0.5, "momentum": 0.9}})";
inline const std::string sgd_one = R"({"type": "SGD", "params": {"lr": 1}})";

inline code code_of(const std::function<void()>& call, std::string* text = nullptr) {
    try {
        call();
        return code::ok;
    } catch (const error& problem) {
        if (text != nullptr) *text = problem.what();
        return problem.which();
    }
}

template <typename Real>
std::vector<Real> values_of(engine& z, int id) {
    std::vector<Real> all(static_cast<std::size_t>(z.tensors().at(id).count) + 1);
    z.gather_to(id, -1, all.data());
    all.pop_back();
    return all;
}

template <typename Real>
std::vector<Real> state_of(engine& z, int id, const std::string& state) {
    std::vector<Real> all(static_cast<std::size_t>(z.tensors().at(id).count) + 1);
    z.gather_state(id, state, -1, all.data());
    all.pop_back();
    return all;
}

template <typename Real>
void set_values(engine& z, int id, const std::vector<Real>& all) {
    z.scatter(id, 0, z.ranks().rank() == 0 ? all.data() : nullptr);
}

// One update in which every element of every trainable tensor has this gradient on every rank.
inline void constant_step(engine& z, double gradient) {
    for (const tensor& one : z.tensors().all()) {
        std::vector<char> same(static_cast<std::size_t>(one.bytes()) + 8);
        for (std::int64_t k = 0; k < one.count; ++k) {
            const float single = static_cast<float>(gradient);
            if (one.type == dtype::f64)
                std::memcpy(same.data() + 8 * k, &gradient, 8);
            else if (one.type == dtype::f32)
                std::memcpy(same.data() + 4 * k, &single, 4);
            else
                std::memcpy(same.data() + 2 * k, reinterpret_cast<const char*>(&single) + 2, 2);
        }
        z.reduce(one.id, 1, same.data());
    }
    z.step();
}

}  // namespace zero::test
