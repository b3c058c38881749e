// Learning-rate schedules: pure functions of the number of applied updates (DeepSpeed's lr_schedules, formulas in
// docs/options.md). t = -1 before the first update; skipped updates do not move it.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace zero {

struct schedule {
    enum class kind { none, warmup, warmup_decay, warmup_cosine, one_cycle, range_test };
    kind type = kind::none;
    // WarmupLR, WarmupDecayLR, WarmupCosineLR
    double warmup_min_lr = 0, warmup_max_lr = 1e-3;
    std::int64_t warmup_num_steps = 1000, total_num_steps = 0;
    bool warmup_log = true;
    double warmup_min_ratio = 0, cos_min_ratio = 1e-4;
    // OneCycle
    double cycle_min_lr = 0, cycle_max_lr = 0, decay_lr_rate = 0;
    std::int64_t cycle_first_step_size = 2000, cycle_second_step_size = 2000, decay_step_size = 0;
    std::int64_t cycle_first_stair_count = 0, cycle_second_stair_count = 0;
    bool cycle_momentum = true;
    double cycle_min_mom = 0.8, cycle_max_mom = 0.9, decay_mom_rate = 0;
    // LRRangeTest
    double range_min_lr = 1e-3, range_step_rate = 1;
    std::int64_t range_step_size = 2000;
    bool range_staircase = false;

    // The rate of the next update when t is the index of the last applied one; `base` is the optimizer's own lr.
    double rate(std::int64_t t, double base) const noexcept;
    // OneCycle with cycle_momentum: what stands in betas[0] (or momentum) for the next update.
    std::optional<double> momentum(std::int64_t t) const noexcept;
};

// As configurations and checkpoints spell them.
inline constexpr std::pair<std::string_view, schedule::kind> schedule_types[] = {
    {"none", schedule::kind::none},
    {"WarmupLR", schedule::kind::warmup},
    {"WarmupDecayLR", schedule::kind::warmup_decay},
    {"WarmupCosineLR", schedule::kind::warmup_cosine},
    {"OneCycle", schedule::kind::one_cycle},
    {"LRRangeTest", schedule::kind::range_test},
};

}  // namespace zero
