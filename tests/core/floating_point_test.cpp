// The caller's floating-point environment is replaced inside the guard and whole again after it.
#include "core/floating_point.hpp"

#include <fenv.h>  // feenableexcept: a GNU function

#include <catch2/catch.hpp>
#include <limits>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace {

constexpr int traps = FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID;

// Volatile, so that the compiler computes at run time.
template <typename Number>
Number product(Number a, Number b) {
    volatile Number first = a, second = b;
    return first * second;
}
template <typename Number>
Number quotient(Number a, Number b) {
    volatile Number first = a, second = b;
    return first / second;
}

// An environment as debug builds of simulation codes set it, put back at the end.
class callers_environment {
public:
    callers_environment() {
        fegetenv(&before_);
        feclearexcept(FE_ALL_EXCEPT);
        fesetround(FE_UPWARD);
        feraiseexcept(FE_INEXACT);
        feenableexcept(traps);
    }
    ~callers_environment() { fesetenv(&before_); }

private:
    fenv_t before_;
};

}  // namespace

TEST_CASE("inside, nothing traps and rounding is to nearest") {
    const callers_environment caller;
    const zero::floating_point_guard guard;
    CHECK(fegetexcept() == 0);
    CHECK(fegetround() == FE_TONEAREST);
    CHECK(product(1e25f, 1e25f) == std::numeric_limits<float>::infinity());  // SIGFPE without the guard
    CHECK(quotient(1.0, 3.0) == 1.0 / 3.0);
}

TEST_CASE("afterwards modes, traps and sticky flags are the caller's") {
    const callers_environment caller;
    {
        const zero::floating_point_guard guard;
        product(1e25f, 1e25f);
        quotient(0.0, 0.0);
        quotient(1.0, 0.0);
        fesetround(FE_DOWNWARD);
    }
    CHECK(fegetexcept() == traps);
    CHECK(fegetround() == FE_UPWARD);
    CHECK(fetestexcept(FE_ALL_EXCEPT) == FE_INEXACT);
}

TEST_CASE("a caller in the usual mode finds the flags that it left, and no others") {
    fenv_t before;
    fegetenv(&before);
    for (const int raised : {0, FE_INEXACT, FE_INEXACT | FE_DIVBYZERO}) {
        feclearexcept(FE_ALL_EXCEPT);
        feraiseexcept(raised);
        {
            const zero::floating_point_guard guard;
            CHECK(quotient(1.0, 0.0) == std::numeric_limits<double>::infinity());
            product(1e25f, 1e25f);
        }
        CHECK(fetestexcept(FE_ALL_EXCEPT) == raised);
    }
    fesetenv(&before);
}

TEST_CASE("an exception leaves the caller's environment whole as well") {
    const callers_environment caller;
    try {
        const zero::floating_point_guard guard;
        quotient(1.0, 0.0);
        throw 1;
    } catch (int) {
    }
    CHECK(fegetexcept() == traps);
    CHECK(fetestexcept(FE_ALL_EXCEPT) == FE_INEXACT);
}

#ifdef __SSE__
TEST_CASE("a caller that flushes subnormals does not change what is computed inside") {
    constexpr unsigned flush_to_zero = 0x8040;  // FTZ and DAZ
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | flush_to_zero);
    float inside = 0;
    {
        const zero::floating_point_guard guard;
        inside = product(1e-20f, 1e-20f);
    }
    const float outside = product(1e-20f, 1e-20f);
    const bool restored = (_mm_getcsr() & flush_to_zero) == flush_to_zero;
    _mm_setcsr(before);
    CHECK(inside > 0);
    CHECK(outside == 0);
    CHECK(restored);
}
#endif
