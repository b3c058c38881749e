// The memory that the ranks of a node share: places, pages that come and go, who may open it, and who lives. Here the ranks
// are this process, or processes that it starts; MPI is not needed.
#include "device/node_memory.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "device/processes.hpp"

using namespace zero;
using namespace device_test;

namespace {

const std::int64_t page = ::sysconf(_SC_PAGESIZE);

std::shared_ptr<node_memory> made(int ranks) {
    std::string reason;
    auto memory = node_memory::make(ranks, reason);
    INFO(reason);
    REQUIRE(memory != nullptr);
    return memory;
}

std::int64_t bytes_in_use(const node_memory& memory) {
    struct stat about {};
    REQUIRE(::fstat(static_cast<int>(memory.where().descriptor), &about) == 0);
    return static_cast<std::int64_t>(about.st_blocks) * 512;
}

bool all_zero(const std::byte* from, std::int64_t bytes) {
    return std::all_of(from, from + bytes, [](std::byte b) { return b == std::byte{0}; });
}

template <typename Call>
code code_of(const Call& call, std::string* text = nullptr) {
    try {
        call();
    } catch (const error& caught) {
        if (text != nullptr) *text = caught.what();
        return caught.which();
    }
    return code::ok;
}

}  // namespace

TEST_CASE("ranks find each other's bytes at equal offsets") {
    const auto first = made(3);
    std::string reason;
    const auto last = node_memory::open(first->where(), 2, reason);
    REQUIRE(last != nullptr);
    const auto a = first->take_common(10'000), b = last->take_common(10'000);
    const auto c = first->take_common(1), d = last->take_common(1);
    CHECK(first->offset_of(a->data) == last->offset_of(b->data));
    CHECK(first->offset_of(c->data) == last->offset_of(d->data));
    CHECK(first->offset_of(c->data) >= first->offset_of(a->data) + 10'000);
    CHECK(first->offset_of(a->data) >= page);  // before it stands the token
    first->reserve(a->data + 100, 9'000);
    std::memset(a->data + 100, 7, 9'000);
    CHECK(std::all_of(b->data + 100, b->data + 9'100, [](std::byte x) { return x == std::byte{7}; }));
    CHECK(all_zero(b->data, 100));

    const auto mine = first->take_own(5'000), theirs = last->take_own(5'000);
    CHECK(first->offset_of(mine->data) != last->offset_of(theirs->data));
    theirs->data[4'999] = std::byte{9};
    CHECK(*first->at(last->offset_of(theirs->data) + 4'999) == std::byte{9});
    CHECK(all_zero(mine->data, 5'000));
    const int elsewhere = 0;
    CHECK(first->offset_of(&elsewhere) == -1);
    CHECK(first->offset_of(b->data) == -1);  // the other mapping of the same pages
}

TEST_CASE("own memory is reserved, aligned, zero, and goes back to the system") {
    const auto memory = made(2);
    const std::int64_t before = bytes_in_use(*memory);
    for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, page, page + 1, 63 * page, 64 * page, 100 * page + 5}) {
        CAPTURE(bytes);
        for (int again = 0; again < 2; ++again) {
            const auto one = memory->take_own(bytes);
            CHECK(one->bytes == bytes);
            CHECK(reinterpret_cast<std::uintptr_t>(one->data) % 64 == 0);
            CHECK(bytes_in_use(*memory) >= before + bytes);
            CHECK(bytes_in_use(*memory) <= before + bytes + 2 * page);
            CHECK(all_zero(one->data, bytes));
            std::memset(one->data, 0xA5, static_cast<std::size_t>(bytes));
        }
        CHECK(bytes_in_use(*memory) == before);
    }
}

TEST_CASE("stretches that lie beside each other never meet, in whatever order they come and go") {
    const auto memory = made(2);
    std::mt19937 random(3);
    std::map<int, std::shared_ptr<const node_memory::stretch>> held;
    for (int turn = 0; turn < 400; ++turn) {
        const int key = static_cast<int>(random() % 12);
        auto& one = held[key];
        if (one) {
            CHECK(std::all_of(one->data, one->data + one->bytes, [&](std::byte b) { return b == std::byte(key + 1); }));
            one.reset();
        } else {
            one = memory->take_own(static_cast<std::int64_t>(random() % 9'000));
            CHECK(all_zero(one->data, one->bytes));
            std::memset(one->data, key + 1, static_cast<std::size_t>(one->bytes));
        }
    }
}

// Staging for gradients that come late is taken and given back at every step, above memory that stays.
TEST_CASE("what was given back is used again although older stretches stay") {
    const auto memory = made(2);
    const auto stays = memory->take_own(100), board = memory->take_common(100);
    const std::int64_t most = memory->where().part_bytes / 3;
    std::int64_t own = -1;
    for (int turn = 0; turn < 10; ++turn) {
        const auto a = memory->take_own(page), b = memory->take_own(page);
        if (own >= 0) CHECK(memory->offset_of(a->data) == own);
        own = memory->offset_of(a->data);
        CHECK(code_of([&] { memory->take_common(most); }) == code::ok);
    }
}

// A commit that failed on one rank gives the values' memory back on all; the context may stay, and be committed again.
TEST_CASE("common memory that is discarded goes back to the system, and reads zero when it is taken again") {
    const auto memory = made(2);
    const auto board = memory->take_common(100);
    memory->reserve(board->data, 100);
    std::memset(board->data, 1, 100);
    const std::int64_t before = bytes_in_use(*memory);
    for (int turn = 0; turn < 2; ++turn) {
        const auto values = memory->take_common(50 * page);
        memory->reserve(values->data + 10 * page, 20 * page);
        CHECK(bytes_in_use(*memory) >= before + 20 * page);
        CHECK(all_zero(values->data + 10 * page, 20 * page));
        std::memset(values->data + 10 * page, 5, static_cast<std::size_t>(20 * page));
        std::memset(values->data + 30 * page, 6, 100);  // another rank's, in the page where this rank's end
        memory->discard(values->data + 10 * page, 20 * page);
        CHECK(bytes_in_use(*memory) == before + page);
        CHECK(all_zero(values->data + 10 * page, 20 * page));
        CHECK(values->data[30 * page + 99] == std::byte{6});
        memory->discard(values->data + 30 * page, 50);
        CHECK(all_zero(values->data + 30 * page, 50));
        CHECK(values->data[30 * page + 50] == std::byte{6});
        memory->discard(values->data + 10 * page, 21 * page);  // looking at a hole fills it
    }
    CHECK(bytes_in_use(*memory) == before);
    CHECK(board->data[99] == std::byte{1});
}

TEST_CASE("what cannot be had is an error, never a signal") {
    const auto memory = made(2);
    const std::int64_t before = bytes_in_use(*memory), part = memory->where().part_bytes;
    for (const std::int64_t bytes : {INT64_MAX, INT64_MAX - page, std::int64_t{1} << 60, part, part - page}) {
        CAPTURE(bytes);
        std::string text;
        CHECK(code_of([&] { memory->take_own(bytes); }, &text) == code::memory);  // a part is as large as the machine's memory
        CHECK_THAT(text, Catch::Contains(std::to_string(bytes)));
        if (bytes >= part) CHECK(code_of([&] { memory->take_common(bytes); }) == code::memory);
    }
    CHECK(bytes_in_use(*memory) == before);
    CHECK(code_of([&] { memory->take_own(1000); }) == code::ok);
}

TEST_CASE("a wrong file, a file that is closed and a process that is gone are told from the right one") {
    const auto memory = made(2), other = made(2);
    std::string reason;
    auto wrong = memory->where();
    wrong.descriptor = other->where().descriptor;
    CHECK(node_memory::open(wrong, 1, reason) == nullptr);
    CHECK_THAT(reason, Catch::Contains("different"));
    wrong = memory->where();
    wrong.descriptor = ::open("/dev/null", O_RDWR);
    CHECK(node_memory::open(wrong, 1, reason) == nullptr);
    CHECK_THAT(reason, Catch::Contains("different"));
    ::close(static_cast<int>(wrong.descriptor));
    CHECK(node_memory::open(wrong, 1, reason) == nullptr);
    CHECK_THAT(reason, Catch::Contains("/proc/") && Catch::Contains("No such file"));
    const pid_t gone = ::fork();
    if (gone == 0) ::_exit(0);
    ::waitpid(gone, nullptr, 0);
    wrong = memory->where();
    wrong.process = gone;
    CHECK(node_memory::open(wrong, 1, reason) == nullptr);
    CHECK_THAT(reason, Catch::Contains("/proc/"));
}

TEST_CASE("limits of the shell refuse it with a reason") {
    const auto refused = [](int which, rlim_t limit, const char* word) {
        return in_child([&] {
            const rlimit tight{limit, limit};
            if (::setrlimit(static_cast<__rlimit_resource>(which), &tight) != 0) return false;
            std::string reason;
            return node_memory::make(2, reason) == nullptr && reason.find(word) != std::string::npos;
        });
    };
    CHECK(refused(RLIMIT_FSIZE, 1 << 20, "ulimit -f"));
    CHECK(refused(RLIMIT_FSIZE, rlim_t{1} << 60, "ulimit -f"));
    CHECK(refused(RLIMIT_NOFILE, 3, "memfd_create: Too many open files"));
    if (!under_sanitizer()) CHECK(refused(RLIMIT_AS, rlim_t{1} << 30, "Cannot allocate memory"));  // those need more themselves
}

TEST_CASE("a rank lives until its process has ended, whatever its children do") {
    const auto memory = made(3);
    CHECK(memory->lives(0));
    CHECK_FALSE(memory->lives(1));  // has not come yet
    child_process rank([&] {
        std::string reason;
        const auto theirs = node_memory::open(memory->where(), 1, reason);
        if (!theirs || !theirs->lives(0) || theirs->lives(2)) ::_exit(1);
        const pid_t grandchild = ::fork();
        if (grandchild == 0) return child_process::sleep();  // holds the file open, and is not the rank
        child_process::tell(grandchild);
        child_process::sleep();
    });
    const pid_t grandchild = rank.told();
    REQUIRE(grandchild > 0);
    CHECK(memory->lives(1));
    CHECK_FALSE(memory->lives(2));
    ::kill(rank.id(), SIGSTOP);
    CHECK(memory->lives(1));  // slow is not dead
    rank.kill();
    CHECK_FALSE(memory->lives(1));
    ::kill(grandchild, SIGKILL);
}

TEST_CASE("a child of a rank leaves the rank's memory and lock alone when it ends") {
    const auto memory = made(2);
    const auto mine = memory->take_own(10'000);
    std::memset(mine->data, 3, 10'000);
    CHECK(in_child([&] { return ::close(static_cast<int>(memory->where().descriptor)) == 0; }));
    CHECK(in_child([&] {  // a process that is no child of the rank's would see it so
        std::string reason;
        const auto theirs = node_memory::open(memory->where(), 1, reason);
        return theirs != nullptr && theirs->lives(0) && *theirs->at(memory->offset_of(mine->data)) == std::byte{3};
    }));
}

TEST_CASE("nothing is left of it") {
    const int before = open_files();
    const std::int64_t mapped = mappings_of_node_memory();
    for (int turn = 0; turn < 20; ++turn) {
        const auto memory = made(2);
        std::string reason;
        const auto other = node_memory::open(memory->where(), 1, reason);
        const auto held = memory->take_own(100);
        auto wrong = memory->where();
        ++wrong.token;
        CHECK(node_memory::open(wrong, 1, reason) == nullptr);
    }
    CHECK(open_files() == before);
    CHECK(mappings_of_node_memory() == mapped);
}
