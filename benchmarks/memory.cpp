// What the library takes, twice: its ledger (zero_memory) and what the kernel sees (the growth of the process's PSS
// from before zero_init to after a step). They must agree within 3 % + 4 MiB, in every stage; the worst rank counts.
// Options: --json, --mebibytes N (64) of parameters, --type fp32|bf16|fp64.
#include <malloc.h>
#include <mpi.h>

#include <cstring>
#include <fstream>
#include <memory>

#include "support/mpi_main.hpp"
#include "support/subject.hpp"

namespace {

using benchmark::subject;
using zero::dtype;

// Without the pages that the system may take back at any time (docs/memory.md, resting gather buffers).
std::int64_t pss() {
    std::ifstream file("/proc/self/smaps_rollup");
    std::int64_t all = 0, lazily_free = 0;
    for (std::string word; file >> word;) {
        if (word == "Pss:") file >> all;
        if (word == "LazyFree:") file >> lazily_free;
    }
    return (all - lazily_free) * 1024;
}

double mebibytes(std::int64_t bytes) {
    return static_cast<double>(bytes) / (1 << 20);
}

// MPI's own buffers of first use are not the library's: they are there before the measurement begins.
void warm_up_mpi(int ranks, int rank) {
    const std::size_t bytes = std::size_t{4} << 20;
    std::vector<char> out(bytes), in(bytes);
    for (int round = 0; round < 3; ++round) {
        for (int step = 0; step < ranks; ++step) {
            MPI_Sendrecv(out.data(), static_cast<int>(bytes), MPI_BYTE, (rank + step) % ranks, 0, in.data(),
                         static_cast<int>(bytes), MPI_BYTE, (rank + ranks - step) % ranks, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
    }
}

void train_once(subject& ours, dtype type) {
    ours.values();
    for (std::size_t i = 0; i < ours.tensors(); ++i) {
        void* place = ours.buffer(i);
        std::memset(place, 0x3c, static_cast<std::size_t>(ours.elements(i) * zero::size_of(type)));
    }
    ours.hand_over();
    ours.step();
}

struct reading {
    std::int64_t ledger = 0, seen = 0;
    double off() const { return static_cast<double>(seen - ledger); }
};

reading measure(dtype type, int stage, std::int64_t count, int tensors) {
    malloc_trim(0);
    MPI_Barrier(MPI_COMM_WORLD);
    const std::int64_t before = pss();
    subject ours(type, stage, count, tensors, MPI_COMM_WORLD);
    for (int i = 0; i < 3; ++i) train_once(ours, type);
    MPI_Barrier(MPI_COMM_WORLD);
    reading result;
    result.seen = pss() - before;
    benchmark::check(zero_memory(ours.context(), ZERO_PLACE_HOST, &result.ledger, nullptr));
    MPI_Barrier(MPI_COMM_WORLD);
    return result;
}

}  // namespace

int main(int count, char** texts) {
    return benchmark::mpi_main(count, texts, [](const benchmark::arguments& options, int rank, int ranks) {
        const long size = options.number("--mebibytes", 64);
        const std::string only = options.text("--type", "");
        benchmark::report report("memory: the ledger against the growth of PSS after three steps, worst rank");
        warm_up_mpi(ranks, rank);
        for (const auto& [name, type] :
             {std::pair{"fp32", dtype::f32}, std::pair{"bf16", dtype::bf16}, std::pair{"fp64", dtype::f64}}) {
            if (!only.empty() && only != name) continue;
            for (int stage = 0; stage < 4; ++stage) {
                const reading mine = measure(type, stage, (size << 20) / zero::size_of(type), 8);
                struct {
                    double off;
                    int rank;
                } here{std::abs(mine.off()), rank}, worst{};
                MPI_Allreduce(&here, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
                std::int64_t both[2] = {mine.ledger, mine.seen};
                MPI_Bcast(both, 2, MPI_INT64_T, worst.rank, MPI_COMM_WORLD);
                const double allowed = 0.03 * static_cast<double>(both[0]) + (4 << 20);
                report.add({{"ranks", ranks},
                            {"type", name},
                            {"MiB", size},
                            {"stage", stage},
                            {"ledger MiB", mebibytes(both[0])},
                            {"PSS MiB", mebibytes(both[1])},
                            {"difference MiB", mebibytes(both[1] - both[0])},
                            {"allowed MiB", allowed / (1 << 20)},
                            {"within", worst.off <= allowed ? "yes" : "NO"}});
            }
        }
        return report;
    });
}
