// The loss scale as a state machine: traces worked out by hand from the rules in docs/options.md.
#include "optimizer/loss_scale.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using zero::optimizer::loss_scale;
using zero::optimizer::loss_scale_rules;

namespace {

loss_scale_rules dynamic(std::int64_t window, std::int64_t hysteresis) {
    loss_scale_rules rules;
    rules.enabled = true;
    rules.initial_power = 4;
    rules.window = window;
    rules.hysteresis = hysteresis;
    return rules;
}

// 'o' overflow, '.' clean; after each the scale must be the next of `wanted`.
void trace(loss_scale& scale, const std::string& updates, const std::vector<double>& wanted) {
    REQUIRE(updates.size() == wanted.size());
    for (std::size_t i = 0; i < updates.size(); ++i) {
        INFO("update " << i << " of " << updates);
        CHECK(scale.update(updates[i] == 'o'));
        CHECK(scale.value() == wanted[i]);
    }
}

}  // namespace

TEST_CASE("off and fixed: the scale never moves and never fails") {
    loss_scale off;
    trace(off, "o.o.", {1, 1, 1, 1});
    loss_scale_rules rules = dynamic(1, 1);
    rules.fixed = 12;
    loss_scale fixed(rules);
    CHECK(fixed.value() == 12);
    trace(fixed, "ooooo....", {12, 12, 12, 12, 12, 12, 12, 12, 12});
    rules.enabled = false;
    CHECK(loss_scale(rules).value() == 1);
}

TEST_CASE("growth: every window of clean updates, counted from the last overflow") {
    loss_scale scale(dynamic(3, 1));
    CHECK(scale.value() == 16);
    // k = iteration - last - 1, with last = -1: 0 1 2 3 ...; k > 0 and k mod 3 = 0
    trace(scale, ".......", {16, 16, 16, 32, 32, 32, 64});
    // overflow at iteration 7, then k = 0 1 2 3
    trace(scale, "o....", {32, 32, 32, 32, 64});
}

TEST_CASE("hysteresis: that many overflows before each halving, filled up by a growth") {
    loss_scale scale(dynamic(2, 2));
    trace(scale, "oooo", {16, 8, 4, 2});  // once used up, every overflow halves
    loss_scale second(dynamic(2, 2));
    trace(second, "o.o", {16, 16, 8});  // a clean update alone does not fill it up
    trace(second, "...", {8, 8, 16});   // k = 0 1 2: grows, and the hysteresis is full again
    CHECK(second.state().hysteresis == 2);
    trace(second, "oo", {16, 8});
}

TEST_CASE("consecutive hysteresis: every clean update fills it up") {
    loss_scale_rules rules = dynamic(100, 2);
    rules.consecutive_hysteresis = true;
    loss_scale scale(rules);
    trace(scale, "o.o.o.oo", {16, 16, 16, 16, 16, 16, 16, 8});
}

TEST_CASE("minimum: reached quietly, an overflow there is told, the scale stays usable") {
    loss_scale_rules rules = dynamic(2, 1);
    rules.minimum = 3;
    loss_scale scale(rules);
    trace(scale, "ooo", {8, 4, 3});
    CHECK_FALSE(scale.update(true));
    CHECK(scale.value() == 3);
    CHECK(scale.state().iteration == 4);
    CHECK(scale.state().last_overflow == 3);
    trace(scale, "...", {3, 3, 6});
    trace(scale, "o", {3});
    CHECK_FALSE(scale.update(true));
}

TEST_CASE("minimum with hysteresis left is not told") {
    loss_scale_rules rules = dynamic(100, 3);
    rules.initial_power = 0;
    loss_scale scale(rules);
    trace(scale, "oo", {1, 1});
    CHECK_FALSE(scale.update(true));
}

TEST_CASE("a snapshot goes on where it was") {
    loss_scale one(dynamic(3, 2)), other(dynamic(3, 2));
    for (const bool overflow : {false, true, false, false}) one.update(overflow);
    other.restore(one.state());
    for (const bool overflow : {false, true, false, true, true, false, false, false, false}) {
        CHECK(one.update(overflow) == other.update(overflow));
        CHECK(one.value() == other.value());
        CHECK(one.state().hysteresis == other.state().hysteresis);
    }
}

TEST_CASE("the scale stays an fp32 number") {
    loss_scale_rules rules = dynamic(1, 1);
    rules.initial_power = 126;
    loss_scale scale(rules);
    trace(scale, "....", {0x1p126, 0x1p127, 0x1p127, 0x1p127});
}
