// A private look at memory of the node: edits stay here, are gone after refresh, and leave neighbours in the same page
// alone. Against a plain model of what every byte should be.
#include "device/private_view.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "device/processes.hpp"

using namespace zero;
using namespace device_test;

namespace {

const std::int64_t page = ::sysconf(_SC_PAGESIZE);

// Values of the node, as their owner writes them, and a view of them.
struct looked_at {
    explicit looked_at(std::int64_t bytes) : size(bytes) {
        std::string reason;
        memory = node_memory::make(2, reason);
        before = memory->take_common(100);  // so that the view does not start where the file does
        values = memory->take_common(bytes);
        memory->reserve(values->data, bytes);
        for (std::int64_t i = 0; i < bytes; ++i) values->data[i] = of_node(i);
        view = std::make_unique<private_view>(memory, *values);
    }
    static std::byte of_node(std::int64_t i) { return static_cast<std::byte>(i * 7 % 101); }
    void edit(std::int64_t first, std::int64_t bytes) { std::memset(view->at(first), 0xEE, static_cast<std::size_t>(bytes)); }
    bool is_of_node(std::int64_t first, std::int64_t bytes) const {
        return std::memcmp(view->at(first), values->data + first, static_cast<std::size_t>(bytes)) == 0;
    }
    bool is_edited(std::int64_t first, std::int64_t bytes) const {
        for (std::int64_t i = first; i < first + bytes; ++i)
            if (*view->at(i) != std::byte{0xEE}) return false;
        return true;
    }
    bool node_is_untouched() const {
        for (std::int64_t i = 0; i < size; ++i)
            if (values->data[i] != of_node(i)) return false;
        return true;
    }
    std::int64_t size;
    std::shared_ptr<node_memory> memory;
    std::shared_ptr<const node_memory::stretch> before, values;
    std::unique_ptr<private_view> view;
};

// Random edits and refreshes against a byte-by-byte model, true when all is as it should be. `large`: also ranges that are
// not compared byte by byte first.
bool agrees_with_model(unsigned seed, bool large) {
    const std::int64_t size = (large ? 40 : 5) * page + 123;
    looked_at one(size);
    std::vector<std::byte> model(one.values->data, one.values->data + size);
    std::mt19937 random(seed);
    const auto up_to = [&](std::int64_t most) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1)); };
    for (int turn = 0; turn < 60; ++turn) {
        const std::int64_t first = up_to(size - 1), bytes = up_to(std::min(size - first, random() % 3 == 0 ? size : page / 2));
        const auto letter = static_cast<std::byte>(random());
        const auto kind = random() % 4;
        if (kind == 0) {  // the owner writes: seen here where the page is no copy, so the model asks for it by a refresh
            std::fill_n(one.values->data + first, bytes, letter);
            one.view->refresh(0, size, true);
            std::copy_n(one.values->data, size, model.begin());
        } else if (kind == 1) {
            one.view->refresh(first, bytes, false);
            std::copy_n(one.values->data + first, bytes, model.begin() + first);
        } else {
            std::fill_n(one.view->at(first), bytes, letter);
            std::fill_n(model.begin() + first, bytes, letter);
        }
        if (std::memcmp(model.data(), one.view->at(0), static_cast<std::size_t>(size)) != 0) return false;
    }
    return true;
}

}  // namespace

TEST_CASE("what is written into a view stays there, until it is refreshed") {
    looked_at one(3 * page + 100);
    CHECK(one.is_of_node(0, one.size));
    one.edit(10, 20);
    one.edit(2 * page - 5, 10);
    one.edit(one.size - 1, 1);
    CHECK(one.is_edited(10, 20));
    CHECK(one.node_is_untouched());
    one.view->refresh(0, one.size, true);
    CHECK(one.is_of_node(0, one.size));
    CHECK(one.node_is_untouched());
}

