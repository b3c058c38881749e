// How much of the reduction of gradients hides behind the caller's backward pass. The pass is synthetic: the gradients
// appear one after the other in the buffers of zero_gradient, and between them the rank waits as for a device (or, with
// --spin, computes). Hidden is what compute + communication, timed one by one, take more than the pass that has both, over
// the shorter of the two; all but the last tensor's part can be. The peer sends every gradient with MPI_Ireduce_scatter_block and waits at
// the end. The slowest rank counts. Options: --json, --mebibytes N (64), --tensors N (16), --rounds N (9), --spin,
// --thread on|off|auto (on).
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "support/mpi_main.hpp"
#include "support/subject.hpp"

namespace {

using benchmark::subject;

double slowest(double mine) {
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return mine;
}

template <typename Work>
double timed(const Work& work) {
    MPI_Barrier(MPI_COMM_WORLD);
    return slowest(benchmark::seconds(work));
}

// The backward pass through one tensor.
void compute(double seconds, bool spin) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    if (!spin) return std::this_thread::sleep_until(end);
    while (std::chrono::steady_clock::now() < end) {
    }
}

class library {
public:
    library(int stage, long elements, int tensors) : model_(zero::dtype::f32, stage, elements, tensors, MPI_COMM_WORLD, subject::owner::library, true) {}

    // Buffers are asked for and filled before: that is the model's own work. Finish, but no update: it hides behind nothing.
    double pass(double each, bool spin, bool hand_over) {
        const std::size_t number = model_.tensors();
        model_.values();
        for (std::size_t i = 0; i < number; ++i) {
            std::memset(model_.buffer(i), 0x3c, static_cast<std::size_t>(model_.elements(i)) * sizeof(float));
        }
        const double time = timed([&] {
            for (std::size_t i = number; i-- > 0;) {  // the last layer's gradients come first
                if (each > 0) compute(each, spin);
                if (hand_over) model_.hand_over(i);
            }
            if (hand_over) model_.finish();
        });
        if (!hand_over) model_.hand_over();
        model_.step();
        return time;
    }

private:
    subject model_;
};

class mpich {
public:
    mpich(long elements, int tensors) : each_(elements / tensors), requests_(static_cast<std::size_t>(tensors)) {
        MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
        send_.assign(static_cast<std::size_t>(each_ * tensors), 1);
        receive_.assign(send_.size() / static_cast<std::size_t>(ranks_), 0);
    }
    double pass(double each, bool spin, bool hand_over) {
        return timed([&] {
            for (std::size_t i = 0; i < requests_.size(); ++i) {
                if (each > 0) compute(each, spin);
                if (!hand_over) continue;
                const auto share = each_ / ranks_;
                MPI_Ireduce_scatter_block(send_.data() + static_cast<long>(i) * each_, receive_.data() + static_cast<long>(i) * share,
                                          static_cast<int>(share), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests_[i]);
                int done = 0;
                MPI_Testall(static_cast<int>(i) + 1, requests_.data(), &done, MPI_STATUSES_IGNORE);
            }
            if (hand_over) MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        });
    }

private:
    long each_;
    int ranks_ = 1;
    std::vector<float> send_, receive_;
    std::vector<MPI_Request> requests_;
};

struct share {
    double communication = 0, computing = 0, both = 0;
    double hidden() const { return (computing + communication - both) / std::min(computing, communication); }
};

// The pass computes `times_longer` as long as the communication takes alone: all but the last tensor's can hide.
template <typename Subject>
share measure(Subject& one, int tensors, int rounds, bool spin, double times_longer) {
    benchmark::rounds times(3);
    for (int round = -3; round < rounds; ++round) {
        const double communication = one.pass(0, spin, true), each = times_longer * communication / tensors;
        const double computing = one.pass(each, spin, false), both = one.pass(each, spin, true);
        if (round < 0) continue;
        times.add(0, communication);
        times.add(1, computing);
        times.add(2, both);
    }
    return {times.time(0).median, times.time(1).median, times.time(2).median};
}

}  // namespace

int main(int count, char** texts) {
    return benchmark::mpi_main(count, texts, [](const benchmark::arguments& options, int, int ranks) {
        const int tensors = static_cast<int>(options.number("--tensors", 16)), rounds = static_cast<int>(options.number("--rounds", 9));
        const long elements = (options.number("--mebibytes", 64) << 20) / 4;
        const bool spin = options.has("--spin");
        ::setenv("ZERO_LIBZERO_OVERLAP_THREAD", options.text("--thread", "on").c_str(), 1);
        benchmark::report report("overlap: the share of the reduction that hides behind a synthetic backward pass");
        const auto add = [&](const char* who, const std::string& stage, auto& subject) {
            for (const double longer : {1.0, 2.0}) {
                const share one = measure(subject, tensors, rounds, spin, longer);
                report.add({{"ranks", ranks}, {"who", who}, {"stage", stage}, {"compute/communication", longer},
                            {"communication ms", one.communication * 1e3}, {"compute ms", one.computing * 1e3},
                            {"both ms", one.both * 1e3}, {"hidden", one.hidden()},
                            {"of what can be", one.hidden() / (1 - 1.0 / tensors)}});  // not the last tensor's
            }
        };
        for (int stage = 0; stage <= 3; ++stage) {
            library ours(stage, elements, tensors);
            add("libzero", std::to_string(stage), ours);
        }
        mpich peer(elements, tensors);
        add("MPI_Ireduce_scatter_block", "-", peer);
        return report;
    });
}
