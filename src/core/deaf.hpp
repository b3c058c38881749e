// While one lives, this thread hears no signal, and neither do the threads it starts: signals are the program's own. Not
// here: which signals the library listens to (core/stop.hpp).
#pragma once
#include <signal.h>

namespace zero {

class deaf {
public:
    deaf() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~deaf() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    deaf(const deaf&) = delete;
    deaf& operator=(const deaf&) = delete;

private:
    sigset_t before_;
};

}  // namespace zero
