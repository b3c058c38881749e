// One rank without MPI: this program never calls MPI_Init, so any MPI call in here would end it.
#include <catch2/catch.hpp>
#include <numeric>

#include "comm/communicator.hpp"
#include "core/error.hpp"

using namespace zero;

TEST_CASE("a reduction over one rank is a copy or an addition, announced in ranges") {
    const auto alone = comm::make_self();
    std::vector<double> source(150'000), target(source.size(), 1.0);
    std::iota(source.begin(), source.end(), 0.0);
    const bool add = GENERATE(false, true);
    std::int64_t next = 0;
    auto going = alone->start_reduce_scatter({.source = source.data(),
                                              .sum_type = dtype::f64,
                                              .travel_type = dtype::f64,
                                              .slice = 150'000,
                                              .target = target.data(),
                                              .add = add,
                                              .finished = [&](int, std::int64_t first, std::int64_t count, void*) {
                                                  CHECK(first == next);
                                                  next += count;
                                              }});
    going->finish();
    CHECK(next == 150'000);
    CHECK(target[149'999] == 149'999.0 + (add ? 1.0 : 0.0));
    CHECK(target[0] == (add ? 1.0 : 0.0));
}

TEST_CASE("a reduction in place leaves the values") {
    const auto alone = comm::make_self();
    std::vector<float> values{1, 2, 3};
    auto going = alone->start_reduce_scatter({.source = values.data(), .slice = 3, .target = values.data()});
    CHECK(going->progress());
    CHECK(values == std::vector<float>{1, 2, 3});
}

TEST_CASE("the other verbs of one rank") {
    const auto alone = comm::make_self();
    CHECK(alone->rank() == 0);
    CHECK(alone->size() == 1);
    CHECK(alone->nodes().nodes == 1);
    int from = 5, to = 0;
    alone->start_all_gather({&from, sizeof from, {{&to, sizeof to}}, -1})->finish();
    CHECK(to == 5);
    std::int64_t number = 3;
    alone->all_reduce({&number, 1}, comm::combine::sum);
    CHECK(number == 3);
    CHECK(alone->gather("text", 0) == std::vector<std::string>{"text"});
    CHECK(alone->broadcast(std::string("text"), 0) == "text");
    ledger book;
    alone->reserve(book, 1 << 20);
    CHECK(book.bytes(place::host) == 0);
    CHECK(alone->scratch_bytes(1 << 20) == 0);
}

TEST_CASE("without MPI_Init there is no communicator to duplicate") {
    CHECK_FALSE(comm::mpi_is_usable());
    const int any = 0;
    CHECK_THROWS_AS(comm::make(&any, {}), error);
}
