// The loss scale as a plain state machine; see loss_scale.hpp. Rules: docs/options.md.
#include "optimizer/loss_scale.hpp"

#include <algorithm>
#include <cmath>

namespace zero::optimizer {
namespace {

constexpr double largest_scale = 0x1p127;  // the caller multiplies an fp32 loss by it: beyond this it is no fp32 number

}  // namespace

loss_scale::loss_scale(const loss_scale_rules& how) : rules_(how) {
    now_.hysteresis = rules_.hysteresis;
    if (!rules_.enabled) return;
    now_.scale = rules_.fixed > 0 ? rules_.fixed : std::ldexp(1.0, rules_.initial_power);
}

bool loss_scale::update(bool overflow) noexcept {
    if (!rules_.moves()) return true;
    bool usable = true;
    if (overflow) {
        if (rules_.hysteresis == 1 || now_.hysteresis == 1) {
            usable = now_.scale > rules_.minimum;
            now_.scale = std::max(now_.scale / 2, rules_.minimum);
        } else {
            now_.hysteresis -= 1;
        }
        now_.last_overflow = now_.iteration;
    } else {
        if (rules_.consecutive_hysteresis) now_.hysteresis = rules_.hysteresis;
        const std::int64_t clean = now_.iteration - now_.last_overflow - 1;
        if (clean > 0 && clean % rules_.window == 0) {
            now_.hysteresis = rules_.hysteresis;
            now_.scale = std::min(now_.scale * 2, std::max(largest_scale, now_.scale));
        }
    }
    now_.iteration += 1;
    return usable;
}

}  // namespace zero::optimizer
