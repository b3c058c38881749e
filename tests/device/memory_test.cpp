// Buffers: what they promise, what the ledger says, and what happens when memory cannot be had.
#include "device/memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "core/error.hpp"

using namespace zero;

namespace {

constexpr std::int64_t mebibyte = 1 << 20;

code code_of(ledger& book, std::int64_t bytes, std::string* text = nullptr) {
    try {
        const buffer wanted(book, purpose::states, bytes);
    } catch (const error& caught) {
        if (text != nullptr) *text = caught.what();
        return caught.which();
    }
    return code::ok;
}

bool all_zero(const buffer& one) {
    return std::all_of(one.data(), one.data() + one.bytes(), [](std::byte b) { return b == std::byte{0}; });
}

bool is_resident(const buffer& one) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const auto into_page = reinterpret_cast<std::uintptr_t>(one.data()) % page;
    const auto length = static_cast<std::size_t>(one.bytes()) + into_page;
    std::vector<unsigned char> pages((length + page - 1) / page);
    if (mincore(one.data() - into_page, length, pages.data()) != 0) return false;
    return std::all_of(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1) != 0; });
}

// Bytes of address space in use.
std::int64_t address_space() {
    std::ifstream in("/proc/self/statm");
    std::int64_t pages = 0;
    in >> pages;
    return pages * sysconf(_SC_PAGESIZE);
}

// Runs `action` in a child process; true when it returned true there.
template <typename Action>
bool in_child(Action action) {
    const pid_t child = fork();
    if (child == 0) _exit(action() ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Address and thread sanitizer replace mlock by nothing: then it succeeds even where no memory is mapped.
bool locking_is_real() {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    return mlock(reinterpret_cast<void*>(page), page) != 0;
}

}  // namespace

TEST_CASE("buffers of all sizes are zeroed, aligned, writable and in the ledger") {
    ledger book;
    for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{63}, std::int64_t{64}, std::int64_t{1000},
                                     mebibyte - 1, mebibyte, mebibyte + 1, 16 * mebibyte, 33 * mebibyte + 5}) {
        for (const memory_kind kind : {memory_kind::plain, memory_kind::pinned}) {
            CAPTURE(bytes);
            void* dirty = std::malloc(static_cast<std::size_t>(bytes));  // so that reused heap is not zero by luck
            std::memset(dirty, 0xA5, static_cast<std::size_t>(bytes));
            std::free(dirty);
            buffer one(book, purpose::gradients, bytes, kind);
            CHECK(one.bytes() == bytes);
            CHECK(static_cast<bool>(one));
            CHECK(reinterpret_cast<std::uintptr_t>(one.data()) % 64 == 0);
            CHECK(all_zero(one));
            std::memset(one.data(), 1, static_cast<std::size_t>(bytes));
            CHECK(book.bytes(place::host, purpose::gradients) == bytes);
            CHECK(book.bytes(place::device) == 0);
        }
    }
    CHECK(book.bytes(place::host) == 0);
    CHECK(book.peak(place::host) == 33 * mebibyte + 5);
}

TEST_CASE("every page of a large buffer is there at once") {
    ledger book;
    const buffer one(book, purpose::states, 20 * mebibyte + 12345);
    CHECK(is_resident(one));
}

TEST_CASE("large buffers go back to the system") {
    ledger book;
    const std::int64_t before = address_space();
    for (int i = 0; i < 20; ++i) {
        const buffer one(book, purpose::states, 24 * mebibyte + i);
        CHECK(address_space() >= before + 24 * mebibyte);
        CHECK(address_space() < before + 28 * mebibyte);  // the ends of an aligned mapping are given back
    }
    CHECK(address_space() < before + 4 * mebibyte);
}

TEST_CASE("a buffer of no bytes") {
    ledger book;
    const buffer none(book, purpose::states, 0), fresh;
    CHECK_FALSE(static_cast<bool>(none));
    CHECK(none.data() == nullptr);
    CHECK(none.bytes() == 0);
    CHECK_FALSE(static_cast<bool>(fresh));
    CHECK(book.peak(place::host) == 0);
}

TEST_CASE("a moved buffer is counted once") {
    ledger book;
    buffer first(book, purpose::states, 100), second(book, purpose::master, 2 * mebibyte);
    std::byte* const data = first.data();
    buffer third(std::move(first));
    CHECK(third.data() == data);
    CHECK_FALSE(static_cast<bool>(first));
    CHECK(book.bytes(place::host) == 100 + 2 * mebibyte);
    second = std::move(third);
    CHECK(second.data() == data);
    CHECK(second.bytes() == 100);
    CHECK(book.bytes(place::host) == 100);
    CHECK(book.bytes(place::host, purpose::master) == 0);
    buffer& same = second;
    second = std::move(same);
    CHECK(second.data() == data);
    second = buffer();
    CHECK(book.bytes(place::host) == 0);
}

TEST_CASE("what cannot be had is an error with size and purpose, and is not counted") {
    ledger book;
    for (const std::int64_t bytes : {std::int64_t{-1}, INT64_MIN, INT64_MAX, INT64_MAX - 4096, std::int64_t{1} << 60}) {
        std::string text;
        CHECK(code_of(book, bytes, &text) == code::memory);
        CHECK_THAT(text, Catch::Contains(std::to_string(bytes)) && Catch::Contains("optimizer states"));
    }
    CHECK(book.peak(place::host) == 0);
}

TEST_CASE("a limit on the address space is an error, not a kill") {
    ledger book;
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
    rlimit tight = before;
    tight.rlim_cur = static_cast<rlim_t>(address_space() + 64 * mebibyte);
    REQUIRE(setrlimit(RLIMIT_AS, &tight) == 0);
    const code too_much = code_of(book, 80 * mebibyte), fits = code_of(book, 8 * mebibyte);
    REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
    CHECK(too_much == code::memory);
    CHECK(fits == code::ok);
    CHECK(code_of(book, 80 * mebibyte) == code::ok);
}

TEST_CASE("pinned memory is locked, or plain where the limit forbids it") {
    ledger book;
    const buffer plain(book, purpose::states, 100);
    CHECK_FALSE(plain.locked());
    if (!locking_is_real()) return;
    const auto with_limit = [&](rlim_t limit, bool expected) {
        return in_child([&] {
            // Root may lock without limit: give that up first.
            const rlimit locked{limit, limit};
            if (setrlimit(RLIMIT_MEMLOCK, &locked) != 0) return false;
            if (geteuid() == 0 && seteuid(65534) != 0) return false;
            buffer one(book, purpose::states, 8192, memory_kind::pinned);
            std::memset(one.data(), 1, 8192);
            return one.locked() == expected && one.bytes() == 8192;
        });
    };
    CHECK(with_limit(0, false));
    rlimit now{};
    REQUIRE(getrlimit(RLIMIT_MEMLOCK, &now) == 0);
    if (now.rlim_max >= 65536) CHECK(with_limit(65536, true));
}
