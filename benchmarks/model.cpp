// A model of the time of one step over plain messages: latency alpha per message, beta per byte sent, gamma per byte updated. It
// is fitted on 2 to 6 ranks, says what the next rank counts and the next size will take before these are measured, and what it
// would mean on up to 4096 nodes. Where ranks share cores, each term counts as often as ranks share one. Options: --json,
// --rounds N (9), --cores N (those of the machine).
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>

#include "support/mpi_main.hpp"
#include "support/subject.hpp"

namespace {

constexpr int terms = 3;
using row = std::array<double, terms>;

struct point {
    int ranks = 2;
    long mebibytes = 1;
    double seconds = 0;
};

// Messages that a rank sends, bytes that it sends (gradients and values), bytes of its slice.
row terms_of(int ranks, double bytes, double sharing) {
    const double others = ranks - 1;
    return {2 * others * sharing, 2 * bytes * others / ranks * sharing, bytes / ranks * sharing};
}

// Least squares of the relative errors; a term that would become negative is left out.
row fit(const std::vector<point>& measured, double cores) {
    std::array<bool, terms> used{true, true, true};
    for (;;) {
        std::array<std::array<double, terms + 1>, terms> equations{};
        for (const auto& p : measured) {
            const row x = terms_of(p.ranks, static_cast<double>(p.mebibytes << 20), std::max(1.0, p.ranks / cores));
            for (std::size_t i = 0; i < terms; ++i) {
                for (std::size_t j = 0; j < terms; ++j) equations[i][j] += x[i] * x[j] / (p.seconds * p.seconds);
                equations[i][terms] += x[i] / p.seconds;
            }
        }
        for (std::size_t i = 0; i < terms; ++i) {  // Gauss and Jordan
            if (!used[i]) continue;
            const double pivot = equations[i][i];
            for (auto& number : equations[i]) number /= pivot;
            for (std::size_t k = 0; k < terms; ++k) {
                if (k == i || !used[k]) continue;
                const double factor = equations[k][i];
                for (std::size_t j = 0; j <= terms; ++j) equations[k][j] -= factor * equations[i][j];
            }
        }
        row result{};
        std::size_t worst = terms;
        for (std::size_t i = 0; i < terms; ++i) {
            if (!used[i]) continue;
            result[i] = equations[i][terms];
            if (result[i] < 0 && worst == terms) worst = i;
        }
        if (worst == terms) return result;
        used[worst] = false;
    }
}

double predicted(const row& model, int ranks, double bytes, double sharing) {
    const row x = terms_of(ranks, bytes, sharing);
    return x[0] * model[0] + x[1] * model[1] + x[2] * model[2];
}

// Ranks that take no part sleep, so that they cost the others nothing.
void wait_for_all() {
    MPI_Request all = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (int over = 0; MPI_Test(&all, &over, MPI_STATUS_IGNORE), over == 0;) ::usleep(1000);
}

double measure(int ranks, long mebibytes, int rounds) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &some);
    double seconds = 0;
    if (some != MPI_COMM_NULL) {
        benchmark::subject ours(zero::dtype::f32, 1, (mebibytes << 20) / 4, 1, some);
        benchmark::rounds times(1);
        for (int round = -2; round < rounds; ++round) {
            std::memset(ours.buffer(0), 0x3c, static_cast<std::size_t>(mebibytes << 20));
            MPI_Barrier(some);
            double time = benchmark::seconds([&] {
                ours.hand_over();
                ours.step();
            });
            MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, some);
            if (round >= 0) times.add(0, time);
        }
        seconds = times.time(0).median;
    }
    if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
    wait_for_all();
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return seconds;
}

}  // namespace

int main(int count, char** texts) {
    return benchmark::mpi_main(count, texts, [](const benchmark::arguments& options, int, int ranks) {
        if (ranks < 8) {
            std::fprintf(stderr, "model needs 8 ranks\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        ::setenv("ZERO_LIBZERO_NODE_SHARED", "false", 1);  // messages, as between nodes
        const int rounds = static_cast<int>(options.number("--rounds", 9));
        const auto cores = static_cast<double>(options.number("--cores", ::sysconf(_SC_NPROCESSORS_ONLN)));
        std::vector<point> measured;
        benchmark::report report("model: alpha per message, beta per byte sent, gamma per byte updated, fitted on 2 to 6 ranks; the rest is said before it is measured");
        row model{};
        const auto add = [&](const char* what, int p, long mebibytes, double said, double took) {
            report.add({{"what", what}, {"ranks or nodes", p}, {"MiB", mebibytes}, {"predicted ms", said * 1e3}, {"measured ms", took > 0 ? nlohmann::ordered_json(took * 1e3) : "-"},
                        {"error", took > 0 ? nlohmann::ordered_json(said / took - 1) : "-"}, {"alpha us", model[0] * 1e6},
                        {"beta GB/s", model[1] > 0 ? 1e-9 / model[1] : 0.0}, {"gamma GB/s", model[2] > 0 ? 1e-9 / model[2] : 0.0}});
        };
        for (const int p : {2, 3, 4, 6})
            for (const long mebibytes : {1L, 4L, 16L}) measured.push_back({p, mebibytes, measure(p, mebibytes, rounds)});
        model = fit(measured, cores);
        for (const auto& p : measured)
            add("fitted", p.ranks, p.mebibytes, predicted(model, p.ranks, static_cast<double>(p.mebibytes << 20), std::max(1.0, p.ranks / cores)), p.seconds);
        for (const auto& [p, mebibytes] : {std::pair{8, 1L}, {8, 4L}, {8, 16L}, {4, 64L}, {8, 64L}}) {
            const double said = predicted(model, p, static_cast<double>(mebibytes << 20), std::max(1.0, p / cores));
            add("predicted", p, mebibytes, said, measure(p, mebibytes, rounds));
        }
        for (const int nodes : {16, 256, 4096})
            for (const long mebibytes : {64L, 1024L}) add("extrapolated", nodes, mebibytes, predicted(model, nodes, static_cast<double>(mebibytes << 20), 1), 0);
        return report;
    });
}
