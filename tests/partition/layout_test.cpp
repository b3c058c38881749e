// Buckets and slices on cases small enough to check by hand. Random cases: layout_property_test.cpp.
#include "partition/layout.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "core/error.hpp"

using namespace zero;
using namespace zero::partition;

namespace {

std::vector<item> tensors(std::initializer_list<std::int64_t> counts, dtype type = dtype::f32) {
    std::vector<item> items;
    for (const std::int64_t count : counts) items.push_back({count, type, 0, true, true});
    return items;
}

rules with(int ranks, std::int64_t bucket_elements, int nodes = 1) {
    rules how;
    how.where = {ranks, nodes};
    how.bucket_elements = bucket_elements;
    return how;
}

std::vector<std::int64_t> owned_counts(const layout& space, int tensor) {
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < space.ranks().ranks; ++rank) counts.push_back(space.owned(tensor, rank).count);
    return counts;
}

template <typename Action>
code code_of(Action action) {
    try {
        action();
    } catch (const error& caught) {
        return caught.which();
    }
    return code::ok;
}

}  // namespace

TEST_CASE("rank (node m, local l) owns slot l*M + m") {
    const topology two_nodes{6, 2};
    const int expected[] = {0, 2, 4, 1, 3, 5};
    for (int rank = 0; rank < 6; ++rank) CHECK(slot_of_rank(two_nodes, rank) == expected[rank]);
    for (int ranks = 1; ranks <= 64; ++ranks) {
        for (int nodes = 1; nodes <= ranks; ++nodes) {
            if (ranks % nodes != 0) continue;
            std::vector<bool> taken(static_cast<std::size_t>(ranks));
            for (int rank = 0; rank < ranks; ++rank) {
                const int slot = slot_of_rank({ranks, nodes}, rank);
                REQUIRE(rank_of_slot({ranks, nodes}, slot) == rank);
                REQUIRE_FALSE(taken.at(static_cast<std::size_t>(slot)));
                taken[static_cast<std::size_t>(slot)] = true;
            }
        }
    }
    for (const int wrong : {-1, 6}) {
        CHECK(code_of([&] { slot_of_rank(two_nodes, wrong); }) == code::argument);
        CHECK(code_of([&] { rank_of_slot(two_nodes, wrong); }) == code::argument);
    }
}

TEST_CASE("64 tensors of 100 with buckets of 1600 make 4 buckets, gaps notwithstanding (S02)") {
    const layout space(std::vector<item>(64, item{100, dtype::f32, 0, true, true}), with(2, 1600));
    REQUIRE(space.buckets().size() == 4);
    for (const bucket& one : space.buckets()) {
        CHECK(one.elements == 1600);
        CHECK(one.used == 15 * 112 + 100);  // starts 16 elements apart
        CHECK(one.padded == 1792);
        CHECK(one.slice == 896);
    }
    CHECK(space.buckets()[0].tensors.front() == 63);
    CHECK(space.buckets()[3].tensors.back() == 0);
}

TEST_CASE("a tensor larger than a bucket is a bucket of its own (B16)") {
    const layout space(tensors({5, 100, 5}), with(3, 16));
    REQUIRE(space.buckets().size() == 3);
    CHECK(space.buckets()[1].tensors == std::vector<int>{1});
    CHECK(space.buckets()[1].used == 100);
    CHECK(space.buckets()[1].padded == 144);
    CHECK(space.elements() == 110);
    CHECK(space.owned_elements(0) + space.owned_elements(1) + space.owned_elements(2) == 110);
    CHECK(owned_counts(space, 1) == std::vector<std::int64_t>{48, 48, 4});
}

TEST_CASE("buckets are filled from the last tensor to the first") {
    const layout space(tensors({10, 10, 10, 10, 10}), with(1, 20));
    REQUIRE(space.buckets().size() == 3);
    CHECK(space.buckets()[0].tensors == std::vector<int>{4, 3});
    CHECK(space.buckets()[1].tensors == std::vector<int>{2, 1});
    CHECK(space.buckets()[2].tensors == std::vector<int>{0});
    CHECK(space.where(3).bucket == 0);
    CHECK(space.where(3).offset == 16);
    CHECK(space.where(0).bucket == 2);
}

