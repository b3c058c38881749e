// One job of killed_rank.sh: every rank trains in the C interface until a call fails. The victims end by SIGKILL before their
// library call number WHEN, or before the library's communication number WHEN over MPI (with a leading "m"), or WHEN microseconds
// after the first step ("t"). The others must get an error within ten seconds, in whatever call they are.
// Not a test by itself. killed_rank STAGE VICTIM[,VICTIM] WHEN
#include <mpi.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "zero/zero.h"

namespace {

using wall = std::chrono::system_clock;

// The file's age is how long the victim has been dead.
void die(int) {
    ::close(::open("died", O_CREAT | O_WRONLY, 0600));
    ::raise(SIGKILL);
}

std::atomic<int> messages_left{-1};  // before this process dies
void count_message() {
    if (messages_left >= 0 && messages_left-- == 0) die(0);
}

struct job {
    zero_t z = nullptr;
    int rank = 0, ranks = 1, calls = 0, deadly = -1;
    bool victim = false;

    void call(const char* name, int result) {
        if (result != ZERO_OK) fail(name, result);
    }
    [[noreturn]] void fail(const char* name, int result) const {
        struct stat died {};
        double age = -1;
        if (::stat("died", &died) == 0)
            age = std::chrono::duration<double>(wall::now().time_since_epoch()).count() - static_cast<double>(died.st_mtim.tv_sec) - 1e-9 * static_cast<double>(died.st_mtim.tv_nsec);
        std::printf("rank %d %s %s %.2f s: %s\n", rank, name, zero_error_name(result), age, zero_last_error());
        std::fflush(stdout);
        // The launcher ends all when one leaves without MPI_Finalize, which may not end without the dead.
        ::close(::open(("over." + std::to_string(rank)).c_str(), O_CREAT | O_WRONLY, 0600));
        ::sleep(30);
        ::_exit(0);
    }
    void next() const {
        if (victim && calls == deadly) die(0);
    }
};

#define CALL(name, ...) (all.next(), all.call(#name, zero_##name(__VA_ARGS__)), ++all.calls)

}  // namespace

int MPI_Isend(const void* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    count_message();
    return PMPI_Isend(data, n, type, to, tag, comm, request);
}
int MPI_Ibcast(void* data, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
    count_message();
    return PMPI_Ibcast(data, n, type, root, comm, request);
}
int MPI_Iallreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request* request) {
    count_message();
    return PMPI_Iallreduce(in, out, n, type, op, comm, request);
}
int MPI_Iallgather(const void* in, int n, MPI_Datatype a, void* out, int m, MPI_Datatype b, MPI_Comm comm, MPI_Request* request) {
    count_message();
    return PMPI_Iallgather(in, n, a, out, m, b, comm, request);
}

int main(int count, char** words) {
    ::signal(SIGUSR1, SIG_IGN);  // with it MPICH's launcher tells the others of the first that died
    int provided = 0;
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    job all;
    MPI_Comm_rank(MPI_COMM_WORLD, &all.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &all.ranks);
    const std::string victims = "," + std::string(words[2]) + ",", when = words[3];
    all.victim = victims.find("," + std::to_string(all.rank) + ",") != std::string::npos;
    if (when[0] == 'm') messages_left = all.victim ? std::stoi(when.substr(1)) : -1;
    else if (when[0] != 't') all.deadly = std::stoi(when);

    const std::string config = std::string(R"({"optimizer": {"type": "AdamW"}, "gradient_clipping": 1, "zero_optimization": {"stage": )") + words[1] +
                               R"(, "reduce_bucket_size": 50000, "overlap_comm": true, "stage3_param_persistence_threshold": 0}})";
    CALL(init, MPI_COMM_WORLD, config.c_str(), &all.z);
    constexpr int tensors = 5;
    std::vector<std::vector<float>> own(tensors), gradient(tensors);
    int ids[tensors];
    for (int t = 0; t < tensors; ++t) {
        const std::int64_t n = 20'000 + 30'000 * t;
        own[static_cast<std::size_t>(t)].assign(static_cast<std::size_t>(n), 1);
        gradient[static_cast<std::size_t>(t)].assign(static_cast<std::size_t>(n), 0.5F);
        void* place = t % 2 == 0 ? own[static_cast<std::size_t>(t)].data() : nullptr;
        all.call("register", zero_register(all.z, nullptr, ZERO_F32, 1, &n, place, 0, &ids[t]));
    }
    CALL(commit, all.z);
    for (int round = 0;; ++round) {
        if (round == 1 && when[0] == 't' && all.victim) {
            ::signal(SIGALRM, die);
            const int after = std::max(1, std::stoi(when.substr(1)));
            const itimerval clock{{0, 0}, {after / 1'000'000, after % 1'000'000}};
            ::setitimer(ITIMER_REAL, &clock, nullptr);
        }
        void* values[tensors];
        CALL(gather_list, all.z, tensors, ids, values);
        all.call("release_list", zero_release_list(all.z, tensors, ids));
        for (int t = tensors; t-- > 0;) CALL(reduce, all.z, ids[t], gradient[static_cast<std::size_t>(t)].data());
        CALL(step, all.z);
        CALL(scatter, all.z, ids[0], 1, all.rank == 1 ? gradient[0].data() : nullptr);
        CALL(scatter, all.z, ids[1], 0, all.rank == 0 ? gradient[1].data() : nullptr);
        CALL(gather_to, all.z, ids[2], 0, all.rank == 0 ? gradient[2].data() : nullptr);
        CALL(gather_to, all.z, ids[2], ZERO_EVERYONE, gradient[2].data());
        char text[10'000];
        std::size_t needed = 0;
        CALL(report, all.z, text, sizeof text, &needed);
        if (all.rank == 0) gradient[2].assign(gradient[2].size(), 0.5F);
    }
}
