// The loss scale of fp16 training: static, or dynamic with the rules of DeepSpeed's DynamicLossScaler (window,
// hysteresis, minimum). Plain state machine, no MPI: `update` gets the agreed overflow.
#pragma once
#include <cstdint>

namespace zero::optimizer {

struct loss_scale_rules {
    bool enabled = false;              // false: the scale is 1 for ever
    double fixed = 0;                  // 0: dynamic
    int initial_power = 16;
    std::int64_t window = 1000;
    std::int64_t hysteresis = 2;
    bool consecutive_hysteresis = false;
    double minimum = 1;
    bool moves() const noexcept { return enabled && fixed == 0; }
};

class loss_scale {
public:
    struct snapshot { double scale = 1; std::int64_t hysteresis = 0, iteration = 0, last_overflow = -1; };

    loss_scale() = default;
    explicit loss_scale(const loss_scale_rules& how);
    double value() const noexcept { return now_.scale; }
    // Once per update that was tried. Returns false when the scale already was at its minimum and overflowed again.
    bool update(bool overflow) noexcept;
    const snapshot& state() const noexcept { return now_; }
    void restore(const snapshot& from) noexcept { now_ = from; }

private:
    loss_scale_rules rules_;
    snapshot now_;
};

}  // namespace zero::optimizer
