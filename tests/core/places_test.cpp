// Helpers stay on the cores of the launcher's mask: one core each, and never outside.
#include "core/places.hpp"

#include <sched.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <mutex>
#include <set>

#include "core/crew.hpp"

using namespace zero;

namespace {

cpu_list mask_of_this_thread() {
    cpu_set_t mask;
    REQUIRE(::sched_getaffinity(0, sizeof mask, &mask) == 0);
    cpu_list cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(static_cast<unsigned>(cpu), &mask)) cpus.push_back(cpu);
    return cpus;
}

// As if the launcher had given only these, until the end of the block.
class launched_on {
public:
    explicit launched_on(const cpu_list& cpus) : before_(mask_of_this_thread()) {
        stay_on(cpus);
        REQUIRE(mask_of_this_thread() == cpus);
    }
    ~launched_on() { stay_on(before_); }

private:
    cpu_list before_;
};

std::vector<cpu_list> masks_of_helpers(crew& threads) {
    std::vector<cpu_list> masks(static_cast<std::size_t>(threads.members()));
    threads.share(threads.members(), 1, [&](int member, std::int64_t, std::int64_t) {
        static std::mutex one_at_a_time;  // Catch is not for several threads
        const std::lock_guard<std::mutex> alone(one_at_a_time);
        masks[static_cast<std::size_t>(member)] = mask_of_this_thread();
    });
    return masks;
}

}  // namespace

TEST_CASE("the cores are those of the mask, each CPU once, the one in use first") {
    const auto whole = mask_of_this_thread();
    for (std::size_t size = 1; size <= std::min<std::size_t>(whole.size(), 3); ++size) {
        const cpu_list given(whole.end() - static_cast<std::ptrdiff_t>(size), whole.end());
        const launched_on mask(given);
        cpu_list seen;
        const auto cores = own_cores();
        for (const auto& core : cores) seen.insert(seen.end(), core.begin(), core.end());
        std::sort(seen.begin(), seen.end());
        CHECK(seen == given);
        if (size == 1) CHECK(cores.front() == given);
    }
}

TEST_CASE("in a mask of one core nothing escapes") {
    const cpu_list given{mask_of_this_thread().back()};
    const launched_on mask(given);
    CHECK(threads_to_use(8) == 1);
    crew threads(4, cores_to_stay_on("cores", 4));  // more than such a rank would take
    for (const auto& mine : masks_of_helpers(threads)) CHECK(mine == given);
}

TEST_CASE("in a mask of two cores the helper has one of them, and the caller stays free") {
    const auto cores = own_cores();
    if (cores.size() < 2) return;
    cpu_list given{cores[0].front(), cores[1].front()};
    std::sort(given.begin(), given.end());
    const launched_on mask(given);
    for (const char* bind : {"auto", "cores"}) {
        crew threads(2, cores_to_stay_on(bind, 2));
        const auto masks = masks_of_helpers(threads);
        CHECK(masks[0] == given);
        REQUIRE(masks[1].size() == 1);
        CHECK(std::count(given.begin(), given.end(), masks[1].front()) == 1);
    }
    crew free_ones(2, cores_to_stay_on("none", 2));
    CHECK(masks_of_helpers(free_ones)[1] == given);
    CHECK(cores_to_stay_on("auto", 3).empty());  // not as many cores as threads
    CHECK(cores_to_stay_on("cores", 3).size() == 2);
}

TEST_CASE("members on cores of their own, then once more around") {
    const auto cores = own_cores();
    crew threads(static_cast<int>(cores.size()) + 1, cores);
    const auto masks = masks_of_helpers(threads);
    std::set<cpu_list> different;
    for (std::size_t k = 1; k < cores.size(); ++k) {
        CHECK(masks[k] == cores[k]);
        different.insert(masks[k]);
    }
    CHECK(different.size() == cores.size() - 1);
    CHECK(masks.back() == cores.front());
}
