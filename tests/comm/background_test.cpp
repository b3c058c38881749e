// Operations that a helper thread moves on: they end without a call of the caller, errors come out where the caller asks, and
// neither gets in the other's way (the thread sanitizer runs this). Bits through real communicators: tests/engine with
// libzero.overlap_thread.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "comm/background.hpp"
#include "core/error.hpp"

using namespace zero;

namespace {

// What the caller and the helper would trip over if both were in here at once.
struct common {
    std::int64_t inside = 0, dropped = 0, summed = 0;
    std::atomic<std::int64_t> questions{0};
    std::atomic<bool> together{false};
    struct visit {
        explicit visit(common& of) : of_(of) {
            if (++of_.inside != 1) of_.together = true;
        }
        ~visit() { --of_.inside; }
        common& of_;
    };
};

class slow : public comm::operation {
public:
    slow(common& of, int questions, bool fails) : of_(of), left_(questions), fails_(fails) {}
    ~slow() override {
        const common::visit here(of_);
        if (left_ > 0) ++of_.dropped;
    }
    bool progress() override {
        const common::visit here(of_);
        ++of_.questions;
        if (left_ == 1 && fails_) {
            left_ = 0;
            fail(code::mpi, "the wire is cut");
        }
        return left_ == 0 || --left_ == 0;
    }
    void finish() override {
        while (!progress()) {
        }
    }

private:
    common& of_;
    int left_;
    bool fails_;
};

class fake : public comm::communicator {
public:
    explicit fake(common& of, bool helped = true) : of_(of), helped_(helped) {}
    int rank() const noexcept override { return 0; }
    int size() const noexcept override { return 2; }
    const partition::topology& nodes() const noexcept override { return nodes_; }
    bool start_helper() override { return helped_; }
    std::unique_ptr<comm::operation> start_reduce_scatter(comm::reduce_scatter_request what) override {
        return std::make_unique<slow>(of_, static_cast<int>(what.slice), what.add);
    }
    std::unique_ptr<comm::operation> start_all_gather(comm::all_gather_request what) override {
        return std::make_unique<slow>(of_, static_cast<int>(what.own_bytes), false);
    }
    void all_reduce(std::span<std::int64_t> values, comm::combine) override {
        const common::visit here(of_);
        of_.summed += values.front();
    }
    void broadcast(void*, std::int64_t, int) override {}
    std::vector<std::string> gather(const std::string&, int) override { return {}; }
    std::string broadcast(const std::string& text, int) override { return text; }
    void reserve(ledger&, std::int64_t) override {}
    std::int64_t scratch_bytes(std::int64_t) const noexcept override { return 0; }

private:
    common& of_;
    bool helped_;
    partition::topology nodes_{2, 1};
};

comm::reduce_scatter_request questions(int number, bool fails = false) {
    comm::reduce_scatter_request what;
    what.slice = number;
    what.add = fails;
    return what;
}

// The helper has nothing else to do; a machine that is busy gets 30 seconds.
bool ends_by_itself(comm::communicator& talk, common& of) {
    auto one = talk.start_reduce_scatter(questions(50));
    for (int i = 0; i < 30000; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (of.questions >= 50) {
            one->finish();
            return of.questions == 50;  // not asked again
        }
    }
    return false;
}

}  // namespace

TEST_CASE("what is under way ends while the caller does something else") {
    common of;
    const auto talk = comm::in_background(std::make_unique<fake>(of));
    REQUIRE(talk->start_helper());
    REQUIRE(talk->start_helper());  // there is one already
    for (int again = 0; again < 3; ++again) {
        of.questions = 0;
        CHECK(ends_by_itself(*talk, of));
    }
    CHECK_FALSE(of.together);
}

TEST_CASE("without a helper the caller moves it on") {
    common of;
    const auto talk = comm::in_background(std::make_unique<fake>(of, false));
    CHECK_FALSE(talk->start_helper());
    const auto one = talk->start_reduce_scatter(questions(3));
    CHECK_FALSE(one->progress());
    CHECK_FALSE(one->progress());
    CHECK(one->progress());
    CHECK(of.questions == 3);
}

TEST_CASE("an error in the helper comes out where the caller asks, once") {
    common of;
    const auto talk = comm::in_background(std::make_unique<fake>(of));
    REQUIRE(talk->start_helper());
    const auto bad = talk->start_reduce_scatter(questions(2, true)), good = talk->start_reduce_scatter(questions(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(GENERATE(0, 20)));
    CHECK_THROWS_WITH(bad->finish(), "the wire is cut");
    CHECK_NOTHROW(good->finish());
}

TEST_CASE("many operations and calls at once: one of the two is inside") {
    common of;
    {
        const auto talk = comm::in_background(std::make_unique<fake>(of));
        REQUIRE(talk->start_helper());
        for (int round = 0; round < 200; ++round) {
            std::vector<std::unique_ptr<comm::operation>> all;
            for (int k = 1; k < 8; ++k) {
                all.push_back(talk->start_reduce_scatter(questions(k * 3)));
                comm::all_gather_request gather;
                gather.own_bytes = k;
                all.push_back(talk->start_all_gather(gather));
            }
            std::int64_t one = 1;
            talk->all_reduce({&one, 1}, comm::combine::sum);
            all.pop_back();  // given up, or at its end
            for (auto& each : all) {
                if (!each->progress()) each->finish();
            }
        }
        talk->start_reduce_scatter(questions(1 << 30)).reset();
    }
    CHECK_FALSE(of.together);
    CHECK(of.summed == 200);
    CHECK(of.dropped >= 1);
    CHECK(of.inside == 0);
}
