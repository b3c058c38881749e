// What only ranks that share memory can get wrong: more under way than there are slots, long reductions, one that is given
// up, refusal on one rank, and a rank that dies while the others wait for it. The verbs as such: the tests of their names,
// with ZERO_TEST_NODE_SHARED.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>

#include "comm/node_shared.hpp"
#include "comm/ranks.hpp"

using namespace zero;
using namespace ranks;

namespace {

std::unique_ptr<comm::communicator> shared(const everyone& all) {
    std::string reason;
    return comm::share_node(all.talk(), reason);
}

// Stands where MPI would, for ranks that never need it.
class nobody : public comm::communicator {
public:
    nobody(int rank, int size) : rank_(rank), nodes_{size, 1} {}
    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return nodes_.ranks; }
    const partition::topology& nodes() const noexcept override { return nodes_; }
    std::unique_ptr<comm::operation> start_reduce_scatter(comm::reduce_scatter_request) override { return nullptr; }
    std::unique_ptr<comm::operation> start_all_gather(comm::all_gather_request) override { return nullptr; }
    void all_reduce(std::span<std::int64_t>, comm::combine) override {}
    void broadcast(void*, std::int64_t, int) override {}
    std::vector<std::string> gather(const std::string&, int) override { return {}; }
    std::string broadcast(const std::string& text, int) override { return text; }
    void reserve(ledger&, std::int64_t) override {}
    std::int64_t scratch_bytes(std::int64_t) const noexcept override { return 0; }

private:
    int rank_;
    partition::topology nodes_;
};

float number(int rank, unsigned seed, std::int64_t i) { return static_cast<float>((i * 31 + rank * 7 + seed) % 64); }

// A reduction of whole numbers, in the sum's type or in bf16.
struct reduction {
    reduction(const comm::communicator& over, std::int64_t slice, unsigned number_of_it, bool narrow)
        : ranks(over.size()), rank(over.rank()), seed(number_of_it), target(static_cast<std::size_t>(slice)), wide(over, wide_values(slice)), narrow_(over, narrow_values(slice)) {
        what.source = narrow ? static_cast<const void*>(narrow_.data()) : wide.data();
        what.short_source = narrow;
        what.travel_type = narrow ? dtype::bf16 : dtype::f32;
        what.short_type = dtype::bf16;
        what.slice = slice;
        what.target = target.data();
    }
    std::vector<float> wide_values(std::int64_t slice) const {
        std::vector<float> all;
        for (std::int64_t i = 0; i < slice * ranks; ++i) all.push_back(number(rank, seed, i));
        return all;
    }
    std::vector<std::uint16_t> narrow_values(std::int64_t slice) const {
        std::vector<std::uint16_t> all;
        for (const float one : wide_values(slice)) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, &one, sizeof bits);
            all.push_back(static_cast<std::uint16_t>(bits >> 16));  // exact: up to 6 bits
        }
        return all;
    }
    bool is_right() const {
        const auto slice = static_cast<std::int64_t>(target.size());
        for (std::int64_t i = 0; i < slice; ++i) {
            float sum = 0;
            for (int r = 0; r < ranks; ++r) sum += number(r, seed, rank * slice + i);
            if (target[static_cast<std::size_t>(i)] != sum) return false;
        }
        return true;
    }
    int ranks, rank;
    unsigned seed;
    std::vector<float> target;
    visible<float> wide;
    visible<std::uint16_t> narrow_;
    comm::reduce_scatter_request what;
};

}  // namespace

TEST_CASE("more reductions than slots, empty ones among them, every rank in its own type") {
    const everyone all;
    const auto talk = shared(all);
    std::vector<std::unique_ptr<reduction>> each;
    std::vector<std::unique_ptr<comm::operation>> going;
    for (unsigned i = 0; i < 200; ++i) {
        each.push_back(std::make_unique<reduction>(*talk, i % 5 == 0 ? 0 : 3 + i % 90, i, (i + static_cast<unsigned>(talk->rank())) % 2 == 0));
        going.push_back(talk->start_reduce_scatter(each.back()->what));
    }
    for (auto& one : going) one->finish();
    for (const auto& one : each) CHECK(one->is_right());
}

