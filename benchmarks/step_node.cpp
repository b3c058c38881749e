// One whole optimizer step on one node against the plain MPICH sequence, taking turns in one run; the slowest rank
// counts. "library": the gradient is built in the buffers of zero_gradient (their clearing is timed), handed over,
// stepped; in stage 3 the values are gathered once as well. "from caller": the same with gradients in the caller's
// memory; with --drop-in the values lie in the caller's arrays as well. "unchecked": with libzero.check_grad_overflow
// false, which is the peer's work: no norm, no test for overflow. "bound": the fused step on private memory without communication (support/peer.hpp). Options: --json, --phases
// (times of the parts instead), --rounds N (9), --full (4 and 16 MiB too), --mebibytes N (that size alone), --stage N,
// --type fp32|bf16|fp64.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "support/mpi_main.hpp"
#include "support/peer.hpp"
#include "support/subject.hpp"

namespace {

using benchmark::peer;
using benchmark::subject;
using zero::dtype;

struct configuration {
    dtype type;
    int stage;
    long mebibytes;  // of the gradient of one rank
    int tensors;
};

class bench {
public:
    bench(int rounds, subject::owner values, MPI_Comm comm) : rounds_(rounds), values_(values), comm_(comm) {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &ranks_);
    }

    nlohmann::ordered_json measure(const configuration& what) {
        const std::int64_t count = (what.mebibytes << 20) / zero::size_of(what.type);
        peer plain(what.type, count, what.stage == 0, comm_);
        subject ours(what.type, what.stage, count, what.tensors, comm_, values_);
        subject equal_work(what.type, what.stage, count, what.tensors, comm_, values_, false, false);
        const benchmark::array gradient(count, what.type);
        const auto bytes = static_cast<std::size_t>(count * zero::size_of(what.type));

        const auto with_buffers = [&](subject& library) {
            std::vector<void*> places(library.tensors());
            double time = timed([&] {
                library.values();
                for (std::size_t i = 0; i < places.size(); ++i) places[i] = library.buffer(i);
            });
            for (std::size_t i = 0; i < places.size(); ++i)
                write(places[i], static_cast<std::size_t>(library.elements(i) * zero::size_of(what.type)));
            return time + timed([&] {
                       library.hand_over();
                       library.step();
                   });
        };
        const auto from_caller = [&](subject& library) {
            double time = what.stage == 3 ? timed([&] { library.values(); }) : 0;
            write(gradient.at(), bytes);
            return time + timed([&] {
                       library.hand_over(gradient.at());
                       library.step();
                   });
        };
        const auto sequence = [&] {
            write(plain.gradient(), bytes);
            return timed([&] { plain.step(); });
        };
        const auto limit = [&] {
            write(plain.gradient(), bytes);
            return timed([&] { plain.bound(); });
        };
        choose_wire(plain, what.type, sequence);

        const std::vector<std::function<double()>> variants{[&] { return with_buffers(ours); }, [&] { return from_caller(ours); }, sequence, limit,
                                                            [&] { return with_buffers(equal_work); }, [&] { return from_caller(equal_work); }};
        // Small sizes are over before the machine is awake: they warm up, and are measured, for longer.
        double once = 0;
        for (const auto& variant : variants) once += slowest(variant());
        const int more = static_cast<int>(std::min(200.0, 0.3 / once)), warm_up = 2 + more;
        benchmark::rounds times(variants.size());
        for (int round = -warm_up; round < rounds_ + more; ++round) {
            for (std::size_t k = 0; k < variants.size(); ++k) {
                const std::size_t which = (k + static_cast<std::size_t>(round + warm_up)) % variants.size();
                const double time = slowest(variants[which]());
                if (round >= 0) times.add(which, time);
            }
        }
        const auto ratio = times.speedup(0, 2), from = times.speedup(1, 2), equal = times.speedup(4, 2);
        return {{"ranks", ranks_},
                {"type", type_name(what.type)},
                {"MiB", what.mebibytes},
                {"tensors", what.tensors},
                {"stage", what.stage},
                {"MPICH ms", times.time(2).median * 1e3},
                {"library ms", times.time(0).median * 1e3},
                {"speedup", ratio.median},
                {"10 %", ratio.low},
                {"90 %", ratio.high},
                {"from caller", from.median},
                {"of bound", times.speedup(0, 3).median},
                {"unchecked ms", times.time(4).median * 1e3},
                {"unchecked speedup", equal.median},
                {"unchecked 10 %", equal.low},
                {"unchecked 90 %", equal.high},
                {"unchecked from caller", times.speedup(5, 2).median},
                {"unchecked of bound", times.speedup(4, 3).median},
                {"MPICH of bound", times.speedup(2, 3).median},
                {"bound drift", times.drift(3)},
                {"note", times.disturbed(3) ? "bound drifted" : ""}};
    }

