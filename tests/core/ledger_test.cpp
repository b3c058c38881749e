// Sums and peaks by place and purpose.
#include "core/ledger.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

using namespace zero;

TEST_CASE("bytes are counted by place and by purpose") {
    ledger book;
    book.add(place::host, purpose::states, 100);
    book.add(place::host, purpose::master, 30);
    book.add(place::device, purpose::states, 7);
    CHECK(book.bytes(place::host) == 130);
    CHECK(book.bytes(place::device) == 7);
    CHECK(book.bytes(place::nvme) == 0);
    CHECK(book.bytes(place::host, purpose::states) == 100);
    CHECK(book.bytes(place::host, purpose::master) == 30);
    CHECK(book.bytes(purpose::states) == 107);
    CHECK(book.bytes(purpose::checkpoint) == 0);
}

TEST_CASE("the peak is that of the sum, per place, and stays") {
    ledger book;
    book.add(place::host, purpose::states, 100);
    book.remove(place::host, purpose::states, 100);
    book.add(place::host, purpose::gathered, 60);
    CHECK(book.peak(place::host) == 100);  // not 160: the two never lived together
    book.add(place::host, purpose::handoff, 50);
    CHECK(book.peak(place::host) == 110);
    book.remove(place::host, purpose::gathered, 60);
    book.remove(place::host, purpose::handoff, 50);
    CHECK(book.bytes(place::host) == 0);
    CHECK(book.peak(place::host) == 110);
    CHECK(book.peak(place::device) == 0);
}

TEST_CASE("sums beyond 32 bits are exact") {
    ledger book;
    for (int i = 0; i < 5; ++i) book.add(place::device, purpose::parameters, 3'000'000'001);
    CHECK(book.bytes(place::device) == 15'000'000'005);
}

TEST_CASE("every purpose and place has a name of its own") {
    std::set<std::string> names;
    for (int i = 0; i < static_cast<int>(purpose::count_); ++i) names.insert(name(static_cast<purpose>(i)));
    for (const place where : {place::device, place::host, place::nvme}) names.insert(name(where));
    CHECK(names.size() == static_cast<std::size_t>(purpose::count_) + 3);
    CHECK_FALSE(names.contains("unknown"));
}