TEST_CASE("small reductions of any length, and fences between them") {
    const everyone all;
    const auto talk = shared(all);
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{1023}, std::size_t{1024}, std::size_t{1025}, std::size_t{5000}}) {
        std::vector<std::int64_t> sum, most;
        for (std::size_t i = 0; i < length; ++i) {
            sum.push_back(static_cast<std::int64_t>(i) + talk->rank());
            most.push_back(i % 2 == 0 ? talk->rank() : -talk->rank());
        }
        talk->all_reduce(sum, comm::combine::sum);
        if (length % 2 == 1) talk->fence();
        talk->all_reduce(most, comm::combine::maximum);
        const std::int64_t ranks = talk->size();
        bool right = true;
        for (std::size_t i = 0; i < length; ++i)
            right &= sum[i] == static_cast<std::int64_t>(i) * ranks + ranks * (ranks - 1) / 2 && most[i] == (i % 2 == 0 ? ranks - 1 : 0);
        CHECK(right);
    }
}

TEST_CASE("a reduction that one rank gives up is an error on the others, and no wait without end") {
    const everyone all;
    const auto talk = shared(all);
    if (talk->size() == 1) return;
    reduction first(*talk, 100, 1, false), second(*talk, 100, 2, false);
    if (talk->rank() == 0) {
        talk->start_reduce_scatter(first.what).reset();
        talk->fence();  // the others begin when it is given up
        CHECK(code_of([&] { talk->start_reduce_scatter(second.what); }) == code::state);
    } else {
        std::string text;
        talk->fence();
        CHECK(code_of([&] { talk->start_reduce_scatter(first.what)->finish(); talk->start_reduce_scatter(second.what)->finish(); }, &text) == code::state);
        CHECK(text.find("given up") != std::string::npos);
    }
    std::int64_t one = 1;
    talk->all_reduce({&one, 1}, comm::combine::sum);  // agreement goes on
    CHECK(one == talk->size());
}

// Ranks without MPI are processes over one board. The last one dies while the others wait for it.
TEST_CASE("a rank that is killed is an error on the others within seconds") {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > 1) return;
    const bool reducing = GENERATE(false, true);
    std::string reason;
    const auto memory = node_memory::make(3, reason);
    REQUIRE(memory != nullptr);
    const auto talk_as = [&](int rank) {
        const auto mine = rank == 0 ? memory : node_memory::open(memory->where(), rank, reason);
        const auto board = mine->take_common(comm::board_bytes(3));
        mine->reserve(board->data + rank * comm::board_bytes(1), comm::board_bytes(1));
        return comm::make_node_shared(std::make_unique<nobody>(rank, 3), mine, board);
    };
    const auto answer = [&](int rank) {
        const auto talk = talk_as(rank);
        talk->fence();
        if (rank == 2) {
            ::usleep(50'000);
            ::raise(SIGKILL);
        }
        std::string text;
        const code got = code_of([&] {
            if (!reducing) return talk->fence();
            reduction one(*talk, 100, 1, false);
            talk->start_reduce_scatter(one.what)->finish();
        }, &text);
        return got == code::mpi && text.find(" has ended") != std::string::npos;  // rank 2, or one that left because of it
    };
    std::vector<pid_t> started;
    for (int rank = 1; rank < 3; ++rank) {
        started.push_back(::fork());
        if (started.back() == 0) ::_exit(answer(rank) ? 0 : 1);
    }
    const auto start = std::chrono::steady_clock::now();
    CHECK(answer(0));
    int status = -1;
    ::waitpid(started[0], &status, 0);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    ::waitpid(started[1], &status, 0);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

TEST_CASE("one rank on which it is refused makes all talk plainly, with the reason") {
    const everyone all;
    int rank = 0, ranks = 0;
    MPI_Comm_rank(all.comm, &rank);
    MPI_Comm_size(all.comm, &ranks);
    auto plain = comm::make_mpi(&all.comm, {});
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    if (rank == ranks - 1) {
        const rlimit none{3, before.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &none);
    }
    std::string reason;
    const auto talk = comm::share_node(std::move(plain), reason);
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(talk->shared() == nullptr);
    CHECK(reason.find("Too many open files") != std::string::npos);
    std::int64_t one = 1;
    talk->all_reduce({&one, 1}, comm::combine::sum);
    CHECK(one == talk->size());
}
