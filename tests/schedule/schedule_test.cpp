// The schedules against tables worked out by hand from the formulas in docs/options.md (case S05 among them).
#include "schedule/schedule.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <utility>
#include <vector>

using zero::schedule;

namespace {

using table = std::vector<std::pair<std::int64_t, double>>;

void check(const schedule& how, double base, const table& wanted) {
    for (const auto& [t, rate] : wanted) {
        INFO("t = " << t);
        CHECK(how.rate(t, base) == Approx(rate).epsilon(1e-14).margin(1e-15));
    }
}

}  // namespace

TEST_CASE("no schedule: the optimizer's own rate, bit for bit") {
    const schedule none;
    CHECK(none.rate(-1, 0.1) == 0.1);
    CHECK(none.rate(1'000'000, 0.3) == 0.3);
    CHECK_FALSE(none.momentum(3).has_value());
}

TEST_CASE("WarmupLR") {
    schedule how;
    how.type = schedule::kind::warmup;
    how.warmup_min_lr = 0;
    how.warmup_max_lr = 1;
    how.warmup_num_steps = 10;
    // log10(1), log10(2), log10(3), log10(4): the factors of case S05
    check(how, 99,
          {{-1, 0},
           {0, 0},
           {1, 0.301029995663981},
           {2, 0.477121254719662},
           {3, 0.602059991327962},
           {9, 1},
           {10, 1},
           {1000, 1}});
    how.warmup_min_lr = 0.5;
    how.warmup_max_lr = 2.5;
    check(how, 99, {{-1, 0.5}, {0, 0.5}, {1, 1.102059991327962}, {9, 2.5}, {11, 2.5}});
    how.warmup_log = false;
    check(how, 99, {{-1, 0.5}, {0, 0.5}, {1, 0.7}, {5, 1.5}, {9, 2.3}, {10, 2.5}});
}

TEST_CASE("S05: a warm-up of 0 or 1 updates counts as 2") {
    for (const std::int64_t steps : {0, 1, 2}) {
        schedule how;
        how.type = schedule::kind::warmup;
        how.warmup_max_lr = 1;
        how.warmup_num_steps = steps;
        check(how, 1, {{-1, 0}, {0, 0}, {1, 1}, {2, 1}});
        how.warmup_log = false;
        check(how, 1, {{-1, 0}, {0, 0}, {1, 0.5}, {2, 1}});
    }
}

TEST_CASE("WarmupDecayLR") {
    schedule how;
    how.type = schedule::kind::warmup_decay;
    how.warmup_min_lr = 1;
    how.warmup_max_lr = 3;
    how.warmup_num_steps = 4;
    how.total_num_steps = 14;
    how.warmup_log = false;
    check(how, 99, {{-1, 1}, {0, 1}, {2, 2}, {3, 2.5}, {4, 3}, {5, 2.8}, {9, 2}, {13, 1.2}, {14, 1}, {15, 1}, {99, 1}});
    how.warmup_log = true;  // ln 2 / ln 4 = 1/2
    check(how, 99, {{0, 1}, {1, 2}, {3, 3}, {4, 3}, {9, 2}});
    how.total_num_steps = 3;  // shorter than the warm-up: it falls at once
    check(how, 99, {{3, 3}, {4, 1}, {5, 1}});
}

TEST_CASE("WarmupCosineLR") {
    schedule how;
    how.type = schedule::kind::warmup_cosine;
    how.warmup_min_ratio = 0.2;
    how.cos_min_ratio = 0.1;
    how.warmup_num_steps = 4;
    how.total_num_steps = 12;
    how.warmup_log = false;
    // ratio 0.1 + 0.9 (1 + cos(pi (t - 3) / 8)) / 2 from t = 4 on
    check(how, 2,
          {{-1, 0},
           {0, 0.4},
           {2, 1.2},
           {3, 1.6},
           {4, 2 * (0.1 + 0.45 * 1.9238795325112867)},
           {7, 1.1},
           {11, 0.2},
           {12, 0.2},
           {500, 0.2}});
    how.warmup_log = true;
    check(how, 2, {{0, 0.4}, {1, 1.2}, {3, 2}});
    how.total_num_steps = 4;
    check(how, 2, {{4, 0.2}, {5, 0.2}});
}

TEST_CASE("OneCycle: a triangle, then decay") {
    schedule how;
    how.type = schedule::kind::one_cycle;
    how.cycle_min_lr = 1;
    how.cycle_max_lr = 3;
    how.cycle_first_step_size = 4;
    how.cycle_second_step_size = 2;
    how.cycle_min_mom = 0.5;
    how.cycle_max_mom = 0.9;
    // position t + 1 in a triangle with its peak at 4 and its end at 6
    check(how, 99, {{-1, 1}, {0, 1.5}, {1, 2}, {3, 3}, {4, 2}, {5, 1}, {6, 1}, {50, 1}});
    const table momenta = {{-1, 0.9}, {0, 0.8}, {1, 0.7}, {3, 0.5}, {4, 0.7}, {5, 0.9}, {6, 0.9}, {50, 0.9}};
    for (const auto& [t, momentum] : momenta) {
        INFO("t = " << t);
        CHECK(how.momentum(t).value() == Approx(momentum).epsilon(1e-14));
    }

    how.decay_step_size = 2;
    how.decay_lr_rate = 0.5;
    how.decay_mom_rate = 0.01;
    check(how, 99, {{5, 1}, {6, 1 / 1.25}, {7, 1 / 1.5}, {9, 0.5}});
    CHECK(how.momentum(7).value() == Approx(0.9 * 1.01).epsilon(1e-14));
    CHECK(how.momentum(1'000'000).value() == 1 - 1e-6);

    how.cycle_momentum = false;
    CHECK_FALSE(how.momentum(1).has_value());
}

TEST_CASE("OneCycle: stairs") {
    schedule how;
    how.type = schedule::kind::one_cycle;
    how.cycle_min_lr = 0;
    how.cycle_max_lr = 1;
    how.cycle_first_step_size = 6;
    how.cycle_second_step_size = 4;
    how.cycle_first_stair_count = 3;
    how.cycle_second_stair_count = 2;
    // rising: positions 1 to 6 stand on stairs 0, 1/3, 1/3, 2/3, 2/3, 1; falling: 7 to 10 on 1/2, 1/2, 0, 0
    check(how, 99,
          {{-1, 0},
           {0, 0},
           {1, 1.0 / 3},
           {2, 1.0 / 3},
           {3, 2.0 / 3},
           {4, 2.0 / 3},
           {5, 1},
           {6, 0.5},
           {7, 0.5},
           {8, 0},
           {9, 0}});
}

TEST_CASE("LRRangeTest") {
    schedule how;
    how.type = schedule::kind::range_test;
    how.range_min_lr = 0.5;
    how.range_step_rate = 3;
    how.range_step_size = 4;
    check(how, 99, {{-1, 0.5}, {0, 0.875}, {1, 1.25}, {3, 2}, {7, 3.5}});
    how.range_staircase = true;
    check(how, 99, {{-1, 0.5}, {0, 0.5}, {2, 0.5}, {3, 2}, {6, 2}, {7, 3.5}});
}
