// Random layouts against a map of every element, drawn from the seats alone: full cover, no overlap, one owner each.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "partition/layout.hpp"

using namespace zero;
using namespace zero::partition;

namespace {

using generator = std::mt19937_64;

std::int64_t below(generator& random, std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
}

std::int64_t some_count(generator& random) {
    constexpr std::int64_t special[] = {0, 1, 2, 13, 31, 64, 97, 101, 128, 1009};
    return below(random, 2) == 0 ? special[below(random, std::ssize(special))] : below(random, 400);
}

std::vector<item> some_items(generator& random) {
    constexpr dtype types[] = {dtype::f32, dtype::f64, dtype::bf16, dtype::f16};
    const bool mixed = below(random, 2) == 0;
    std::vector<item> items(static_cast<std::size_t>(below(random, 25)));
    for (item& one : items) {
        one.count = some_count(random);
        if (!mixed) continue;
        one.type = types[below(random, 4)];
        one.group = static_cast<int>(below(random, 2));
        one.library_owned = below(random, 2) == 0;
        one.trainable = below(random, 4) != 0;
    }
    return items;
}

rules some_rules(generator& random) {
    rules how;
    how.where.ranks = 1 + static_cast<int>(below(random, 64));
    do how.where.nodes = 1 + static_cast<int>(below(random, how.where.ranks));
    while (how.where.ranks % how.where.nodes != 0);
    how.bucket_elements = 1 + below(random, 600);
    how.shard_values = below(random, 2) == 0;
    how.persistence_threshold = below(random, 200);
    if (below(random, 2) == 0) how.persistence_total = below(random, 500);
    return how;
}

using element = std::pair<int, std::int64_t>;  // tensor, index in it
constexpr element padding{-1, -1};

// The bucket element by element. Fails when two tensors share a place or one leaves the bucket.
std::vector<element> draw(const layout& space, const std::vector<item>& items, int index) {
    const bucket& one = space.buckets()[static_cast<std::size_t>(index)];
    std::vector<element> map(static_cast<std::size_t>(one.padded), padding);
    for (const int tensor : one.tensors) {
        for (std::int64_t i = 0; i < items[static_cast<std::size_t>(tensor)].count; ++i) {
            element& place = map.at(static_cast<std::size_t>(space.where(tensor).offset + i));
            REQUIRE(place == padding);
            place = {tensor, i};
        }
    }
    return map;
}

void check_bucket(const layout& space, const std::vector<item>& items, const rules& how, int index) {
    const bucket& one = space.buckets()[static_cast<std::size_t>(index)];
    const int ranks = how.where.ranks;
    std::int64_t elements = 0, used = 0, not_empty = 0;
    REQUIRE_FALSE(one.tensors.empty());
    REQUIRE(std::is_sorted(one.tensors.rbegin(), one.tensors.rend()));
    for (const int tensor : one.tensors) {
        const item& kind = items[static_cast<std::size_t>(tensor)];
        const seat& place = space.where(tensor);
        REQUIRE(place.bucket == index);
        REQUIRE(place.offset * size_of(kind.type) % 64 == 0);
        REQUIRE((place.offset >= 0 && place.offset <= one.padded));
        REQUIRE(std::tuple(kind.type, kind.group, kind.library_owned, kind.trainable) ==
                std::tuple(one.type, one.group, one.library_owned, one.trainable));
        elements += kind.count;
        if (kind.count > 0) used = std::max(used, place.offset + kind.count);
        not_empty += kind.count > 0;
    }
    REQUIRE(one.elements == elements);
    REQUIRE(one.used == used);
    REQUIRE(one.padded == one.slice * ranks);
    REQUIRE(one.slice * size_of(one.type) % 64 == 0);
    REQUIRE(one.padded >= used);
    REQUIRE(one.padded - used < ranks * alignment(one.type));
    REQUIRE((not_empty <= 1 || elements <= how.bucket_elements));
    if (!one.whole_values) REQUIRE((how.shard_values && one.tensors.size() == 1 && elements > 0));
}

// Every rank's slice, piece by piece, must repeat the map; what is left over is padding.
void check_owners(const layout& space, const std::vector<item>& items, int index) {
    const std::vector<element> map = draw(space, items, index);
    std::vector<element> seen(map.size(), padding);
    for (int rank = 0; rank < space.ranks().ranks; ++rank) {
        const range slice = space.slice_of(index, rank);
        REQUIRE(slice.first == slot_of_rank(space.ranks(), rank) * slice.count);
        std::int64_t last = slice.first;
        for (const piece& part : space.pieces(index, slice)) {
            REQUIRE(part.count > 0);
            REQUIRE(part.offset >= last);
            last = part.offset + part.count;
            REQUIRE(last <= slice.first + slice.count);
            const range owned = space.owned(part.tensor, rank);
            REQUIRE((owned.first == part.first && owned.count == part.count));
            for (std::int64_t i = 0; i < part.count; ++i) {
                element& place = seen.at(static_cast<std::size_t>(part.offset + i));
                REQUIRE(place == padding);
                place = {part.tensor, part.first + i};
            }
        }
    }
    REQUIRE(seen == map);
}

void check_sums(const layout& space, const std::vector<item>& items) {
    std::int64_t all = 0, owned = 0;
    for (const item& one : items) all += one.count;
    for (int rank = 0; rank < space.ranks().ranks; ++rank) owned += space.owned_elements(rank);
    REQUIRE(space.elements() == all);
    REQUIRE(owned == all);
    for (std::size_t i = 0; i < items.size(); ++i) {
        // In the order of slots the owned ranges lie end to end, empty ones included.
        std::int64_t next = 0;
        for (int slot = 0; slot < space.ranks().ranks; ++slot) {
            const range part = space.owned(static_cast<int>(i), rank_of_slot(space.ranks(), slot));
            REQUIRE(part.first == next);
            next += part.count;
        }
        REQUIRE(next == items[i].count);
    }
}

// Two neighbours of one kind could not have been one bucket.
void check_no_waste(const layout& space, const std::vector<item>& items, const rules& how) {
    using kind = std::tuple<dtype, int, bool, bool>;
    std::set<std::pair<kind, int>> empties;
    for (const bucket& a : space.buckets()) {
        if (!a.whole_values) continue;
        for (const bucket& b : space.buckets()) {
            const bool same = kind(a.type, a.group, a.library_owned, a.trainable) ==
                                  kind(b.type, b.group, b.library_owned, b.trainable) &&
                              b.whole_values;
            if (!same || b.tensors.front() >= a.tensors.back()) continue;
            const bool neighbours = std::none_of(space.buckets().begin(), space.buckets().end(), [&](const bucket& c) {
                return c.whole_values &&
                       kind(a.type, a.group, a.library_owned, a.trainable) ==
                           kind(c.type, c.group, c.library_owned, c.trainable) &&
                       c.tensors.front() < a.tensors.back() && c.tensors.front() > b.tensors.front();
            });
            if (neighbours) {
                REQUIRE(a.elements + items[static_cast<std::size_t>(b.tensors.front())].count > how.bucket_elements);
            }
        }
    }
}

}  // namespace

