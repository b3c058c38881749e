// zero_should_stop: signals (opt-in) and the end of the job's time, agreed over the ranks.
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "support.hpp"

using namespace zero_test;

namespace {

volatile std::sig_atomic_t callers_own = 0;
void count_signal(int) {
    callers_own = callers_own + 1;
}

int asks_to_stop(zero_t z) {
    int flag = -1;
    WORKS(zero_should_stop(z, &flag));
    return flag;
}

}  // namespace

TEST_CASE("a signal on one rank stops all, and the caller's handler still runs") {
    unsetenv("SLURM_JOB_END_TIME");
    callers_own = 0;
    std::signal(SIGUSR1, &count_signal);
    struct sigaction before = {}, after = {};
    sigaction(SIGTERM, nullptr, &before);
    zero_t z = nullptr;
    WORKS(zero_init(MPI_COMM_WORLD, "{\"libzero\": {\"checkpoint_signals\": true}}", &z));
    CHECK(asks_to_stop(z) == 0);
    if (last_rank()) std::raise(SIGUSR1);
    CHECK(asks_to_stop(z) == 1);
    CHECK(callers_own == (last_rank() ? 1 : 0));
    WORKS(zero_finalize(&z));
    const auto handler = std::signal(SIGUSR1, SIG_DFL);
    CHECK(handler == &count_signal);
    sigaction(SIGTERM, nullptr, &after);
    CHECK(after.sa_handler == before.sa_handler);
}

TEST_CASE("without opting in, signals are the caller's business") {
    callers_own = 0;
    std::signal(SIGUSR1, &count_signal);
    zero_t z = nullptr;
    WORKS(zero_init(MPI_COMM_WORLD, nullptr, &z));
    std::raise(SIGUSR1);
    CHECK(callers_own == 1);
    CHECK(asks_to_stop(z) == 0);
    WORKS(zero_finalize(&z));
    std::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("the end of the job is near") {
    unsetenv("SLURM_JOB_END_TIME");
    zero_t z = nullptr;
    WORKS(zero_init(MPI_COMM_WORLD, nullptr, &z));
    CHECK(asks_to_stop(z) == 0);
    const std::string in_an_hour = std::to_string(std::time(nullptr) + 3600);
    const std::string in_ten_seconds = std::to_string(std::time(nullptr) + 10);
    setenv("SLURM_JOB_END_TIME", in_an_hour.c_str(), 1);
    CHECK(asks_to_stop(z) == 0);
    if (last_rank()) setenv("SLURM_JOB_END_TIME", in_ten_seconds.c_str(), 1);
    CHECK(asks_to_stop(z) == 1);
    WORKS(zero_set_real(z, "libzero.end_time", static_cast<double>(std::time(nullptr) + 3600)));  // the option wins
    CHECK(asks_to_stop(z) == 0);
    unsetenv("SLURM_JOB_END_TIME");
    WORKS(zero_set_real(z, "libzero.end_time", static_cast<double>(std::time(nullptr) + 10)));
    CHECK(asks_to_stop(z) == 1);
    WORKS(zero_finalize(&z));
}
