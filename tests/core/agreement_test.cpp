// Agreement: one all-reduce in the good case; one failing rank, different calls and arguments throw the same
// everywhere.
#include "core/agreement.hpp"

#include <catch2/catch.hpp>
#include <new>

#include "comm/ranks.hpp"

using namespace zero;
using namespace ranks;

namespace {

// Counts the verbs and hands them on.
class counting : public comm::communicator {
public:
    explicit counting(comm::communicator& inner) : inner_(inner) {}
    int rank() const noexcept override { return inner_.rank(); }
    int size() const noexcept override { return inner_.size(); }
    const partition::topology& nodes() const noexcept override { return inner_.nodes(); }
    std::unique_ptr<comm::operation> start_reduce_scatter(comm::reduce_scatter_request) override { return nullptr; }
    std::unique_ptr<comm::operation> start_all_gather(comm::all_gather_request) override { return nullptr; }
    void all_reduce(std::span<std::int64_t> values, comm::combine how) override {
        ++calls;
        inner_.all_reduce(values, how);
    }
    void broadcast(void* data, std::int64_t bytes, int root) override {
        ++calls;
        inner_.broadcast(data, bytes, root);
    }
    std::vector<std::string> gather(const std::string& mine, int root) override {
        ++calls;
        return inner_.gather(mine, root);
    }
    std::string broadcast(const std::string& text, int root) override {
        ++calls;
        return inner_.broadcast(text, root);
    }
    void reserve(ledger&, std::int64_t) override {}
    std::int64_t scratch_bytes(std::int64_t) const noexcept override { return 0; }
    int calls = 0;

private:
    comm::communicator& inner_;
};

const call step{"zero_step", 4, 77, true};

}  // namespace

TEST_CASE("agreeing costs one all-reduce and returns the largest votes") {
    const everyone all;
    const auto talk = all.talk();
    counting counted(*talk);
    agreement agree(counted);
    bool ran = false;
    std::vector<std::int64_t> votes{talk->rank(), -talk->rank(), 5};
    agree.enter(
        step, [&] { ran = true; }, votes);
    CHECK(ran);
    CHECK(votes == std::vector<std::int64_t>{talk->size() - 1, 0, 5});
    CHECK(counted.calls == 1);
    agree.settle(step, {});
    CHECK(counted.calls == 2);
}

TEST_CASE("a failing rank makes all ranks throw its code and text") {
    const everyone all;
    const auto talk = all.talk();
    agreement agree(*talk);
    for (int guilty = 0; guilty < talk->size(); ++guilty) {
        std::string text;
        const code which = code_of(
            [&] {
                agree.enter(step, [&] {
                    if (talk->rank() == guilty) fail(code::config, "the key \"x\" is wrong on {}", guilty);
                    if (talk->rank() > guilty) fail(code::memory, "a later rank");
                });
            },
            &text);
        CHECK(which == code::config);
        const std::string said = zero::formatted("the key \"x\" is wrong on {}", guilty);
        CHECK(text == (talk->rank() == guilty ? said : zero::formatted("rank {}: {}", guilty, said)));
        agree.enter(step, [] {});  // and it goes on
    }
}

TEST_CASE("a failure that comes back to a later agreement says whose it is once, whatever its words are") {
    const everyone all;
    const auto talk = all.talk();
    agreement agree(*talk);
    const int guilty = talk->size() - 1;
    const std::string own = "rank 3: is no good name";  // the failing rank's words, not the agreement's
    std::exception_ptr first;
    try {
        agree.enter(step, [&] {
            if (talk->rank() == guilty) fail(code::io, "{}", own);
        });
    } catch (...) {
        first = std::current_exception();
    }
    const std::string expected = zero::formatted("rank {}: {}", guilty, own);
    for (const bool by_all : {true, false}) {  // or by the failing rank alone
        std::string text;
        CHECK(code_of(
                  [&] {
                      agree.settle(step, [&] {
                          if (by_all || talk->rank() == guilty) std::rethrow_exception(first);
                      });
                  },
                  &text) == code::io);
        CHECK(text == (talk->rank() == guilty && (talk->size() == 1 || !by_all) ? own : expected));
    }
    // A disagreement is nobody's alone.
    if (talk->size() == 1) return;
    std::string once, again;
    try {
        agree.enter(talk->rank() == 0 ? step : call{"zero_save", 9, 77, true}, {});
    } catch (const error& problem) {
        once = problem.what();
        first = std::current_exception();
    }
    CHECK(code_of([&] { agree.settle(step, [&] { std::rethrow_exception(first); }); }, &again) == code::mismatch);
    CHECK(again == once);
}

TEST_CASE("any exception becomes a code") {
    const everyone all;
    const auto talk = all.talk();
    agreement agree(*talk);
    const int guilty = talk->size() - 1;
    const auto outcome = [&](auto thrown) {
        return code_of([&] {
            agree.enter(step, [&] {
                if (talk->rank() == guilty) throw thrown;
            });
        });
    };
    CHECK(outcome(std::bad_alloc()) == code::memory);
    CHECK(outcome(std::runtime_error("oops")) == code::internal);
    CHECK(outcome(5) == code::internal);
}

