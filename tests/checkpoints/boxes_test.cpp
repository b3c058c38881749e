// Ranges as boxes, by brute force over random shapes; names as paths.
#include "checkpoints/boxes.hpp"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "checkpoints/paths.hpp"

using namespace zero::checkpoint;

static void list_elements(const std::vector<std::int64_t>& dims, const box& one, std::vector<std::int64_t>& to) {
    std::vector<std::int64_t> at(dims.size(), 0);
    for (;;) {
        std::int64_t flat = 0;
        for (std::size_t d = 0; d < dims.size(); ++d) flat = flat * dims[d] + one.start[d] + at[d];
        to.push_back(flat);
        std::size_t d = dims.size();
        while (d > 0 && ++at[d - 1] == one.extent[d - 1]) at[--d] = 0;
        if (d == 0) return;
    }
}

TEST_CASE("the boxes of a range are the range, in order, at most 2 ndim - 1 of them") {
    std::mt19937 random(5);
    for (int round = 0; round < 3000; ++round) {
        std::vector<std::int64_t> dims(1 + random() % 5);
        std::int64_t count = 1;
        for (std::int64_t& dim : dims) count *= dim = 1 + static_cast<std::int64_t>(random() % 5);
        const std::int64_t first = static_cast<std::int64_t>(random()) % count;
        const std::int64_t length = 1 + static_cast<std::int64_t>(random()) % (count - first);
        const std::vector<box> found = boxes(dims, first, length);
        REQUIRE(found.size() <= 2 * dims.size() - 1);
        std::vector<std::int64_t> elements, right(static_cast<std::size_t>(length));
        for (const box& one : found) list_elements(dims, one, elements);
        std::iota(right.begin(), right.end(), first);
        REQUIRE(elements == right);
    }
}

TEST_CASE("a dataset is never a group too, and no two names meet") {
    const std::vector<std::string> names{"w", "w/b", "w.value", "a/b/c", "a/b", "plain", "w.value.value/x"};
    const std::vector<std::string> paths = dataset_paths(names);
    CHECK(paths[5] == "plain");
    CHECK(paths[1] == "w/b");
    for (std::size_t a = 0; a < paths.size(); ++a)
        for (std::size_t b = 0; b < paths.size(); ++b) {
            if (a == b) continue;
            CHECK(paths[a] != paths[b]);
            CHECK_FALSE(paths[b].starts_with(paths[a] + "/"));
        }
}
