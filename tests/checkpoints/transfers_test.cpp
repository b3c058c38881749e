// Reads and writes with several requests under way, by the ring and by threads: every byte arrives, what fails is
// thrown once nothing is under way, interrupted and short requests go on. What a load overwrites can be put back.
#include "checkpoints/transfers.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <stdexcept>
#include <vector>

#include "checkpoints/undo.hpp"
#include "support/temporary_folder.hpp"

using namespace zero;
using namespace zero::checkpoint;
using namespace zero::test;

namespace {

constexpr std::int64_t piece = 100'000;  // not a multiple of the unit of direct access
constexpr std::size_t count = 23;
constexpr int lanes = 3;

std::vector<std::byte> pattern() {
    std::vector<std::byte> all(static_cast<std::size_t>(piece) * count);
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<std::byte>(k * 2'654'435'761U >> 11);
    return all;
}

// False: the kernel of this machine has no ring.
bool carry(bool ring, const next_transfer& next, const transfer_taken& taken) {
    if (ring) return by_ring(lanes, count, next, taken);
    by_threads(lanes, count, next, taken);
    return true;
}

struct result {
    std::vector<std::byte> had = std::vector<std::byte>(static_cast<std::size_t>(piece) * count);
    std::int64_t moved = 0;
};

void write_all(bool ring, files::file& to, std::vector<std::byte>& from) {
    const auto next = [&](int, std::size_t k) {
        const auto offset = static_cast<std::int64_t>(k) * piece;
        return transfer{&to, true, from.data() + offset, piece, offset};
    };
    carry(ring, next, [](int, std::size_t, std::int64_t had) { CHECK(had == piece); });
}

result read_all(bool ring, files::file& from) {
    result all;
    std::atomic<std::int64_t> moved{0};
    const auto next = [&](int, std::size_t k) {
        const auto offset = static_cast<std::int64_t>(k) * piece;
        return transfer{&from, false, all.had.data() + offset, piece, offset};
    };
    carry(ring, next, [&](int, std::size_t, std::int64_t had) { moved += had; });
    all.moved = moved;
    return all;
}

bool kernel_has_ring() {
    return by_ring(1, 0, {}, {});
}

}  // namespace

TEST_CASE("whole, short and interrupted requests by both ways, directly and not") {
    const bool ring = GENERATE(false, true), direct = GENERATE(false, true), troubled = GENERATE(false, true);
    if (ring && !kernel_has_ring()) return;
    const temporary_folder folder;
    std::atomic<int> number{0};
    const files::disk disk([&](const files::request& what) {
        if (!troubled || (what.what != files::action::read && what.what != files::action::write)) return files::verdict{};
        const int k = number++;
        return files::verdict{k % 5 == 1 ? EINTR : 0, k % 3 == 0 ? 4'096 * (k % 7) + 13 : -1};
    });
    std::vector<std::byte> all = pattern();
    files::file file = disk.create(folder / "f");
    if (direct) file.go_direct();
    write_all(ring, file, all);
    CHECK(file.bytes() == piece * static_cast<std::int64_t>(count));
    const result back = read_all(ring, file);
    CHECK(back.moved == piece * static_cast<std::int64_t>(count));
    CHECK(back.had == all);
}

TEST_CASE("a file that ends is told, not an error") {
    const bool ring = GENERATE(false, true);
    if (ring && !kernel_has_ring()) return;
    const temporary_folder folder;
    const files::disk disk;
    files::file file = disk.create(folder / "f");
    std::vector<std::byte> all = pattern();
    file.write(all.data(), 5 * piece + 7, 0);
    const result back = read_all(ring, file);
    CHECK(back.moved == 5 * piece + 7);
    CHECK(std::equal(all.begin(), all.begin() + 5 * piece + 7, back.had.begin()));
}

TEST_CASE("the n-th request fails: that error, and nothing is under way any more") {
    const bool ring = GENERATE(false, true);
    if (ring && !kernel_has_ring()) return;
    for (int bad = 0; bad < static_cast<int>(count); ++bad) {
        const temporary_folder folder;
        std::atomic<int> number{0};
        const files::disk disk([&](const files::request& what) {
            return files::verdict{what.what == files::action::write && number++ == bad ? ENOSPC : 0, -1};
        });
        files::file file = disk.create(folder / "f");
        std::vector<std::byte> all = pattern();
        int thrown = 0;
        try {
            write_all(ring, file, all);
        } catch (const files::failure& problem) {
            thrown = problem.number();
        }
        CHECK(thrown == ENOSPC);
    }
}

TEST_CASE("what the kernel itself refuses, and what a caller throws in between") {
    const bool ring = GENERATE(false, true);
    if (ring && !kernel_has_ring()) return;
    const temporary_folder folder;
    const files::disk disk;
    std::vector<std::byte> all = pattern();
    {
        files::file file = disk.create(folder / "f");
        write_all(ring, file, all);
    }
    files::file file = disk.open(folder / "f");  // not for writing
    CHECK_THROWS_AS(write_all(ring, file, all), files::failure);
    const auto next = [&](int, std::size_t k) {
        const auto offset = static_cast<std::int64_t>(k) * piece;
        return transfer{&file, false, all.data() + offset, piece, offset};
    };
    const auto taken = [](int, std::size_t k, std::int64_t) {
        if (k == 4) throw std::runtime_error("enough");
    };
    CHECK_THROWS_AS(carry(ring, next, taken), std::runtime_error);
}

TEST_CASE("what a load has overwritten is put back: zeros, other bytes, a place that came twice") {
    ledger book;
    checkpoint::undo kept(book);
    std::string place(300'000, '\0'), odd = "what was here";
    place[250'000] = 'x';  // in the last stretch
    const std::string before = place, odd_before = odd;
    const auto at = [](std::string& text, std::size_t first) { return reinterpret_cast<std::byte*>(text.data() + first); };
    const auto overwrite = [&] {
        kept.expect(300'000);
        for (std::size_t first = 0; first < place.size(); first += 100'000) {
            kept.keep(at(place, first), 100'000);
            place.replace(first, 100'000, std::string(100'000, 'n'));
        }
        for (int times = 0; times < 2; ++times) {
            kept.keep(at(odd, 0), static_cast<std::int64_t>(odd.size()));
            odd.replace(0, odd.size(), odd.size(), static_cast<char>('a' + times));
        }
    };
    overwrite();
    CHECK(book.bytes(purpose::checkpoint) >= 100'000);
    kept.put_back();
    CHECK((place == before));
    CHECK(odd == odd_before);
    CHECK(book.bytes(purpose::checkpoint) == 0);
    overwrite();
    kept.forget();
    kept.put_back();  // nothing
    CHECK(odd == std::string(odd.size(), 'b'));
    CHECK(book.bytes(purpose::checkpoint) == 0);
    // Zeros take nothing.
    std::string zeros(5000, '\0');
    kept.keep(at(zeros, 1), 4999);
    CHECK(book.bytes(purpose::checkpoint) == 0);
    zeros.assign(5000, 'n');
    kept.put_back();
    CHECK((zeros == "n" + std::string(4999, '\0')));
}