TEST_CASE("random layouts: full cover, no overlap, one owner per element, no padding in a piece") {
    generator random(20240607);
    for (int round = 0; round < 600; ++round) {
        const std::vector<item> items = some_items(random);
        const rules how = some_rules(random);
        CAPTURE(round, items.size(), how.where.ranks, how.where.nodes, how.bucket_elements);
        const layout space(items, how);
        std::size_t listed = 0;
        for (int b = 0; b < static_cast<int>(space.buckets().size()); ++b) {
            check_bucket(space, items, how, b);
            check_owners(space, items, b);
            listed += space.buckets()[static_cast<std::size_t>(b)].tensors.size();
        }
        REQUIRE(listed == items.size());
        REQUIRE(std::is_sorted(space.buckets().begin(), space.buckets().end(),
                               [](const bucket& a, const bucket& b) { return a.tensors.front() > b.tensors.front(); }));
        check_sums(space, items);
        check_no_waste(space, items, how);
    }
}

TEST_CASE("pieces of random ranges repeat the map of the bucket") {
    generator random(11);
    for (int round = 0; round < 200; ++round) {
        const std::vector<item> items = some_items(random);
        const layout space(items, some_rules(random));
        for (int b = 0; b < static_cast<int>(space.buckets().size()); ++b) {
            const std::vector<element> map = draw(space, items, b);
            const std::int64_t first = below(random, std::ssize(map) + 1);
            const std::int64_t count = below(random, std::ssize(map) - first + 1);
            std::vector<element> seen(map.size(), padding), expected(map.size(), padding);
            std::copy_n(map.begin() + first, count, expected.begin() + first);
            for (const piece& part : space.pieces(b, {first, count})) {
                for (std::int64_t i = 0; i < part.count; ++i) {
                    seen.at(static_cast<std::size_t>(part.offset + i)) = {part.tensor, part.first + i};
                }
            }
            REQUIRE(seen == expected);
        }
    }
}

TEST_CASE("the layout does not depend on the rank count but for padding") {
    generator random(5);
    const std::vector<item> items = some_items(random);
    rules how;
    how.bucket_elements = 300;
    const layout one(items, how);
    how.where = {12, 3};
    const layout twelve(items, how);
    REQUIRE(one.buckets().size() == twelve.buckets().size());
    for (std::size_t b = 0; b < one.buckets().size(); ++b) {
        CHECK(one.buckets()[b].tensors == twelve.buckets()[b].tensors);
        CHECK(one.buckets()[b].used == twelve.buckets()[b].used);
    }
}

TEST_CASE("a hundred thousand tensors take moments") {
    // One large bucket and many small ones: each would show a quadratic search.
    for (const std::int64_t bucket_elements : {std::int64_t{1} << 40, std::int64_t{1}}) {
        const std::vector<item> items(100'000, item{3, dtype::f32, 0, true, true});
        const auto start = std::chrono::steady_clock::now();
        rules how;
        how.where.ranks = 4;
        how.bucket_elements = bucket_elements;
        const layout space(items, how);
        std::size_t pieces = 0;
        for (int b = 0; b < static_cast<int>(space.buckets().size()); ++b) {
            for (int rank = 0; rank < 4; ++rank) pieces += space.pieces(b, space.slice_of(b, rank)).size();
        }
        for (int part = 0; part < 100'000 && space.buckets().size() == 1; ++part) {
            pieces += space.pieces(0, {16 * part, 1}).size();
        }
        CHECK(pieces >= 100'000);
        CHECK(space.owned_elements(0) > 0);
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        CHECK(taken.count() < 5);
    }
}
