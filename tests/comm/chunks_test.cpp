// The chunk planner (case B50 a) and its edges.
#include "comm/chunks.hpp"

#include <catch2/catch.hpp>

using zero::comm::chunks;

TEST_CASE("five billion elements go in three chunks") {
    const chunks parts{5'000'000'000};
    REQUIRE(parts.number() == 3);
    CHECK(parts.count(0) == 2'147'483'647);
    CHECK(parts.count(2) == 705'032'706);
    CHECK(parts.first(2) + parts.count(2) == 5'000'000'000);
    std::int64_t bytes = 0;
    for (std::int64_t k = 0; k < parts.number(); ++k) bytes += parts.count(k) * 8;
    CHECK(bytes == 40'000'000'000);
}

TEST_CASE("chunks cover the whole, one after the other") {
    for (std::int64_t total : {0, 1, 6, 7, 8, 100}) {
        const chunks parts{total, 7};
        std::int64_t next = 0;
        for (std::int64_t k = 0; k < parts.number(); ++k) {
            CHECK(parts.first(k) == next);
            CHECK(parts.count(k) > 0);
            CHECK(parts.count(k) <= 7);
            next += parts.count(k);
        }
        CHECK(next == total);
    }
}
