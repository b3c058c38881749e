// A host code that traps floating-point exceptions, or rounds another way, must neither be killed nor be changed by a
// call.
#include <cfenv>
#include <cmath>
#include <limits>

#include "support.hpp"

using namespace zero_test;

namespace {

// Squares of 1e25 overflow in fp32; with traps on, a library that takes them there dies.
void train_with(float gradient, int stage) {
    model m(stage);
    m.gradient_a.assign(15, gradient);
    WORKS(zero_reduce(m.z, m.id_a, m.gradient_a.data()));
    WORKS(zero_step(m.z));
    std::vector<float> whole(15);
    WORKS(zero_gather_to(m.z, m.id_a, ZERO_EVERYONE, whole.data()));
    if (std::isfinite(gradient)) {
        for (const float value : whole) CHECK(value == -gradient);
        double norm = 0;
        WORKS(zero_get_real(m.z, "grad_norm", &norm));
        CHECK(norm == Approx(static_cast<double>(gradient) * std::sqrt(15.0)));
    } else {
        for (const float value : whole) CHECK(value == 0.0F);
    }
}

}  // namespace

TEST_CASE("traps are masked inside and back afterwards") {
    std::fenv_t before;
    std::fegetenv(&before);
    std::feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
    for (const int stage : {0, 1, 2, 3}) {
        train_with(1e25F, stage);
        train_with(std::numeric_limits<float>::infinity(), stage);  // skipped, on all ranks
        zero_step(nullptr);                                         // and on the way of an error
    }
    const int traps = fegetexcept();
    const int raised = std::fetestexcept(FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO);
    std::fesetenv(&before);
    CHECK(traps == (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW));
    CHECK(raised == 0);
}

TEST_CASE("the rounding mode is the caller's, and the results do not depend on it") {
    std::vector<float> results[2];
    for (const int mode : {FE_TONEAREST, FE_UPWARD}) {
        model m(2, true);
        WORKS(zero_set_real(m.z, "optimizer.params.lr", 0.1));
        m.gradient_a.assign(15, 1.0F / 3.0F);
        std::fesetround(mode);
        for (int step = 0; step < 5; ++step) {
            WORKS(zero_reduce(m.z, m.id_a, m.gradient_a.data()));
            WORKS(zero_step(m.z));
            CHECK(std::fegetround() == mode);
        }
        std::fesetround(FE_TONEAREST);
        results[mode == FE_UPWARD ? 1 : 0] = m.a;
    }
    CHECK(results[0] == results[1]);
}
