// Signals and wall time. Not here: which rank decides (agreed by the caller).
#include "core/stop.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <mutex>

namespace zero::stop {

namespace {

constexpr std::array<int, 2> watched = {SIGUSR1, SIGTERM};
constexpr double margin = 60;  // seconds left for the save itself

// Written by a signal handler, so it can be nothing but global.
volatile std::sig_atomic_t signal_seen = 0;
std::array<struct sigaction, watched.size()> previous = {};

struct installation {
    std::mutex lock;
    int users = 0;
};
installation& installed() {
    static installation the_one;
    return the_one;
}

extern "C" void zero_stop_note_signal(int number, siginfo_t* about, void* machine) {
    signal_seen = 1;
    for (std::size_t k = 0; k < watched.size(); ++k) {
        if (watched[k] != number) continue;
        const struct sigaction& before = previous[k];
        if ((before.sa_flags & SA_SIGINFO) != 0) {
            if (before.sa_sigaction != nullptr) before.sa_sigaction(number, about, machine);
        } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
            before.sa_handler(number);
        }
    }
}

}  // namespace

signal_watch::signal_watch() {
    const std::lock_guard hold(installed().lock);
    if (installed().users++ > 0) return;
    signal_seen = 0;
    for (std::size_t k = 0; k < watched.size(); ++k) {
        struct sigaction ours = {};
        ours.sa_sigaction = &zero_stop_note_signal;
        ours.sa_flags = SA_SIGINFO | SA_RESTART;  // the caller's reads and writes go on
        sigemptyset(&ours.sa_mask);
        sigaction(watched[k], nullptr, &previous[k]);  // known before our handler can run
        sigaction(watched[k], &ours, nullptr);
    }
}

signal_watch::~signal_watch() {
    const std::lock_guard hold(installed().lock);
    if (--installed().users > 0) return;
    for (std::size_t k = 0; k < watched.size(); ++k) {
        struct sigaction present = {};
        sigaction(watched[k], nullptr, &present);
        const bool still_ours = (present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == &zero_stop_note_signal;
        if (still_ours) sigaction(watched[k], &previous[k], nullptr);
    }
}

bool signal_watch::arrived() noexcept {
    return signal_seen != 0;
}

std::optional<double> end_of_job(double option) {
    if (option > 0) return option;
    const char* const slurm = std::getenv("SLURM_JOB_END_TIME");
    if (slurm == nullptr || *slurm == '\0') return std::nullopt;
    char* rest = nullptr;
    const double seconds = std::strtod(slurm, &rest);
    if (*rest != '\0' || !(seconds > 0)) return std::nullopt;
    return seconds;
}

void watch::watch_signals() {
    if (!signals_) signals_.emplace();
}

bool watch::wants_to_stop(double end_time_option) {
    const clock::time_point now = clock::now();
    if (last_call_) longest_ = std::max(longest_, std::chrono::duration<double>(now - *last_call_).count());
    last_call_ = now;
    if (signals_ && signal_watch::arrived()) return true;
    const std::optional<double> end = end_of_job(end_time_option);
    if (!end) return false;
    const double since_1970 =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    return *end - since_1970 < margin + 2 * longest_;
}

}  // namespace zero::stop
