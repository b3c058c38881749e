// One whole optimizer step on nodes that this machine plays (libzero.node_size): two levels against one flat level and
// the plain MPICH sequence, taking turns in one run; the slowest rank counts. And what crosses between the nodes, per node
// and step, against the bound: N e for gradients and N e for values, times (M-1)/M. The network here is MPI's shared memory,
// so the times say what the levels cost, not what they save. Options: --json, --rounds N (9), --mebibytes N (1 and 64),
// --node-size N (2), --type fp32|bf16.
#include <mpi.h>

#include <cstring>
#include <memory>
#include <string>

#include "support/mpi_main.hpp"
#include "support/peer.hpp"
#include "support/subject.hpp"

namespace {

using benchmark::peer;
using benchmark::subject;
using zero::dtype;

class bench {
public:
    bench(int rounds, int node_size) : rounds_(rounds), node_size_(node_size) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    }

    nlohmann::ordered_json measure(const char* name, dtype type, int stage, long mebibytes) {
        const std::int64_t width = zero::size_of(type), count = (mebibytes << 20) / width;
        const auto levels = make(type, stage, count, true), flat = make(type, stage, count, false);
        peer plain(type, count, false, MPI_COMM_WORLD);
        const auto step_of = [&](subject& ours) {
            return [&] {
                void* place = nullptr;
                const double time = timed([&] {
                    ours.values();
                    place = ours.buffer(0);
                });
                std::memset(place, 0x3c, static_cast<std::size_t>(count * width));
                return time + timed([&] {
                           ours.hand_over();
                           ours.step();
                       });
            };
        };
        const std::vector<std::function<double()>> variants{step_of(*levels), step_of(*flat), [&] {
                                                                std::memset(plain.gradient(), 0x3c, static_cast<std::size_t>(count * width));
                                                                return timed([&] { plain.step(); });
                                                            }};
        benchmark::rounds times(variants.size());
        for (int round = -3; round < rounds_; ++round) {
            for (std::size_t k = 0; k < variants.size(); ++k) {
                const std::size_t which = (k + static_cast<std::size_t>(round + 3)) % variants.size();
                const double time = slowest(variants[which]());
                if (round >= 0) times.add(which, time);
            }
        }
        const double steps = rounds_ + 3, nodes = ranks_ / node_size_;
        const double bound = static_cast<double>(count) * static_cast<double>(zero::size_of(zero::sum_type(type)) + width) * (nodes - 1) / nodes;
        return {{"ranks", ranks_},
                {"nodes", static_cast<int>(nodes)},
                {"type", name},
                {"MiB", mebibytes},
                {"stage", stage},
                {"MPICH ms", times.time(2).median * 1e3},
                {"flat ms", times.time(1).median * 1e3},
                {"two levels ms", times.time(0).median * 1e3},
                {"over flat", times.speedup(0, 1).median},
                {"over MPICH", times.speedup(0, 2).median},
                {"10 %", times.speedup(0, 2).low},
                {"90 %", times.speedup(0, 2).high},
                {"flat MiB out", crossed(*flat) / steps / mebibyte},
                {"two levels MiB out", crossed(*levels) / steps / mebibyte},
                {"bound MiB out", bound / mebibyte},
                {"note", times.disturbed(2) ? "MPICH drifted" : ""}};
    }

private:
    static constexpr double mebibyte = 1 << 20;

    // Options of the library may stand in the environment.
    std::unique_ptr<subject> make(dtype type, int stage, std::int64_t count, bool levels) const {
        ::setenv("ZERO_LIBZERO_NODE_SIZE", std::to_string(node_size_).c_str(), 1);
        ::setenv("ZERO_LIBZERO_NODE_SHARED", levels ? "true" : "false", 1);
        return std::make_unique<subject>(type, stage, count, 1, MPI_COMM_WORLD);
    }
    // Bytes that left a node, the mean of all.
    double crossed(subject& ours) const {
        std::int64_t mine = 0, all = 0;
        benchmark::check(zero_get_int(ours.context(), "sent.off_node_bytes", &mine));
        MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        return static_cast<double>(all) * node_size_ / ranks_;
    }
    template <typename Work>
    static double timed(Work&& work) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double time = benchmark::seconds(work);
        MPI_Barrier(MPI_COMM_WORLD);
        return time;
    }
    static double slowest(double mine) {
        double most = 0;
        MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return most;
    }

    int rounds_, node_size_, rank_ = 0, ranks_ = 1;
};

}  // namespace

int main(int count, char** texts) {
    return benchmark::mpi_main(count, texts, [](const benchmark::arguments& options, int, int ranks) {
        const int node_size = static_cast<int>(options.number("--node-size", 2));
        if (ranks % node_size != 0 || ranks == node_size) {
            std::fprintf(stderr, "two_level needs several nodes of %d ranks: start it with as many\n", node_size);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        bench all(static_cast<int>(options.number("--rounds", 9)), node_size);
        const long only = options.number("--mebibytes", 0);
        const std::string type = options.text("--type", "");
        benchmark::report report("two_level: a whole AdamW step on several nodes (of " + std::to_string(node_size) + " ranks, played by one machine), and MiB that leave a node per step");
        for (const auto& [name, kind] : {std::pair{"fp32", dtype::f32}, std::pair{"bf16", dtype::bf16}}) {
            if (!type.empty() && type != name) continue;
            for (const long mebibytes : only > 0 ? std::vector<long>{only} : std::vector<long>{1, 64})
                for (const int stage : {1, 2, 3}) report.add(all.measure(name, kind, stage, mebibytes));
        }
        return report;
    });
}
