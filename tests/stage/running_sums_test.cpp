// Exact running sums of a slice: what they take is in the ledger once, and given back. Their bits: tests/tensor/exact_vector_test.cpp,
// tests/engine/reproducible_test.cpp.
#include "stage/running_sums.hpp"

#include <catch2/catch.hpp>

using namespace zero;

TEST_CASE("running sums: two doubles per element, more where the terms demand them, all of it in the ledger") {
    ledger book;
    const auto taken = [&] { return book.bytes(place::host, purpose::gradients); };
    constexpr std::int64_t n = 300;
    {
        stage::running_sums kept(book, n);
        CHECK(taken() == n * 16);
        for (int window = 0; window < 3; ++window) {
            for (const double term : {1e300, 1.0, 0x1p-200, -1e300}) {
                const std::vector<double> all(n, term);
                const void* from = all.data();
                const dtype type = dtype::f64;
                kept.sums().add(0, &from, &type, 1, n, term == 1e300);
            }
            kept.book_further();
            CHECK(taken() == n * 16 + n * 8);
            kept.book_further();
            CHECK(taken() == n * 16 + n * 8);
            std::vector<double> sums(n);
            kept.sums().round(dtype::f64, sums.data(), 0, n);
            CHECK(sums == std::vector<double>(n, 1.0));
        }
    }
    CHECK(taken() == 0);
}

TEST_CASE("running sums are kept with several micro-steps only") {
    config::settings how;
    how.accumulation_steps = 2;
    CHECK_FALSE(stage::keeps_running_sums(how));
    how.reproducible = true;
    CHECK(stage::keeps_running_sums(how));
    how.accumulation_steps = 1;
    CHECK_FALSE(stage::keeps_running_sums(how));
}