    // The same step in parts (zero_finish splits the library's), medians of the slowest rank in milliseconds.
    nlohmann::ordered_json phases(const configuration& what) {
        const std::int64_t count = (what.mebibytes << 20) / zero::size_of(what.type);
        const auto bytes = static_cast<std::size_t>(count * zero::size_of(what.type));
        peer plain(what.type, count, what.stage == 0, comm_);
        subject ours(what.type, what.stage, count, what.tensors, comm_, values_);
        choose_wire(plain, what.type, [&] { return timed([&] { plain.step(); }); });
        std::vector<void*> places(ours.tensors());
        const std::vector<std::pair<const char*, std::function<void()>>> parts{
            {"values", [&] { ours.values(); }},
            {"buffers",
             [&] {
                 for (std::size_t i = 0; i < places.size(); ++i) places[i] = ours.buffer(i);
             }},
            {"",
             [&] {
                 for (std::size_t i = 0; i < places.size(); ++i)
                     write(places[i], static_cast<std::size_t>(ours.elements(i) * zero::size_of(what.type)));
             }},
            {"hand over", [&] { ours.hand_over(); }},
            {"finish", [&] { ours.finish(); }},
            {"update, publish", [&] { ours.step(); }},
            {"", [&] { write(plain.gradient(), bytes); }},
            {"MPICH reduce", [&] { plain.reduce(); }},
            {"AdamW", [&] { plain.update(); }},
            {"MPICH gather", [&] { plain.gather(); }}};
        benchmark::rounds times(parts.size());
        for (int round = -2; round < rounds_; ++round) {
            for (std::size_t k = 0; k < parts.size(); ++k) {
                const double time = slowest(timed(parts[k].second));
                if (round >= 0) times.add(k, time);
            }
        }
        nlohmann::ordered_json row{{"ranks", ranks_},
                                   {"type", type_name(what.type)},
                                   {"MiB", what.mebibytes},
                                   {"tensors", what.tensors},
                                   {"stage", what.stage}};
        for (std::size_t k = 0; k < parts.size(); ++k)
            if (*parts[k].first != 0) row[parts[k].first] = times.time(k).median * 1e3;
        return row;
    }

private:
    static std::string type_name(dtype type) {
        return type == dtype::f32 ? "fp32" : type == dtype::f64 ? "fp64" : "bf16";
    }

    template <typename Work>
    double timed(Work&& work) {
        MPI_Barrier(comm_);
        const double time = benchmark::seconds(work);
        MPI_Barrier(comm_);
        return time;
    }
    double slowest(double mine) const {
        double most = 0;
        MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, comm_);
        return most;
    }
    // The model's work: small positive numbers in every type.
    static void write(void* place, std::size_t bytes) { std::memset(place, 0x3c, bytes); }

    template <typename Sequence>
    void choose_wire(peer& plain, dtype type, const Sequence& sequence) {
        if (!zero::is_16bit(type)) return;
        double best[2] = {1e9, 1e9};
        for (int round = 0; round < 4; ++round) {
            for (int way = 0; way < 2; ++way) {
                plain.use(way == 0 ? peer::wire::own_type : peer::wire::widened);
                const double time = slowest(sequence());
                if (round > 0) best[way] = std::min(best[way], time);
            }
        }
        plain.use(best[0] < best[1] ? peer::wire::own_type : peer::wire::widened);
    }

    int rounds_;
    subject::owner values_;
    MPI_Comm comm_;
    int rank_ = 0, ranks_ = 1;
};

}  // namespace

int main(int count, char** texts) {
    return benchmark::mpi_main(count, texts, [](const benchmark::arguments& options, int, int) {
        std::vector<long> sizes{1, 64};
        if (options.has("--full")) sizes = {1, 4, 16, 64};
        if (const long only = options.number("--mebibytes", 0)) sizes = {only};
        const long stage = options.number("--stage", -1);
        const bool in_parts = options.has("--phases");
        const std::string type = options.text("--type", "");
        const bool drop_in = options.has("--drop-in");
        bench all(static_cast<int>(options.number("--rounds", 9)), drop_in ? subject::owner::caller : subject::owner::library, MPI_COMM_WORLD);
        benchmark::report report(in_parts ? "step_node in parts, milliseconds"
                                 : drop_in ? "step_dropin: the same with values and gradients in the caller's arrays (column: from caller)"
                                          : "step_node: a whole AdamW step of one node, library against "
                                            "MPI_Reduce_scatter_block + AdamW + MPI_Allgather");
        for (const auto& [name, kind] :
             {std::pair{"fp32", dtype::f32}, std::pair{"bf16", dtype::bf16}, std::pair{"fp64", dtype::f64}}) {
            if (!type.empty() && type != name) continue;
            for (const long mebibytes : sizes) {
                for (const int tensors : {1, 100}) {
                    if (tensors > 1 && (kind != dtype::f32 || mebibytes != sizes.back())) continue;
                    for (int s = 0; s < 4; ++s) {
                        if (stage >= 0 && stage != s) continue;
                        const configuration what{kind, s, mebibytes, tensors};
                        report.add(in_parts ? all.phases(what) : all.measure(what));
                    }
                }
            }
        }
        return report;
    });
}
