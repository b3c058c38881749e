// Trains a network that stands in for a simulator, on the GPUs of the ranks (or in host memory where there is none): the parameters belong
// to libzero and exist as slices (stage 3), a layer's are gathered before use, and gradients are built in the library's device memory.
// Options: --steps N (400), --stage N (3), --host, --below LOSS (status 1 where the last loss is not), --check-gradients.
#include <mpi.h>
#include <zero/zero.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "network.hpp"

namespace {

using surrogate::layer;
using surrogate::machine;
using surrogate::network;

constexpr int batch = 512;  // rows of all ranks together

void check(int code) {
    if (code == ZERO_OK) return;
    std::fprintf(stderr, "%s: %s\n", zero_error_name(code), zero_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

std::vector<layer> shape() { return {{4, 64, true}, {64, 64, true}, {64, 1, false}}; }

double option(int count, char** texts, const char* name, double otherwise) {
    for (int i = 1; i + 1 < count; ++i)
        if (std::strcmp(texts[i], name) == 0) return std::atof(texts[i + 1]);
    return otherwise;
}
bool has(int count, char** texts, const char* name) {
    for (int i = 1; i < count; ++i)
        if (std::strcmp(texts[i], name) == 0) return true;
    return false;
}

// --- libzero: what to copy from ---

class model {
public:
    model(const network& what, const machine& where, int stage) {
        const std::string config = R"({"optimizer": {"type": "AdamW", "params": {"lr": 0.003, "weight_decay": 0}},
            "zero_optimization": {"stage": )" + std::to_string(stage) + R"(, "stage3_param_persistence_threshold": 0},
            "libzero": {"device": ")" + (where.on_host() ? "host" : "cuda") + "\"}}";
        check(zero_init(MPI_COMM_WORLD, config.c_str(), &z_));
        if (!where.on_host()) check(zero_set_stream(z_, where.stream()));  // gradients come from it, values are used on it
        for (std::size_t k = 0; k < what.layers().size(); ++k) {
            const layer& one = what.layers()[k];
            const std::int64_t dims[2] = {one.outputs, one.inputs}, outputs[1] = {one.outputs};
            const std::string name = "layer" + std::to_string(k);
            ids_.emplace_back();
            check(zero_register(z_, (name + "/weights").c_str(), ZERO_F32, 2, dims, nullptr, 0, &ids_.back().weights));
            check(zero_register(z_, (name + "/bias").c_str(), ZERO_F32, 1, outputs, nullptr, 0, &ids_.back().bias));
        }
        check(zero_commit(z_));
        for (std::size_t k = 0; k < ids_.size(); ++k)
            check(zero_fill(z_, ids_[k].weights, "normal", 0, std::sqrt(1.0 / what.layers()[k].inputs), 2026));
    }
    ~model() { zero_finalize(&z_); }
    model(const model&) = delete;
    model& operator=(const model&) = delete;

    // One step; `ranks` and `rank` divide the batch. The mean over ranks of sums is taken by zero_step.
    double train(network& what, std::int64_t step, int rank, int ranks) {
        what.draw(step, std::int64_t{rank} * (batch / ranks));
        for (std::size_t k = 0; k < ids_.size(); ++k) {
            what.forward(k, gather(ids_[k].weights), gather(ids_[k].bias));
            release(k);
        }
        what.start_backward(static_cast<float>(ranks) / batch);
        for (std::size_t k = ids_.size(); k-- > 0;) {
            what.backward(k, gather(ids_[k].weights), gradient(ids_[k].weights), gradient(ids_[k].bias));
            check(zero_reduce(z_, ids_[k].weights, nullptr));  // the buffer, in the order of the stream
            check(zero_reduce(z_, ids_[k].bias, nullptr));
            check(zero_release(z_, ids_[k].weights));
        }
        double squares = what.sum_of_squares(), all = 0;
        check(zero_step(z_));
        MPI_Allreduce(&squares, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return all / (batch / ranks * ranks);
    }

    std::int64_t bytes(int place) const {
        std::int64_t now = 0, peak = 0;
        check(zero_memory(z_, place, &now, &peak));
        return now;
    }

private:
    struct parameters {
        int weights = 0, bias = 0;
    };
    const float* gather(int id) {
        void* values = nullptr;
        check(zero_gather(z_, id, &values));
        return static_cast<const float*>(values);
    }
    float* gradient(int id) {
        void* buffer = nullptr;
        check(zero_gradient(z_, id, &buffer));
        return static_cast<float*>(buffer);
    }
    void release(std::size_t k) {
        check(zero_release(z_, ids_[k].weights));
        check(zero_release(z_, ids_[k].bias));
    }

    zero_t z_ = nullptr;
    std::vector<parameters> ids_;
};

// --- the network alone: gradients against differences ---

bool gradients_are_right() {
    const auto where = machine::host();
    network what(*where, {{4, 7, true}, {7, 5, true}, {5, 1, false}}, 16);
    std::vector<std::vector<float>> weights, bias, by_weights, by_bias;
    unsigned random = 1;
    for (const layer& one : what.layers()) {
        weights.emplace_back(static_cast<std::size_t>(one.weights()));
        bias.emplace_back(static_cast<std::size_t>(one.outputs));
        for (auto* some : {&weights.back(), &bias.back()})
            for (float& x : *some) x = static_cast<float>((random = random * 1664525U + 1013904223U) >> 8) / 8388608.0f - 1.0f;
        by_weights.push_back(weights.back());
        by_bias.push_back(bias.back());
    }
    what.draw(3, 0);
    const auto squares = [&] {
        for (std::size_t k = 0; k < weights.size(); ++k) what.forward(k, weights[k].data(), bias[k].data());
        return what.sum_of_squares();
    };
    squares();
    what.start_backward(1);
    for (std::size_t k = weights.size(); k-- > 0;) what.backward(k, weights[k].data(), by_weights[k].data(), by_bias[k].data());
    double worst = 0;
    const auto compare = [&](std::vector<float>& numbers, const std::vector<float>& gradients) {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const float kept = numbers[i], by = 0.01f;
            numbers[i] = kept + by;
            const double above = squares();
            numbers[i] = kept - by;
            const double slope = (above - squares()) / (2 * double{by});
            numbers[i] = kept;
            worst = std::fmax(worst, std::fabs(slope - gradients[i]) / (1 + std::fabs(slope)));
        }
    };
    for (std::size_t k = 0; k < weights.size(); ++k) {
        compare(weights[k], by_weights[k]);
        compare(bias[k], by_bias[k]);
    }
    std::printf("gradients against central differences: at most %.1e apart\n", worst);
    return worst < 5e-3;
}

}  // namespace

int main(int count, char** texts) {
    MPI_Init(&count, &texts);
    int rank = 0, ranks = 1, local = 0, status = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (has(count, texts, "--check-gradients")) {
        status = gradients_are_right() ? 0 : 1;
    } else {
        MPI_Comm node;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_rank(node, &local);
        MPI_Comm_free(&node);
        auto where = has(count, texts, "--host") ? nullptr : machine::device(local);
        if (!where) where = machine::host();
        network what(*where, shape(), batch / ranks);
        const int steps = static_cast<int>(option(count, texts, "--steps", 400)), stage = static_cast<int>(option(count, texts, "--stage", 3));
        double loss = 0;
        {
            model trained(what, *where, stage);
            if (rank == 0)
                std::printf("%s, %d ranks, stage %d: rank 0 holds %lld bytes there\n", where->on_host() ? "host memory" : "GPU", ranks, stage,
                            static_cast<long long>(trained.bytes(where->on_host() ? ZERO_PLACE_HOST : ZERO_PLACE_DEVICE)));
            for (int step = 0; step < steps; ++step) {
                loss = trained.train(what, step, rank, ranks);
                if (rank == 0 && (step % 50 == 0 || step + 1 == steps)) std::printf("step %4d  loss %.6f\n", step, loss);
            }
        }
        if (!(loss < option(count, texts, "--below", HUGE_VAL))) status = 1;
    }
    MPI_Finalize();
    return status;
}