TEST_CASE("empty tensors have a seat and no piece (B14)") {
    for (const auto& counts : std::vector<std::vector<std::int64_t>>{{8, 0, 24}, {16, 0, 16}, {0, 32}, {32, 0}}) {
        std::vector<item> items;
        for (const std::int64_t count : counts) items.push_back({count, dtype::f32, 0, true, true});
        const layout space(items, with(2, 1000));
        REQUIRE(space.buckets().size() == 1);
        const bucket& only = space.buckets()[0];
        CHECK(only.tensors.size() == counts.size());
        CHECK(only.elements == 32);
        CHECK(space.elements() == 32);
        CHECK(space.owned_elements(0) + space.owned_elements(1) == 32);
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const seat& place = space.where(static_cast<int>(i));
            CHECK(place.bucket == 0);
            CHECK(place.offset >= 0);
            CHECK(place.offset <= only.padded);
        }
        for (const piece& one : space.pieces(0, {0, only.padded}))
            CHECK(counts[static_cast<std::size_t>(one.tensor)] > 0);
    }
}

TEST_CASE("an empty tensor opens no bucket and closes none") {
    const layout space(tensors({0, 50, 0, 0, 16, 0}), with(4, 16));
    REQUIRE(space.buckets().size() == 2);
    CHECK(space.buckets()[0].tensors == std::vector<int>{5, 4, 3, 2});
    CHECK(space.buckets()[1].tensors == std::vector<int>{1, 0});
}

TEST_CASE("nothing but empty tensors, and nothing at all") {
    const layout empties(tensors({0, 0}), with(3, 16));
    REQUIRE(empties.buckets().size() == 1);
    CHECK(empties.buckets()[0].used == 0);
    CHECK(empties.buckets()[0].padded == 0);
    CHECK(empties.buckets()[0].slice == 0);
    CHECK(empties.slice_of(0, 2).count == 0);
    CHECK(empties.pieces(0, {0, 0}).empty());
    CHECK(empties.owned(1, 2).count == 0);

    const layout nothing({}, with(3, 16));
    CHECK(nothing.buckets().empty());
    CHECK(nothing.elements() == 0);
    CHECK(nothing.owned_elements(1) == 0);
}

TEST_CASE("more ranks than elements: the rest own padding only") {
    const layout space(tensors({3}), with(8, 1000));
    CHECK(owned_counts(space, 0) == std::vector<std::int64_t>{3, 0, 0, 0, 0, 0, 0, 0});
    CHECK(space.buckets()[0].slice == 16);
    CHECK(space.owned(0, 7).first == 3);  // clamped: nothing, after the last element
}

TEST_CASE("tensors of different kinds never share a bucket") {
    std::vector<item> items(12, item{10, dtype::f32, 0, true, true});
    items[1].type = dtype::bf16;
    items[2].type = dtype::f64;
    items[3].group = 1;
    items[4].library_owned = false;
    items[5].trainable = false;
    for (std::size_t i = 0; i < 6; ++i) items[6 + i] = items[i];
    const layout space(items, with(2, 1000));
    REQUIRE(space.buckets().size() == 6);
    // In the order of their last tensor: 11, 10, ... 6.
    for (int b = 0; b < 6; ++b) {
        const bucket& one = space.buckets()[static_cast<std::size_t>(b)];
        CHECK(one.tensors == std::vector<int>{11 - b, 5 - b});
        const item& kind = items[static_cast<std::size_t>(5 - b)];
        CHECK(one.type == kind.type);
        CHECK(one.group == kind.group);
        CHECK(one.library_owned == kind.library_owned);
        CHECK(one.trainable == kind.trainable);
        CHECK(one.whole_values);
    }
}

TEST_CASE("slices are multiples of 64 bytes of their type") {
    for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
        const layout space(tensors({1, 7}, type), with(4, 1000));
        CHECK(space.buckets()[0].slice * size_of(type) == 64);
        CHECK(space.where(0).offset * size_of(type) == 64);
    }
}

