// The caller's floating-point environment, set aside while the library computes. Simulation codes trap on overflow or
// flush subnormals; inside, results must not depend on that, and a finite gradient of 1e25 must not kill the program.
// Not here: who opens the guard (every entry point of the C ABI, every helper thread).
#pragma once
#include <cfenv>
#include <cstdint>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace zero {

// Inside: no traps, round to nearest, subnormals kept. At the end all is as it was: modes, traps and sticky flags.
#ifdef __x86_64__
// fegetenv and fesetenv move the whole state of the x87 unit, which costs more than a short call of the library. This unit
// is left alone where it is in its usual mode, and set back only when it has a new flag. So is the vector unit: to load its
// register waits for all that was computed before.
class floating_point_guard {
public:
    floating_point_guard() noexcept : vector_unit_(_mm_getcsr()), flags_(x87_flags()), all_aside_(x87_mode() != usual_x87) {
        if (all_aside_) {
            std::fegetenv(&callers_);
            std::fesetenv(FE_DFL_ENV);
        }
        if ((vector_unit_ & ~vector_flags) != usual_vector) _mm_setcsr(usual_vector);
    }
    ~floating_point_guard() {
        if (all_aside_) {
            std::fesetenv(&callers_);
        } else if (x87_flags() != flags_) {
            std::feclearexcept(FE_ALL_EXCEPT);
            std::fesetexceptflag(&flags_, FE_ALL_EXCEPT);
        }
        if (_mm_getcsr() != vector_unit_) _mm_setcsr(vector_unit_);
    }
    floating_point_guard(const floating_point_guard&) = delete;
    floating_point_guard& operator=(const floating_point_guard&) = delete;

private:
    static constexpr std::uint32_t usual_vector = 0x1f80, vector_flags = 0x3f;
    static constexpr std::uint16_t usual_x87 = 0x037f;
    static std::uint16_t x87_mode() noexcept {
        std::uint16_t word;
        __asm__ __volatile__("fnstcw %0" : "=m"(word));
        return word;
    }
    static std::fexcept_t x87_flags() noexcept {
        std::uint16_t word;
        __asm__ __volatile__("fnstsw %0" : "=am"(word));
        return word & FE_ALL_EXCEPT;
    }

    std::uint32_t vector_unit_;
    std::fexcept_t flags_;
    bool all_aside_;
    std::fenv_t callers_;  // where all is set aside
};
#else
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
#endif

}  // namespace zero
