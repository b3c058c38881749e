// Killed at every call to the file system of a save, in every kind of save: whoever loads then, on another number of
// ranks, has exactly the old state or the new one, knows which, and the next save takes away what was left.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>

#include "checkpoints/verify.hpp"
#include "sweep.hpp"

using namespace zero;
using namespace zero::test;

namespace {

// In a process of its own, which dies by SIGKILL; false: it came through.
bool killed(const save_kind& what, const std::string& place, const std::vector<whole_tensor>& all, int culprit, std::int64_t n) {
    const pid_t child = ::fork();
    if (child == 0) {
        save_options how = what.how;
        how.hook = [&](int rank) {
            return [=](const files::request& asked) {
                if (rank == culprit && asked.number == n) ::kill(::getpid(), SIGKILL);
                return files::verdict{};
            };
        };
        ::_exit(text(save_step(what, place, new_step, all, how)).empty() ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGKILL;
    REQUIRE(WEXITSTATUS(status) == 0);
    return false;
}

struct tally {
    std::int64_t calls = 0, olds = 0, news = 0;
};

// True: the new state. Everything that stands there as a checkpoint is whole, and the load says its step.
bool exactly_one(const save_kind& what, const std::string& place, int other, const std::vector<whole_tensor>& old,
                 const std::vector<whole_tensor>& fresh) {
    load_options back;
    back.model_size = what.model_size;
    back.seed = 11;
    const load_result as_old = load_on(other, old, place, back), as_new = load_on(other, fresh, place, back);
    const bool there = std::filesystem::exists(place + "/" + checkpoint::default_tag(new_step));
    if (what.first && !there) {
        REQUIRE(answer(as_old.thrown) == code::checkpoint);  // none yet, and that is said
        REQUIRE(as_old.untouched);
        return false;
    }
    REQUIRE(text(as_old.thrown) == "");
    REQUIRE(as_old.warnings.empty());
    REQUIRE(as_old.equal != as_new.equal);
    REQUIRE(as_new.equal == there);
    REQUIRE(as_new.run.step == (there ? new_step : old_step));
    for (const std::string& name : names_in(place))
        if (name.starts_with("step-"))
            REQUIRE(checkpoint::verify(files::disk(), place + "/" + name, true).problems.empty());
    return there;
}

void trial(const save_kind& what, const std::string& place, int culprit, std::int64_t n, tally& sum, bool& came) {
    static const std::vector<whole_tensor> old = small_model(1), fresh = small_model(30);
    std::filesystem::remove_all(place);
    save_options good;
    good.model_size = what.model_size;
    if (!what.first) REQUIRE(text(save_step(what, place, old_step, old, good)) == "");
    came = killed(what, place, fresh, culprit, n);
    INFO(what.name << (what.how.behind ? ", behind" : "") << ", rank " << culprit << ", call " << n);
    const bool is_new = exactly_one(what, place, what.ranks + 1, old, fresh);
    REQUIRE(is_new == exactly_one(what, place, 1, old, fresh));
    if (!came) {
        REQUIRE(is_new);
        return;
    }
    ++sum.calls;
    ++(is_new ? sum.news : sum.olds);
    REQUIRE(text(save_step(what, place, new_step + 1, fresh, what.how)) == "");
    for (const std::string& name : names_in(place)) {
        // A file of an owner that is still empty may be another job's that just begins: it is left for an hour.
        if (name.ends_with(".owner") && std::filesystem::file_size(place + "/" + name) == 0) continue;
        REQUIRE_FALSE(name.starts_with("."));
    }
}

}  // namespace

TEST_CASE("killed at every call of every rank", "[kill]") {
    const temporary_folder folder;
    tally sum;
    for (const save_kind& what : save_kinds()) {
        const std::int64_t before = sum.calls;
        for (int culprit = 0; culprit < what.ranks * what.model_size; ++culprit)
            every_call([&](std::int64_t n) {
                bool came = false;
                trial(what, folder / "a/b", culprit, n, sum, came);
                return came;
            });
        std::printf("%s%s: %ld calls\n", what.name, what.how.behind ? ", behind" : "", sum.calls - before);
    }
    std::printf("killed at %ld calls: %ld times the old state, %ld times the new one\n", sum.calls, sum.olds, sum.news);
    CHECK(sum.calls > 500);
    CHECK(sum.olds > 300);
    CHECK(sum.news > 50);
}