TEST_CASE("stage 3 cuts tensors above the threshold and keeps the small ones whole") {
    rules how = with(2, 100);
    how.shard_values = true;
    how.persistence_threshold = 30;
    const layout space(tensors({10, 31, 30, 500, 0, 20, 40}), how);
    std::vector<std::vector<int>> cut, whole;
    for (const bucket& one : space.buckets()) (one.whole_values ? whole : cut).push_back(one.tensors);
    CHECK(cut == std::vector<std::vector<int>>{{6}, {3}, {1}});
    CHECK(whole == std::vector<std::vector<int>>{{5, 4, 2, 0}});
    CHECK(space.where(6).bucket == 0);
}

TEST_CASE("stage 3 keeps tensors whole in registration order until the cap is reached") {
    rules how = with(2, 1000);
    how.shard_values = true;
    how.persistence_threshold = 30;
    how.persistence_total = 50;
    const layout space(tensors({30, 25, 20, 1}), how);
    const auto whole = [&](int tensor) {
        return space.buckets()[static_cast<std::size_t>(space.where(tensor).bucket)].whole_values;
    };
    CHECK(whole(0));
    CHECK_FALSE(whole(1));  // 55 would break the cap
    CHECK(whole(2));        // 50 does not
    CHECK_FALSE(whole(3));
}

TEST_CASE("pieces of any range") {
    const layout space(tensors({20, 0, 5, 16}), with(2, 1000));
    // Bucket: tensor 3 at 0..15, tensor 2 at 16..20, gap, tensor 1 (empty) and tensor 0 at 32..51; padded 64.
    REQUIRE(space.buckets()[0].padded == 64);
    const auto pieces = space.pieces(0, {18, 20});
    REQUIRE(pieces.size() == 2);
    CHECK(pieces[0].tensor == 2);
    CHECK(pieces[0].first == 2);
    CHECK(pieces[0].count == 3);
    CHECK(pieces[0].offset == 18);
    CHECK(pieces[1].tensor == 0);
    CHECK(pieces[1].first == 0);
    CHECK(pieces[1].count == 6);
    CHECK(pieces[1].offset == 32);
    CHECK(space.pieces(0, {21, 11}).empty());  // the gap
    CHECK(space.pieces(0, {52, 12}).empty());  // the padding
    CHECK(space.pieces(0, {40, 0}).empty());
}

TEST_CASE("wrong rules and sizes that do not fit are refused") {
    const std::vector<item> one = tensors({1});
    CHECK(code_of([&] { layout(one, with(0, 1)); }) == code::argument);
    CHECK(code_of([&] { layout(one, with(4, 1, 3)); }) == code::argument);
    CHECK(code_of([&] { layout(one, with(4, 1, 0)); }) == code::argument);
    CHECK(code_of([&] { layout(one, with(1, 0)); }) == code::argument);
    CHECK(code_of([&] { layout(tensors({-1}), with(1, 1)); }) == code::argument);
    CHECK(code_of([&] { layout(tensors({INT64_MAX, 1}), with(1, 1)); }) == code::argument);
    CHECK(code_of([&] { layout(tensors({INT64_MAX}), with(2, 1)); }) == code::argument);  // padding does not fit
    const layout space(one, with(2, 1));
    CHECK(code_of([&] { space.slice_of(0, 2); }) == code::argument);
    CHECK(code_of([&] { space.owned(0, -1); }) == code::argument);
    CHECK_THROWS(space.slice_of(1, 0));
    CHECK_THROWS(space.where(1));
}

TEST_CASE("sizes beyond 32 bits") {
    const layout space(tensors({3'000'000'000, 2'999'999'999}), with(7, 5'000'000'000));
    CHECK(space.buckets().size() == 2);
    std::int64_t sum = 0;
    for (int rank = 0; rank < 7; ++rank) sum += space.owned_elements(rank);
    CHECK(sum == 5'999'999'999);
}
