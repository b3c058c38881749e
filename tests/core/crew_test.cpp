// Loops shared between threads: everything once, errors come back, nobody's signals or floating-point modes change.
#include "core/crew.hpp"

#include <signal.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cfenv>
#include <cstdlib>
#include <set>
#include <stdexcept>

using namespace zero;

TEST_CASE("every element is in one piece, and pieces begin at multiples of the grain") {
    for (const int members : {1, 2, 3, 7}) {
        crew threads(members);
        CHECK(threads.members() == members);
        for (const std::int64_t total : {0, 1, 5, 16, 17, 1000, 4096}) {
            for (const std::int64_t grain : {1, 16, 5000}) {
                std::vector<std::atomic<int>> seen(static_cast<std::size_t>(total));
                std::vector<std::atomic<int>> by(static_cast<std::size_t>(members));
                threads.share(total, grain, [&](int member, std::int64_t first, std::int64_t count) {
                    if (first % grain == 0 && count > 0) ++by[static_cast<std::size_t>(member)];
                    for (std::int64_t i = first; i < first + count; ++i) ++seen[static_cast<std::size_t>(i)];
                });
                for (const auto& times : seen) REQUIRE(times == 1);
                for (const auto& pieces : by) REQUIRE(pieces <= 1);
                if (total > 0) REQUIRE(by[0] == 1);
            }
        }
    }
}

TEST_CASE("helpers really share the work") {
    crew threads(3);
    std::mutex guard;
    std::set<std::thread::id> who;
    threads.share(3, 1, [&](int, std::int64_t, std::int64_t) {
        const std::lock_guard<std::mutex> alone(guard);
        who.insert(std::this_thread::get_id());
    });
    CHECK(who.size() == 3);
    CHECK(who.count(std::this_thread::get_id()) == 1);
}

TEST_CASE("what a piece throws is thrown to the caller once all have ended, and the crew goes on") {
    crew threads(4);
    for (int thrower = 0; thrower < 4; ++thrower) {
        std::atomic<int> ended{0};
        CHECK_THROWS_AS(threads.share(4, 1,
                                      [&](int member, std::int64_t, std::int64_t) {
                                          ++ended;
                                          if (member == thrower) throw std::runtime_error("on purpose");
                                      }),
                        std::runtime_error);
        CHECK(ended == 4);
        std::atomic<int> after{0};
        threads.share(4, 1, [&](int, std::int64_t, std::int64_t) { ++after; });
        CHECK(after == 4);
    }
}

TEST_CASE("helpers hear no signal and have no traps") {
    crew threads(2);
    std::atomic<bool> deaf{false};
    std::atomic<int> rounding{-1};
    threads.share(2, 1, [&](int member, std::int64_t, std::int64_t) {
        if (member == 0) return;
        sigset_t blocked;
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        deaf = sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGUSR1) == 1;
        rounding = std::fegetround();
    });
    CHECK(deaf);
    CHECK(rounding == FE_TONEAREST);
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    CHECK(sigismember(&mine, SIGTERM) == 0);
}

TEST_CASE("how many threads") {
    unsetenv("OMP_NUM_THREADS");
    CHECK(threads_to_use(0) == 1);
    CHECK(threads_to_use(1) == 1);
    CHECK(threads_to_use(4096) >= 1);
    CHECK(threads_to_use(4096) <= static_cast<int>(std::thread::hardware_concurrency()));
    const int two = std::min(2, threads_to_use(4096));
    setenv("OMP_NUM_THREADS", "2,4", 1);
    CHECK(threads_to_use(0) == two);
    CHECK(threads_to_use(1) == 1);
    setenv("OMP_NUM_THREADS", "many", 1);
    CHECK(threads_to_use(0) == 1);
    unsetenv("OMP_NUM_THREADS");
}
