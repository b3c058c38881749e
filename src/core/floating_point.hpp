// The caller's floating-point environment, set aside while the library computes. Simulation codes trap on overflow or
// flush subnormals; inside, results must not depend on that, and a finite gradient of 1e25 must not kill the program.
// Not here: who opens the guard (every entry point of the C ABI, every helper thread).
#pragma once
#include <cfenv>

namespace zero {

// Inside: no traps, round to nearest, subnormals kept. At the end all is as it was: modes, traps and sticky flags.
class floating_point_guard {
public:
    floating_point_guard() noexcept {
        std::fegetenv(&callers_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~floating_point_guard() { std::fesetenv(&callers_); }
    floating_point_guard(const floating_point_guard&) = delete;
    floating_point_guard& operator=(const floating_point_guard&) = delete;

private:
    std::fenv_t callers_;
};

}  // namespace zero