TEST_CASE("different calls never pair up") {
    const everyone all;
    const auto talk = all.talk();
    agreement agree(*talk);
    if (talk->size() == 1) return;
    const bool saves = talk->rank() == 0;
    std::string text;
    std::vector<std::int64_t> votes(saves ? 0 : 2, 1);
    CHECK(code_of([&] { agree.enter(saves ? call{"zero_save", 9, 77, true} : step, {}, votes); }, &text) == code::mismatch);
    CHECK(text.find("zero_save on rank 0") != std::string::npos);
    CHECK(text.find(talk->size() == 2 ? "zero_step on rank 1" : "zero_step on ranks 1, 2") != std::string::npos);
}

TEST_CASE("equal calls with different arguments are named") {
    const everyone all;
    const auto talk = all.talk();
    agreement agree(*talk);
    if (talk->size() == 1) return;
    // Only one half of the digest differs, and the sign bit counts.
    const std::uint64_t change = GENERATE(std::uint64_t{1}, std::uint64_t{1} << 63);
    const std::uint64_t digest_here = talk->rank() == talk->size() - 1 ? 77 ^ change : 77;
    std::string text;
    CHECK(code_of([&] { agree.enter({"zero_gather", 5, digest_here}, {}); }, &text) == code::mismatch);
    CHECK(text.find("zero_gather: ") == 0);
    CHECK(text.find(zero::formatted("rank {}", talk->size() - 1)) != std::string::npos);
}

TEST_CASE("a failure in one corner of a grid reaches all of it") {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size % 2 != 0) return;
    MPI_Comm data_comm = MPI_COMM_NULL, model_comm = MPI_COMM_NULL;  // two model ranks, numbered first
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &data_comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &model_comm);
    {
        const auto data = comm::make_mpi(&data_comm, {}), model = comm::make_mpi(&model_comm, {}),
                   world = everyone().talk();
        agreement agree(*data);
        agree.also_over(model.get());

        std::vector<std::int64_t> votes{rank};
        agree.enter(call{"zero_step", 4, static_cast<std::uint64_t>(rank % 2), true}, {},
                    votes);  // model ranks differ in digest
        CHECK(votes[0] == size - 1);

        // A call of the data communicator alone: one group makes it, the other does not.
        if (rank % 2 == 0) agree.enter({"zero_gather", 5, 1}, {});

        for (int guilty = 0; guilty < size; ++guilty) {
            std::string text;
            std::exception_ptr first;
            const auto once = [&] {
                try {
                    agree.enter(step, [&] {
                        if (rank == guilty) fail(code::io, "disk {}", guilty);
                    });
                } catch (...) {
                    first = std::current_exception();
                    throw;
                }
            };
            CHECK(code_of(once, &text) == code::io);
            const std::string own = zero::formatted("disk {}", guilty),
                              by_rank = zero::formatted("rank {}: {}", guilty / 2, own),
                              by_model_rank = zero::formatted("model rank {}: {}", guilty % 2, by_rank);
            CHECK(text == (rank == guilty ? own : rank % 2 == guilty % 2 ? by_rank : by_model_rank));
            // All bring it to a later agreement of the call.
            CHECK(code_of([&] { agree.enter(step, [&] { std::rethrow_exception(first); }); }, &text) == code::io);
            INFO(text);
            CHECK((text == by_rank || text == by_model_rank || (rank == guilty && text == own)));
        }
        // Two corners at once: one of them wins everywhere.
        std::string text;
        const code which = code_of(
            [&] {
                agree.enter(step, [&] {
                    if (rank == 0) fail(code::io, "first corner");
                    if (rank == size - 1) fail(code::config, "last corner");
                });
            },
            &text);
        CHECK(which == code::io);
        CHECK(text.find("first corner") != std::string::npos);
        // Groups that make different calls.
        CHECK(code_of(
                  [&] {
                      agree.enter(rank % 2 == 0 ? step : call{"zero_save", 9, 77, true}, {});
                  },
                  &text) == code::mismatch);
        CHECK(text.find("zero_save on model rank 1") != std::string::npos);
        // A data group in disagreement with itself.
        if (size == 4)
            CHECK(code_of(
                      [&] {
                          agree.enter(rank == 3 ? call{"zero_save", 9, 77, true} : step, {});
                      },
                      &text) == code::mismatch);
    }
    MPI_Comm_free(&data_comm);
    MPI_Comm_free(&model_comm);
}

TEST_CASE("digests tell texts apart") {
    CHECK(digest(std::string("a")) != digest(std::string("b")));
    CHECK(digest(std::string("a"), 1) != digest(std::string("a"), 2));
    CHECK(digest(std::string("same")) == digest("same", 4));
}
