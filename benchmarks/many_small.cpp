// Many small tensors against one tensor of the same size: what a call costs, and whether anything grows faster than the
// number of tensors. Buffers of zero_gradient are asked for one after the other, filled, and handed over; the slowest
// rank counts. Options: --json, --tensors N (100000), --elements N of each (256), --rounds N (9).
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "support/mpi_main.hpp"
#include "support/subject.hpp"

namespace {

using benchmark::subject;

struct parts {
    double buffers = 0, hand_over = 0, step = 0;
    double all() const { return buffers + hand_over + step; }
};

parts train_once(subject& ours) {
    std::vector<void*> places(ours.tensors());
    parts time;
    MPI_Barrier(MPI_COMM_WORLD);
    ours.values();
    time.buffers = benchmark::seconds([&] {
        for (std::size_t i = 0; i < places.size(); ++i) places[i] = ours.buffer(i);
    });
    for (std::size_t i = 0; i < places.size(); ++i)  // the model's work
        std::memset(places[i], 0x3c, static_cast<std::size_t>(ours.elements(i)) * sizeof(float));
    MPI_Barrier(MPI_COMM_WORLD);
    time.hand_over = benchmark::seconds([&] { ours.hand_over(); });
    time.step = benchmark::seconds([&] { ours.step(); });
    double numbers[3] = {time.buffers, time.hand_over, time.step};
    MPI_Allreduce(MPI_IN_PLACE, numbers, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return {numbers[0], numbers[1], numbers[2]};
}

}  // namespace

int main(int count, char** texts) {
    return benchmark::mpi_main(count, texts, [](const benchmark::arguments& options, int, int ranks) {
        const long tensors = options.number("--tensors", 100000), each = options.number("--elements", 256);
        const int rounds = static_cast<int>(options.number("--rounds", 9));
        benchmark::report report("many_small: " + std::to_string(tensors) + " tensors of " + std::to_string(each) + " fp32 elements against one");
        for (int stage = 0; stage < 3; ++stage) {  // in stage 3 small tensors stay whole, as in stage 2
            subject flat(zero::dtype::f32, stage, tensors * each, 1, MPI_COMM_WORLD);
            subject many(zero::dtype::f32, stage, tensors * each, static_cast<int>(tensors), MPI_COMM_WORLD);
            benchmark::rounds times(2);
            benchmark::rounds pieces(3);
            for (int round = -2; round < rounds; ++round) {
                const parts one = train_once(flat), all = train_once(many);
                if (round < 0) continue;
                times.add(0, one.all());
                times.add(1, all.all());
                pieces.add(0, all.buffers);
                pieces.add(1, all.hand_over);
                pieces.add(2, all.step);
            }
            const double nanoseconds = 1e9 / static_cast<double>(tensors);
            report.add({{"ranks", ranks},
                        {"stage", stage},
                        {"one ms", times.time(0).median * 1e3},
                        {"many ms", times.time(1).median * 1e3},
                        {"many/one speed", times.speedup(1, 0).median},
                        {"zero_gradient ns", pieces.time(0).median * nanoseconds},
                        {"zero_reduce ns", pieces.time(1).median * nanoseconds},
                        {"zero_step ms", pieces.time(2).median * 1e3}});
        }
        return report;
    });
}
