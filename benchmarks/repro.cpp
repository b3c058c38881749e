// What exact, order-independent sums (libzero.reproducible) cost: a whole update with them against the plain one, by turns, with
// one micro-step and with several. Gradients have all digits and differ by rank and micro-step. The slowest rank counts.
// Options: --json, --mebibytes N (64), --rounds N (9), --accumulation N (4).
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/mpi_main.hpp"
#include "support/subject.hpp"
#include "tensor/vector.hpp"

namespace {

using benchmark::subject;
using bytes = std::vector<std::byte>;

bytes random_gradient(zero::dtype type, std::int64_t elements, int rank) {
    std::mt19937_64 random(static_cast<unsigned>(rank));
    std::normal_distribution<double> normal(0, 1e-3);
    std::vector<double> block(static_cast<std::size_t>(std::min<std::int64_t>(elements, 1 << 16)));
    for (auto& x : block) x = normal(random);
    bytes all(static_cast<std::size_t>(elements * zero::size_of(type)));
    for (std::int64_t done = 0; done < elements; done += static_cast<std::int64_t>(block.size()))
        zero::vector::convert(type, all.data() + done * zero::size_of(type), zero::dtype::f64, block.data(),
                              std::min(static_cast<std::int64_t>(block.size()), elements - done));
    return all;
}

double update(subject& one, const bytes& gradient, long micro_steps) {
    double time = 0;
    one.values();
    for (long k = 0; k < micro_steps; ++k) {
        // the model's work: another part first in every micro-step
        auto* place = static_cast<std::byte*>(one.buffer(0));
        const std::size_t turn = gradient.size() / static_cast<std::size_t>(micro_steps) / 8 * 8 * static_cast<std::size_t>(k);
        std::memcpy(place, gradient.data() + turn, gradient.size() - turn);
        std::memcpy(place + (gradient.size() - turn), gradient.data(), turn);
        MPI_Barrier(MPI_COMM_WORLD);
        time += benchmark::seconds([&] {
            one.hand_over();
            one.step();
        });
    }
    MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return time;
}

}  // namespace

int main(int count, char** texts) {
    return benchmark::mpi_main(count, texts, [](const benchmark::arguments& options, int rank, int ranks) {
        const long mebibytes = options.number("--mebibytes", 64), several = options.number("--accumulation", 4);
        const int rounds = static_cast<int>(options.number("--rounds", 9));
        benchmark::report report("repro: an update with exact sums against the plain one");
        for (const zero::dtype type : {zero::dtype::f32, zero::dtype::bf16, zero::dtype::f64}) {
            const std::int64_t elements = (std::int64_t{mebibytes} << 20) / zero::size_of(zero::sum_type(type));
            const bytes gradient = random_gradient(type, elements, rank);
            for (const long micro_steps : {1L, several}) {
                ::setenv("ZERO_GRADIENT_ACCUMULATION_STEPS", std::to_string(micro_steps).c_str(), 1);
                for (const int stage : {1, 2}) {
                    subject plain(type, stage, elements, 1, MPI_COMM_WORLD);
                    ::setenv("ZERO_LIBZERO_REPRODUCIBLE", "true", 1);
                    subject exact(type, stage, elements, 1, MPI_COMM_WORLD);
                    ::unsetenv("ZERO_LIBZERO_REPRODUCIBLE");
                    benchmark::rounds times(2);
                    for (int round = -2; round < rounds; ++round) {
                        const bool turned = round % 2 != 0;
                        const double first = update(turned ? exact : plain, gradient, micro_steps);
                        const double second = update(turned ? plain : exact, gradient, micro_steps);
                        if (round < 0) continue;
                        times.add(0, turned ? second : first);
                        times.add(1, turned ? first : second);
                    }
                    report.add({{"ranks", ranks},
                                {"type", zero::name(type)},
                                {"micro-steps", static_cast<int>(micro_steps)},
                                {"stage", stage},
                                {"plain ms", times.time(0).median * 1e3},
                                {"exact ms", times.time(1).median * 1e3},
                                {"exact/plain time", 1 / times.speedup(1, 0).median}});
                }
            }
        }
        return report;
    });
}
