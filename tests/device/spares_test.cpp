// Buffers that rest between uses: the same memory comes back, the ledger knows only what is awake, and never more is kept
// than was awake at once.
#include "device/spares.hpp"

#include <catch2/catch.hpp>
#include <cstring>

using namespace zero;

namespace {
constexpr std::int64_t mebibyte = 1 << 20;
}

TEST_CASE("what was given back is taken again, and is not in the ledger meanwhile") {
    ledger book;
    {
        spares store([&](std::int64_t bytes) { return buffer(book, purpose::gathered, bytes); });
        buffer one = store.take(2 * mebibyte);
        const std::byte* place = one.data();
        std::memset(one.data(), 7, static_cast<std::size_t>(one.bytes()));
        CHECK(book.bytes(purpose::gathered) == 2 * mebibyte);
        store.give_back(std::move(one));
        CHECK(book.bytes(purpose::gathered) == 0);
        buffer again = store.take(2 * mebibyte);
        CHECK(again.data() == place);
        CHECK(book.bytes(purpose::gathered) == 2 * mebibyte);
        std::memset(again.data(), 8, static_cast<std::size_t>(again.bytes()));
        CHECK(again.data()[again.bytes() - 1] == std::byte{8});
        store.give_back(std::move(again));
    }
    CHECK(book.bytes(place::host) == 0);
}

TEST_CASE("another size displaces what rests beyond the most that was awake") {
    ledger book;
    spares store([&](std::int64_t bytes) { return buffer(book, purpose::gathered, bytes); });
    store.give_back(store.take(2 * mebibyte));
    CHECK(store.resting() == 2 * mebibyte);
    buffer larger = store.take(3 * mebibyte);  // 3 is now the most: nothing else may rest beside it
    CHECK(store.resting() == 0);
    buffer small = store.take(1000);           // from the heap: freed at once
    store.give_back(std::move(small));
    CHECK(store.resting() == 0);
    store.give_back(std::move(larger));
    CHECK(store.resting() == 3 * mebibyte);
    buffer none = store.take(0);
    CHECK(none.bytes() == 0);
    store.give_back(std::move(none));
}
