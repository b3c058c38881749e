// One job of around.sh: trains in circumstances that the script made, and says how it went. Not a test by itself.
// around WHAT MEBIBYTES SHARING: "train" must work; "short" must be told at zero_commit that memory is short; "fork": children end
// or become other programs in the middle; "no_cma": no process may read another's memory. MEBIBYTES is what each rank takes for
// gradients, values and states. SHARING is how many ranks must share memory (0: does not matter).
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "zero/zero.h"

namespace {

bool forbid_reading_others() {
    sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{4, rules};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int failed(const char* what, int result = 0) {
    std::printf("%s: %s: %s\n", what, zero_error_name(result), zero_last_error());
    return 1;
}

// One child ends as programs do, with all that runs at an exit, and one becomes another program.
bool have_children() {
    std::fflush(nullptr);
    const pid_t ends = ::fork();
    if (ends == 0) std::exit(0);
    const pid_t becomes = ::fork();
    if (becomes == 0) {
        ::execl("/bin/true", "true", nullptr);
        ::_exit(1);
    }
    int one = -1, other = -1;
    ::waitpid(ends, &one, 0);
    ::waitpid(becomes, &other, 0);
    return one == 0 && other == 0;
}

int work(const std::string& what, std::int64_t mebibytes, std::int64_t sharing) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    zero_t z = nullptr;
    const char* config = R"({"zero_optimization": {"stage": 1, "overlap_comm": true}, "optimizer": {"type": "SGD", "params": {"lr": 1}},
                             "libzero": {"stale_check": false}})";
    if (const int result = zero_init(MPI_COMM_WORLD, config, &z)) return failed("zero_init", result);
    // Whole gradients on each rank, and a slice of the values: 4 (1 + 1/P) bytes per element.
    const std::int64_t count = (mebibytes << 18) * ranks / (ranks + 1);
    int id = -1, own = -1;
    const std::int64_t few = 5'000;
    std::vector<float> mine(static_cast<std::size_t>(few), 0), all(mine);
    if (zero_register(z, "w", ZERO_F32, 1, &count, nullptr, 0, &id) != ZERO_OK) return failed("zero_register");
    if (zero_register(z, "own", ZERO_F32, 1, &few, mine.data(), 0, &own) != ZERO_OK) return failed("zero_register");
    const int result = zero_commit(z);
    if (what == "short") {
        std::printf("rank %d: %s: %s\n", rank, zero_error_name(result), zero_last_error());
        return result == ZERO_ERR_MEMORY && zero_finalize(&z) == ZERO_OK ? 0 : 1;
    }
    if (result != ZERO_OK) return failed("zero_commit", result);
    for (int step = 1; step <= 4; ++step) {
        void* gradient = nullptr;
        const std::vector<float> ones(static_cast<std::size_t>(few), 1);
        if (zero_gradient(z, id, &gradient) != ZERO_OK) return failed("zero_gradient");
        static_cast<float*>(gradient)[count - 1] = static_cast<float>(rank);
        if (zero_reduce(z, id, nullptr) != ZERO_OK || zero_reduce(z, own, ones.data()) != ZERO_OK) return failed("zero_reduce");
        if (what == "fork" && !have_children()) return failed("a child");
        if (zero_step(z) != ZERO_OK) return failed("zero_step");
        void* values = nullptr;
        if (zero_gather(z, id, &values) != ZERO_OK) return failed("zero_gather");
        if (what == "fork" && !have_children()) return failed("a child");
        const float last = static_cast<const float*>(values)[count - 1], expected = static_cast<float>(-step) * static_cast<float>(ranks - 1) / 2;
        zero_release(z, id);
        if (last != expected || mine[4'999] != static_cast<float>(-step)) {
            std::printf("rank %d, step %d: %g instead of %g, %g\n", rank, step, last, expected, mine[4'999]);
            return 1;
        }
    }
    std::int64_t found = 0;
    zero_get_int(z, "ranks_sharing_values", &found);
    std::printf("rank %d: right values, %d ranks share them\n", rank, static_cast<int>(found));
    if (zero_finalize(&z) != ZERO_OK) return failed("zero_finalize");
    return sharing == 0 || sharing == found ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    const std::string what = words[1];
    if (what == "no_cma" && !forbid_reading_others()) return 1;
    int provided = 0;
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    const int result = work(what, std::atoll(words[2]), std::atoll(words[3]));
    std::fflush(stdout);
    if (result != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
