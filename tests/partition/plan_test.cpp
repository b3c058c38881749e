// The forecast against the published formulas and against sums by hand.
#include "partition/plan.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "core/error.hpp"

using namespace zero;
using namespace zero::partition;

namespace {

rules with(int ranks, int stage, std::int64_t bucket_elements = 500'000'000) {
    rules how;
    how.where.ranks = ranks;
    how.bucket_elements = bucket_elements;
    how.shard_values = stage == 3;
    return how;
}

plan_rules adam(int stage) {
    plan_rules how;
    how.stage = stage;
    return how;
}

std::int64_t of(const forecast& what, purpose why) {
    return what.bytes[static_cast<std::size_t>(why)];
}

}  // namespace

TEST_CASE("3e9 elements of fp32 on 8 ranks in stage 1 with Adam: 27e9 bytes (B46)") {
    const std::vector<item> items{{3'000'000'000, dtype::f32, 0, true, true}};
    CHECK(plan(layout(items, with(8, 1)), adam(1)).model_states() == 27'000'000'000);
}

TEST_CASE("bytes per element are those of the formulas") {
    // Whole and 1/P part per stage: values, sums of gradients in fp32 (fp64), master, two moments.
    struct row {
        dtype type;
        int stage;
        std::int64_t whole, sliced;
    };
    const row rows[] = {
        {dtype::f32, 0, 16, 0},  {dtype::f32, 1, 8, 8},   {dtype::f32, 2, 4, 12},  {dtype::f32, 3, 0, 16},
        {dtype::f64, 0, 32, 0},  {dtype::f64, 1, 16, 16}, {dtype::f64, 2, 8, 24},  {dtype::f64, 3, 0, 32},
        {dtype::bf16, 0, 18, 0}, {dtype::bf16, 1, 6, 12}, {dtype::bf16, 2, 2, 16}, {dtype::bf16, 3, 0, 18},
        {dtype::f16, 0, 18, 0},  {dtype::f16, 1, 6, 12},  {dtype::f16, 2, 2, 16},  {dtype::f16, 3, 0, 18},
    };
    constexpr std::int64_t elements = 64 * 60;  // divisible: no padding
    for (const row& one : rows) {
        for (const int ranks : {1, 2, 3, 4, 12}) {
            CAPTURE(name(one.type), one.stage, ranks);
            const std::vector<item> items{{elements, one.type, 0, true, true}};
            const forecast got = plan(layout(items, with(ranks, one.stage)), adam(one.stage));
            CHECK(got.model_states() == one.whole * elements + one.sliced * elements / ranks);
        }
    }
}

TEST_CASE("padding is part of what is taken") {
    const std::vector<item> items{{1, dtype::f32, 0, true, true}};
    const layout space(items, with(4, 1));
    const forecast got = plan(space, adam(1));
    CHECK(of(got, purpose::parameters) == 64 * 4);
    CHECK(of(got, purpose::gradients) == 64 * 4);
    CHECK(of(got, purpose::states) == 2 * 16 * 4);
    CHECK(of(got, purpose::master) == 0);
}

TEST_CASE("values in the caller's array cost nothing until stage 3 cuts them") {
    const std::vector<item> items{{640, dtype::f32, 0, false, true}};
    for (const int stage : {0, 1, 2}) {
        CHECK(of(plan(layout(items, with(4, stage)), adam(stage)), purpose::parameters) == 0);
    }
    CHECK(of(plan(layout(items, with(4, 3)), adam(3)), purpose::parameters) == 160 * 4);
    rules persistent = with(4, 3);
    persistent.persistence_threshold = 640;
    CHECK(of(plan(layout(items, persistent), adam(3)), purpose::parameters) == 0);
}

TEST_CASE("stage 3: small tensors are whole, the largest cut one can be gathered") {
    const std::vector<item> items{
        {6400, dtype::f32, 0, true, true}, {64, dtype::f32, 0, true, true}, {3200, dtype::f64, 0, true, true}};
    rules how = with(4, 3);
    how.persistence_threshold = 64;
    const forecast got = plan(layout(items, how), adam(3));
    CHECK(of(got, purpose::parameters) == 1600 * 4 + 64 * 4 + 800 * 8);
    CHECK(of(got, purpose::gradients) == 1600 * 4 + 16 * 4 + 800 * 8);
    CHECK(of(got, purpose::states) == 2 * (1600 * 4 + 16 * 4 + 800 * 8));
    CHECK(got.largest_gather == 25600);
    CHECK(got.at(place::host, place::host).peak == got.total() + 25600);
    CHECK(got.at(place::device, place::host).peak == 0);
    CHECK(got.at(place::device, place::device).peak == got.total() + 25600);
    CHECK(got.at(place::host, place::device).bytes == 0);
    CHECK(plan(layout(items, with(4, 2)), adam(2)).largest_gather == 0);
}

TEST_CASE("frozen tensors cost their values and nothing else (S16)") {
    for (const int stage : {0, 1, 2, 3}) {
        const std::vector<item> items{{1'000'000, dtype::bf16, 0, true, false}};
        const forecast got = plan(layout(items, with(4, stage)), adam(stage));
        const std::int64_t whole = 2 * 1'000'064;
        CHECK(of(got, purpose::parameters) == (stage == 3 ? whole / 4 : whole));
        CHECK(got.total() == of(got, purpose::parameters));
    }
}

TEST_CASE("states of the optimizer and of the caller") {
    const std::vector<item> items{{640, dtype::f32, 0, true, true}};
    for (const auto& [own, user] : {std::pair{0, 0}, {1, 0}, {2, 3}}) {
        plan_rules how = adam(1);
        how.optimizer_states = own;
        how.user_states = user;
        CHECK(of(plan(layout(items, with(4, 1)), how), purpose::states) == (own + user) * 160 * 4);
    }
}

TEST_CASE("staging buckets of stages 2 and 3") {
    // Three buckets of 64, 128 and 64 fp64 elements.
    const std::vector<item> items{
        {64, dtype::f32, 0, true, true}, {128, dtype::f32, 0, true, true}, {64, dtype::f64, 0, true, true}};
    const auto staging = [&](int ranks, int stage, std::int64_t ring) {
        plan_rules how = adam(stage);
        how.ring = ring;
        return of(plan(layout(items, with(ranks, stage, 128)), how), purpose::communication);
    };
    for (const int stage : {2, 3}) {
        CHECK(staging(2, stage, 1) == 512);
        CHECK(staging(2, stage, 2) == 1024);
        CHECK(staging(2, stage, 5) == 3 * 512);  // no more than there are buckets
        CHECK(staging(1, stage, 2) == 0);
    }
    CHECK(staging(2, 0, 2) == 0);
    CHECK(staging(2, 1, 2) == 0);
}

TEST_CASE("frozen buckets do not travel, whatever their size") {
    const std::vector<item> items{{64, dtype::bf16, 0, true, true}, {6400, dtype::f32, 0, true, false}};
    CHECK(of(plan(layout(items, with(2, 2)), adam(2)), purpose::communication) == 64 * 4);  // one, in the type of sums
}

TEST_CASE("exchange and publishing are added as given") {
    plan_rules how = adam(0);
    how.exchange_bytes = 1000;
    how.publish_bytes = 234;
    const forecast got = plan(layout({}, with(2, 0)), how);
    CHECK(of(got, purpose::communication) == 1234);
    CHECK(got.total() == 1234);
    CHECK(got.model_states() == 0);
}

TEST_CASE("bytes that do not fit and stages that do not exist are refused") {
    const std::vector<item> large{{std::int64_t{1} << 60, dtype::f64, 0, true, true}};
    const std::vector<item> sum_too_large{{std::int64_t{1} << 59, dtype::f32, 0, true, true}};
    for (const auto& items : {large, sum_too_large}) {
        const layout space(items, with(1, 0));
        CHECK_THROWS_AS(plan(space, adam(0)), error);
    }
    for (const int stage : {-1, 4}) CHECK_THROWS_AS(plan(layout({}, with(1, 0)), adam(stage)), error);
}

TEST_CASE("a part of the states is offloaded in whole buckets, evenly over their order") {
    std::vector<item> items(20, item{64, dtype::f32, 0, true, true});
    items[7].trainable = false;
    const layout space(items, with(2, 2, 64));
    for (const double part : {0.0, 0.25, 0.5, 0.9, 1.0}) {
        const auto chosen = offloaded_buckets(space, part);
        REQUIRE(chosen.size() == space.buckets().size());
        double passed = 0, there = 0;
        for (std::size_t b = 0; b < chosen.size(); ++b) {
            CAPTURE(part, b);
            const auto& one = space.buckets()[b];
            CHECK((one.trainable || !chosen[b]));
            if (!one.trainable) continue;
            passed += static_cast<double>(one.slice);
            if (chosen[b]) there += static_cast<double>(one.slice);
            CHECK(std::abs(there - part * passed) <= 16);  // half of a bucket's slice
        }
        auto how = adam(2);
        how.states_offloaded = part;
        const auto got = plan(space, how);
        CHECK(got.offloaded[static_cast<std::size_t>(purpose::states)] == static_cast<std::int64_t>(there) * 8);
        CHECK(of(got, purpose::states) == static_cast<std::int64_t>(passed - there) * 8);
    }
}
