// Reasons to save and stop: a signal (opt-in) or the end of the job's time. One rank's view; the C layer agrees over
// ranks.
#pragma once
#include <chrono>
#include <optional>

namespace zero::stop {

// Handlers for SIGUSR1 and SIGTERM, installed while at least one object lives. They only note that the signal came, and
// call the handler that was there before. Signals belong to the process, so this state is the process's, not a
// context's.
class signal_watch {
public:
    signal_watch();
    ~signal_watch();
    signal_watch(const signal_watch&) = delete;
    signal_watch& operator=(const signal_watch&) = delete;
    static bool arrived() noexcept;
};

// Seconds since 1970 of the end of the job: `option` if above 0, else SLURM_JOB_END_TIME, else nothing.
std::optional<double> end_of_job(double option);

class watch {
public:
    void watch_signals();                        // a second call changes nothing
    bool wants_to_stop(double end_time_option);  // called once per zero_should_stop: it also measures their distance

private:
    using clock = std::chrono::steady_clock;
    std::optional<signal_watch> signals_;
    std::optional<clock::time_point> last_call_;
    double longest_ = 0;  // seconds between two calls
};

}  // namespace zero::stop
