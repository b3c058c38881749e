// What a call costs when there is nothing to do: one tensor of 64 elements, every call by itself, against one flag barrier of the
// node and MPI_Barrier; in C, and through the Fortran 77 entry points where they are built. Means of many calls per round, the
// slowest rank. Options: --json, --calls N (2000), --rounds N (9).
#include <mpi.h>
#include <zero/zero.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "comm/communicator.hpp"
#include "support/mpi_main.hpp"
#include "support/subject.hpp"

#ifdef ZERO_BENCHMARK_FORTRAN
extern "C" {
void zerof_init_(int* comm, const char* config, int* handle, int* error, std::size_t length);
void zerof_register_s_(int* handle, const char* name, int* count, float* values, int* id, int* error, std::size_t length);
void zerof_reduce_s_(int* handle, int* id, float* factor, float* gradient, int* error);
void zerof_commit_(int* handle, int* error);
void zerof_step_(int* handle, int* error);
void zerof_finalize_(int* handle, int* error);
}
#endif

namespace {

constexpr int elements = 64;
const char* const config = R"({"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "zero_optimization": {"stage": 1}})";

// `prepare` is not timed, `work` is.
struct candidate {
    const char* language;
    const char* call;
    std::function<void()> prepare, work;
    bool no_op;  // one of those with the goal
};

double seconds_per_call(const candidate& one, int calls) {
    double all = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (!one.prepare) {
        all = benchmark::seconds([&] {
            for (int i = 0; i < calls; ++i) one.work();
        });
    } else {
        for (int i = 0; i < calls; ++i) {
            one.prepare();
            all += benchmark::seconds(one.work);
        }
    }
    all /= calls;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

std::unique_ptr<zero::comm::communicator> flags_of_node() {
    const MPI_Comm world = MPI_COMM_WORLD;
    std::string reason;
    return zero::comm::share_node(zero::comm::make(&world, {}), reason);
}

#ifdef ZERO_BENCHMARK_FORTRAN
class fortran_subject {
public:
    fortran_subject() {
        int comm = MPI_Comm_c2f(MPI_COMM_WORLD), count = elements;
        zerof_init_(&comm, config, &handle_, &error_, std::strlen(config));
        zerof_register_s_(&handle_, "x", &count, values_.data(), &id_, &error_, 1);
        zerof_commit_(&handle_, &error_);
    }
    ~fortran_subject() { zerof_finalize_(&handle_, &error_); }
    fortran_subject(const fortran_subject&) = delete;
    fortran_subject& operator=(const fortran_subject&) = delete;
    void reduce() { zerof_reduce_s_(&handle_, &id_, &factor_, gradient_.data(), &error_), benchmark::check(error_); }
    void step() { zerof_step_(&handle_, &error_), benchmark::check(error_); }

private:
    std::array<float, elements> values_{}, gradient_{};
    float factor_ = 1;
    int handle_ = 0, id_ = 0, error_ = 0;
};
#endif

}  // namespace

int main(int count, char** texts) {
    return benchmark::mpi_main(count, texts, [](const benchmark::arguments& options, int, int ranks) {
        const int calls = static_cast<int>(options.number("--calls", 2000)), rounds = static_cast<int>(options.number("--rounds", 9));
        benchmark::subject c(zero::dtype::f32, 1, elements, 1, MPI_COMM_WORLD, benchmark::subject::owner::caller);
        ::setenv("ZERO_GRADIENT_ACCUMULATION_STEPS", "1000000000", 1);
        benchmark::subject window(zero::dtype::f32, 1, elements, 1, MPI_COMM_WORLD, benchmark::subject::owner::caller);
        ::unsetenv("ZERO_GRADIENT_ACCUMULATION_STEPS");
        std::array<float, elements> gradient{};
        const auto* bytes = reinterpret_cast<const std::byte*>(gradient.data());
        const auto flags = flags_of_node();
        std::vector<candidate> all{
            {"", "flag barrier of the node", {}, [&] { flags->fence(); }, false},
            {"", "MPI_Barrier", {}, [] { MPI_Barrier(MPI_COMM_WORLD); }, false},
            {"C", "zero_reduce (a second time in the micro-step)", {}, [&] { c.hand_over(bytes); }, true},
            {"C", "zero_step inside an accumulation window", {}, [&] { window.step(); }, true},
            {"C", "zero_step with nothing handed over: a whole update", {}, [&] { c.step(); }, true},
            {"C", "zero_step after zero_reduce", [&] { c.hand_over(bytes); }, [&] { c.step(); }, false}};
#ifdef ZERO_BENCHMARK_FORTRAN
        fortran_subject fortran;
        all.push_back({"Fortran 77", "zerof_reduce_s (a second time in the micro-step)", {}, [&] { fortran.reduce(); }, true});
        all.push_back({"Fortran 77", "zerof_step with nothing handed over: a whole update", {}, [&] { fortran.step(); }, true});
        all.push_back({"Fortran 77", "zerof_step after zerof_reduce_s", [&] { fortran.reduce(); }, [&] { fortran.step(); }, false});
#endif
        benchmark::rounds times(all.size());
        for (int round = -1; round < rounds; ++round) {
            for (std::size_t k = 0; k < all.size(); ++k) {
                const double time = seconds_per_call(all[k], calls);
                if (round >= 0) times.add(k, time);
            }
        }
        benchmark::report report("call_cost: calls with nothing to do (64 elements), against one flag barrier of the node");
        for (std::size_t k = 0; k < all.size(); ++k) {
            report.add({{"ranks", ranks},
                        {"language", all[k].language},
                        {"call", all[k].call},
                        {"ns", times.time(k).median * 1e9},
                        {"10 %", times.time(k).low * 1e9},
                        {"90 %", times.time(k).high * 1e9},
                        {"flag barriers", 1 / times.speedup(k, 0).median},
                        {"no-op", all[k].no_op}});
        }
        return report;
    });
}