TEST_CASE("pages that were not written show the owner's values as they change, written ones after a refresh") {
    looked_at one(3 * page);
    one.edit(page, 1);
    one.values->data[0] = std::byte{200};
    one.values->data[page + 1] = std::byte{201};
    CHECK(*one.view->at(0) == std::byte{200});
    CHECK_FALSE(one.is_of_node(page, 2));
    one.view->refresh(page, 2, false);
    CHECK(one.is_of_node(0, one.size));
    one.values->data[page + 1] = std::byte{202};  // the page is a copy still
    one.view->refresh(page, 2, true);
    one.values->data[page + 1] = std::byte{203};  // and now no more
    CHECK(one.is_of_node(0, one.size));
}

TEST_CASE("a refresh leaves what was written beside it, unless whole pages are asked for") {
    const bool whole_pages = GENERATE(false, true);
    looked_at one(20 * page);
    const std::int64_t first = page / 2, bytes = GENERATE(as<std::int64_t>{}, 8, 600, 4096, 4096 * 3, 4096 * 15);
    one.edit(first - 100, bytes + 200);
    one.view->refresh(first, bytes, whole_pages);
    CHECK(one.is_of_node(first, bytes));
    const bool kept = one.is_edited(first - 100, 100) && one.is_edited(first + bytes, 100);
    const bool gone = one.is_of_node(first - 100, 100) && one.is_of_node(first + bytes, 100);
    CHECK((whole_pages ? gone : kept));
    CHECK(one.node_is_untouched());
}

TEST_CASE("edits and refreshes at random places against a model") {
    for (unsigned seed = 0; seed < 20; ++seed) {
        CHECK(agrees_with_model(seed, false));
        CHECK(agrees_with_model(seed, true));
    }
}

// A container may hide /proc/self/pagemap; a process that may open no more files sees it the same way.
TEST_CASE("without the kernel's word on which pages were written it is the same") {
    CHECK(in_child([] {
        looked_at one(20 * page);
        const rlimit none{3, 3};
        if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return false;
        if (::open("/proc/self/pagemap", O_RDONLY) >= 0) return false;  // as in the constructor
        one.view = std::make_unique<private_view>(one.memory, *one.values);
        one.edit(page / 2, 12 * page);
        one.view->refresh(page, 10 * page, false);
        if (!one.is_of_node(page, 10 * page) || !one.is_edited(page / 2, page / 2) || !one.is_edited(11 * page, page / 2)) return false;
        one.view->refresh(page, 10 * page + 1, true);
        return one.is_of_node(page, 11 * page) && one.node_is_untouched();
    }));
}

TEST_CASE("two views of the same values know nothing of each other") {
    looked_at one(2 * page);
    private_view other(one.memory, *one.values);
    one.edit(100, 100);
    std::memset(other.at(150), 0x11, 100);
    CHECK(one.is_edited(100, 100));
    CHECK(*other.at(149) == one.values->data[149]);
    other.refresh(0, 2 * page, true);
    CHECK(one.is_edited(100, 100));
    CHECK(std::memcmp(other.at(0), one.values->data, static_cast<std::size_t>(2 * page)) == 0);
}

TEST_CASE("a view of nothing") {
    looked_at one(0);
    one.view->refresh(0, 0, true);
    CHECK(one.size == 0);
}

TEST_CASE("a view leaves no mapping and no descriptor") {
    looked_at one(5 * page);
    const int files = open_files();
    const std::int64_t mapped = mappings_of_node_memory();
    for (int turn = 0; turn < 50; ++turn) {
        private_view other(one.memory, *one.values);
        *other.at(3) = std::byte{1};
    }
    CHECK(open_files() == files);
    CHECK(mappings_of_node_memory() == mapped);
}

TEST_CASE("address space that cannot be had is an error") {
    if (under_sanitizer()) return;
    CHECK(in_child([] {
        looked_at one(page);
        const auto large = one.memory->take_common(std::int64_t{1} << 30);
        const rlimit tight{rlim_t{1} << 29, rlim_t{1} << 29};
        if (::setrlimit(RLIMIT_AS, &tight) != 0) return false;
        try {
            private_view(one.memory, *large);
        } catch (const error& e) {
            return e.which() == code::memory && std::string(e.what()).find("ulimit -v") != std::string::npos;
        }
        return false;
    }));
}
