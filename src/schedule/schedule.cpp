// The five learning-rate schedules of DeepSpeed (lr_schedules), as pure functions of t, the index of the last applied
// update (-1 before the first). Formulas: docs/options.md.
#include "schedule/schedule.hpp"

#include <algorithm>
#include <cmath>

namespace zero {
namespace {

constexpr double pi = 3.14159265358979323846;

double as_double(std::int64_t number) noexcept {
    return static_cast<double>(number);
}

std::int64_t warmup_length(const schedule& how) noexcept {
    return std::max<std::int64_t>(2, how.warmup_num_steps);
}

// 0 at t = 0, 1 at the end of the warm-up. Log: Goyal-style gradual warm-up on a logarithmic scale, ln(t+1) / ln W.
double warmup_part(const schedule& how, std::int64_t t) noexcept {
    const double length = as_double(warmup_length(how));
    return how.warmup_log ? std::log(as_double(t) + 1) / std::log(length) : as_double(t) / length;
}

double warmup_rate(const schedule& how, double part) noexcept {
    return how.warmup_min_lr + part * (how.warmup_max_lr - how.warmup_min_lr);
}

double warmup(const schedule& how, std::int64_t t) noexcept {
    if (t < 0) return how.warmup_min_lr;
    return t < warmup_length(how) ? warmup_rate(how, warmup_part(how, t)) : how.warmup_max_lr;
}

double warmup_decay(const schedule& how, std::int64_t t) noexcept {
    if (t < warmup_length(how)) return warmup(how, t);
    const double left = as_double(how.total_num_steps) - as_double(t);
    const double length = std::max(1.0, as_double(how.total_num_steps) - as_double(warmup_length(how)));
    return warmup_rate(how, std::max(0.0, left / length));
}

double cosine_ratio(const schedule& how, std::int64_t t) noexcept {
    if (t < 0) return 0;
    const std::int64_t start = warmup_length(how);
    if (t < start) return how.warmup_min_ratio + (1 - how.warmup_min_ratio) * warmup_part(how, t);
    const double length = std::max(1.0, as_double(how.total_num_steps) - as_double(start));
    const double progress = std::min(1.0, (as_double(t) - as_double(start) + 1) / length);
    return how.cos_min_ratio + (1 - how.cos_min_ratio) * (1 + std::cos(pi * progress)) / 2;
}

double cycle_length(const schedule& how) noexcept {
    return as_double(how.cycle_first_step_size) + as_double(how.cycle_second_step_size);
}

// Height in the triangle: 0 at both ends, 1 at the peak. Formed from the distance to the nearer end, so that the peak
// and stairs are exact.
double cycle_height(const schedule& how, std::int64_t t) noexcept {
    const double position = std::fmod(as_double(t) + 1, cycle_length(how));
    const double first = as_double(how.cycle_first_step_size), second = as_double(how.cycle_second_step_size);
    const bool rising = position <= first;
    const double walked = rising ? position : cycle_length(how) - position;
    const double length = rising ? first : second;
    const double stairs = as_double(rising ? how.cycle_first_stair_count : how.cycle_second_stair_count);
    return stairs > 0 ? std::floor(walked * stairs / length) / stairs : walked / length;
}

// Units of decay since the end of the cycle.
double cycle_decay(const schedule& how, std::int64_t t) noexcept {
    if (how.decay_step_size == 0) return 0;
    return (as_double(t) - cycle_length(how) + 1) / as_double(how.decay_step_size);
}

double one_cycle(const schedule& how, std::int64_t t) noexcept {
    if (as_double(t) < cycle_length(how)) {
        return how.cycle_min_lr + (how.cycle_max_lr - how.cycle_min_lr) * cycle_height(how, t);
    }
    return how.cycle_min_lr / (1 + how.decay_lr_rate * cycle_decay(how, t));
}

double range_test(const schedule& how, std::int64_t t) noexcept {
    const double units = (as_double(t) + 1) / as_double(how.range_step_size);
    return how.range_min_lr * (1 + how.range_step_rate * (how.range_staircase ? std::floor(units) : units));
}

}  // namespace

double schedule::rate(std::int64_t t, double base) const noexcept {
    switch (type) {
        case kind::none:
            return base;
        case kind::warmup:
            return warmup(*this, t);
        case kind::warmup_decay:
            return warmup_decay(*this, t);
        case kind::warmup_cosine:
            return base * cosine_ratio(*this, t);
        case kind::one_cycle:
            return one_cycle(*this, t);
        case kind::range_test:
            return range_test(*this, t);
    }
    return base;
}

std::optional<double> schedule::momentum(std::int64_t t) const noexcept {
    if (type != kind::one_cycle || !cycle_momentum) return std::nullopt;
    if (as_double(t) < cycle_length(*this))
        return cycle_max_mom - (cycle_max_mom - cycle_min_mom) * cycle_height(*this, t);
    // A growing beta must stay a decay rate.
    constexpr double largest = 1 - 1e-6;
    return std::min(std::max(largest, cycle_max_mom), cycle_max_mom * (1 + decay_mom_rate * cycle_decay(*this, t)));
}

}  // namespace zero
