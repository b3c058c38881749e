// Every call to the file system of every kind of save, and of a load, fails once with every errno: the same code on all
// ranks with path and phase in its text, earlier checkpoints untouched, nothing left, nothing leaked. Interrupted and
// short calls change nothing. By threads; over MPI with a context: fault_sweep_context_test.cpp.
#include <catch2/catch.hpp>
#include <cstdio>

#include "checkpoints/verify.hpp"
#include "sweep.hpp"

using namespace zero;
using namespace zero::test;

namespace {

const std::vector<int> errors{EIO, ENOSPC, EACCES, EDQUOT, EROFS};

using thrown_by = std::vector<std::optional<error>>;

// A folder with the old state, made anew where a trial has left another.
class scene {
public:
    explicit scene(const save_kind& what) : what_(what) { build(); }
    std::string place() const { return folder_ / "a/b"; }
    const std::vector<whole_tensor>& old() const { return old_; }
    const std::vector<whole_tensor>& fresh() const { return fresh_; }
    const save_kind& what() const { return what_; }

    thrown_by save(const std::function<files::hook(int)>& hook, std::vector<std::string>& warnings) {
        save_options how = what_.how;
        how.hook = hook;
        how.warnings = &warnings;
        return save_step(what_, place(), new_step, fresh_, how);
    }
    // The folder is as it was; of a first save no file is there.
    void require_untouched() const {
        std::map<std::string, std::string> now = tree(folder_.path().string());
        if (what_.first) std::erase_if(now, [](const auto& one) { return one.second == "/"; });
        REQUIRE((now == before_));
        REQUIRE(holds_no_more_than(held_));
    }
    // The new state is there, whole.
    void require_new() const {
        load_options back;
        back.model_size = what_.model_size;
        const load_result found = load_on(1, fresh_, place(), back);
        REQUIRE(text(found.thrown) == "");
        REQUIRE(found.equal);
        REQUIRE(found.run.step == new_step);
        REQUIRE(checkpoint::verify(files::disk(), place() + "/" + checkpoint::default_tag(new_step), true).problems.empty());
        REQUIRE(holds_no_more_than(held_));
    }
    void build() {
        std::filesystem::remove_all(folder_ / "a");
        save_options good;
        good.model_size = what_.model_size;
        if (!what_.first) REQUIRE(text(save_step(what_, place(), old_step, old_, good)) == "");
        before_ = tree(folder_.path().string());
        held_ = held();
    }

private:
    save_kind what_;
    temporary_folder folder_;
    const std::vector<whole_tensor> old_ = small_model(1), fresh_ = small_model(30);
    std::map<std::string, std::string> before_;
    holdings held_;
};

struct tally {
    std::int64_t trials = 0, refused = 0, after_commit = 0;
    ~tally() { std::printf("%ld trials: %ld refused, %ld failed after the commit\n", trials, refused, after_commit); }
};

// One save of which a call failed.
void judge(scene& where, const one_fault& fault, int number, const thrown_by& thrown,
           const std::vector<std::string>& warnings, tally& sum) {
    INFO(where.what().name << (where.what().how.behind ? ", behind, " : ", ") << fault.place() << ": " << text(thrown));
    ++sum.trials;
    if (answer(thrown) == code::ok) {
        ++sum.after_commit;
        // A checkpoint that cannot be looked into hinders no save; what else goes wrong after the commit is said.
        if (!fault.path().ends_with("/MANIFEST.json") || !warnings.empty()) {
            REQUIRE(warnings.size() == 1);
            REQUIRE_THAT(warnings[0], Catch::Contains(where.place()) && Catch::Contains("tidying up") &&
                                          Catch::Contains(fault.path()));
        }
        where.require_new();
        where.build();
        return;
    }
    ++sum.refused;
    REQUIRE(answer(thrown) == code::io);
    REQUIRE_THAT(text(thrown), Catch::Contains(where.place()) && Catch::Contains(fault.path()) &&
                                   Catch::Contains("while ") && Catch::Contains("errno " + std::to_string(number)));
    where.require_untouched();
}

}  // namespace

TEST_CASE("a save of which any one call fails", "[fault]") {
    tally sum;
    for (const save_kind& what : save_kinds()) {
        scene where(what);
        for (int culprit = 0; culprit < what.ranks * what.model_size; ++culprit)
            for (const int number : errors)
                every_call([&](std::int64_t n) {
                    one_fault fault(culprit, n, {number, -1});
                    std::vector<std::string> warnings;
                    const thrown_by thrown = where.save(fault.hooks(), warnings);
                    if (fault.hit()) {
                        judge(where, fault, number, thrown, warnings, sum);
                    } else {
                        REQUIRE(text(thrown) == "");
                        where.require_new();
                        where.build();
                    }
                    return fault.hit();
                });
    }
    CHECK(sum.refused > 2000);
}

TEST_CASE("a save that is interrupted, or writes one byte, at any one call", "[fault]") {
    tally sum;
    for (const save_kind& what : save_kinds()) {
        scene where(what);
        for (int culprit = 0; culprit < what.ranks * what.model_size; ++culprit)
            for (const files::verdict verdict : {files::verdict{EINTR, -1}, files::verdict{0, 1}})
                every_call([&](std::int64_t n) {
                    one_fault fault(culprit, n, verdict);
                    std::vector<std::string> warnings;
                    const thrown_by thrown = where.save(fault.hooks(), warnings);
                    INFO(what.name << fault.place());
                    ++sum.trials;
                    REQUIRE(text(thrown) == "");
                    REQUIRE(warnings.empty());
                    where.require_new();
                    where.build();
                    return fault.hit();
                });
    }
}

TEST_CASE("a save whose disk is full, or gone, from any call on", "[fault]") {
    tally sum;
    for (const save_kind& what : save_kinds())
        for (const bool gone : {false, true}) {
            scene where(what);
            every_call([&](std::int64_t n) {
                std::atomic<bool> hit = false;
                const auto hook = [&](int) {
                    return [&](const files::request& asked) {
                        const bool takes_space = asked.what == files::action::create || asked.what == files::action::write ||
                                                 asked.what == files::action::reserve || asked.what == files::action::make_directory;
                        if (asked.number < n || !(gone || takes_space)) return files::verdict{};
                        hit = true;
                        return files::verdict{gone ? EIO : ENOSPC, -1};
                    };
                };
                std::vector<std::string> warnings;
                const thrown_by thrown = where.save(hook, warnings);
                INFO(what.name << ", from call " << n << (gone ? ", gone: " : ", full: ") << text(thrown));
                ++sum.trials;
                if (hit && !gone && answer(thrown) != code::ok) {
                    REQUIRE(answer(thrown) == code::io);
                    where.require_untouched();
                } else if (answer(thrown) == code::ok) {
                    where.require_new();
                    where.build();
                } else {
                    // Nothing could be tidied up; the state is the old one or, from the commit on, the new one.
                    REQUIRE(answer(thrown) == code::io);
                    load_options back;
                    back.model_size = what.model_size;
                    const load_result found = load_on(1, where.old(), where.place(), back);
                    if (std::filesystem::exists(where.place() + "/" + checkpoint::default_tag(new_step)))
                        where.require_new();
                    else
                        REQUIRE((what.first ? found.untouched : found.equal));
                    where.build();
                }
                return hit.load();
            });
        }
}

TEST_CASE("a load of which any one call fails", "[fault]") {
    tally sum;
    const std::vector<whole_tensor> old = small_model(1), fresh = small_model(30);
    const temporary_folder folder;
    const std::string place = folder / "c";
    save_options how;
    REQUIRE(text(save_on(2, old, place, how)) == "");
    how.step = new_step;
    REQUIRE(text(save_on(3, fresh, place, how)) == "");
    const std::map<std::string, std::string> before = tree(place);
    const holdings held_before = held();
    for (const std::string& tag : {std::string(), checkpoint::default_tag(new_step)})
        for (int ranks = 1; ranks <= 4; ++ranks)
            for (int culprit = 0; culprit < ranks; ++culprit)
                for (const files::verdict verdict : {files::verdict{EIO, -1}, files::verdict{EACCES, -1}, files::verdict{ESTALE, -1},
                                                     files::verdict{EINTR, -1}, files::verdict{0, 1}})
                    every_call([&](std::int64_t n) {
                        one_fault fault(culprit, n, verdict);
                        load_options back, older;
                        back.tag = tag;
                        back.hook = fault.hooks();
                        older.tag = checkpoint::default_tag(old_step);
                        const load_result found = load_on(ranks, fresh, place, back);
                        INFO(ranks << " ranks, " << fault.place() << ": " << text(found.thrown));
                        ++sum.trials;
                        REQUIRE(holds_no_more_than(held_before));
                        if (answer(found.thrown) != code::ok) {
                            ++sum.refused;
                            REQUIRE(verdict.error != EINTR);
                            REQUIRE(verdict.error != 0);
                            REQUIRE(answer(found.thrown) == code::io);
                            REQUIRE(found.untouched);
                            REQUIRE_THAT(text(found.thrown),
                                         Catch::Contains(fault.path()) && Catch::Contains("while ") &&
                                             Catch::Contains("errno " + std::to_string(verdict.error)));
                        } else if (found.run.step == new_step) {
                            REQUIRE(found.equal);
                            REQUIRE((!fault.hit() || verdict.error == EINTR || verdict.error == 0 ||
                                     fault.at() == files::action::close || !found.warnings.empty()));
                        } else {
                            // A folder into which nobody may look is passed over, and that is said.
                            REQUIRE(verdict.error == EACCES);
                            REQUIRE(tag.empty());
                            REQUIRE(load_on(ranks, old, place, older).equal);
                            REQUIRE(found.warnings.size() == 1);
                            REQUIRE_THAT(found.warnings[0], Catch::Contains(checkpoint::default_tag(new_step)));
                        }
                        return fault.hit();
                    });
    REQUIRE((tree(place) == before));
    CHECK(sum.refused > 200);
}

TEST_CASE("large saves and loads, around the cache, with several requests under way: any one call fails", "[fault]") {
    tally sum;
    const std::vector<whole_tensor> all{make_tensor("big", dtype::f32, {3'000'001}, false, 1)};
    const temporary_folder folder;
    const std::string place = folder / "c";
    save_options how;
    REQUIRE(text(save_on(2, all, place, how)) == "");
    const std::vector<std::string> before = names_in(place);
    const holdings held_before = held();
    const auto judge_one = [&](const one_fault& fault, int number, const thrown_by& thrown) {
        ++sum.trials;
        ++(answer(thrown) == code::ok ? sum.after_commit : sum.refused);
        REQUIRE((answer(thrown) == code::ok || answer(thrown) == code::io));
        REQUIRE(holds_no_more_than(held_before));
        if (answer(thrown) == code::io) {
            REQUIRE(number != EINTR);
            REQUIRE_THAT(text(thrown), Catch::Contains(fault.path()) && Catch::Contains("errno " + std::to_string(number)));
            REQUIRE(names_in(place) == before);
        }
    };
    for (const bool behind : {false, true})
        for (const int culprit : {0, 1})
            for (const int number : {EIO, EINTR})
                every_call([&](std::int64_t n) {
                    one_fault fault(culprit, n, {number, -1});
                    std::vector<std::string> warnings;
                    how.step = new_step;
                    how.behind = behind;
                    how.hook = fault.hooks();
                    how.warnings = &warnings;
                    const thrown_by thrown = save_on(2, all, place, how);
                    INFO((behind ? "behind, " : "") << fault.place() << ": " << text(thrown));
                    judge_one(fault, number, thrown);
                    if (answer(thrown) == code::ok) {
                        REQUIRE(load_on(1, all, place).run.step == new_step);
                        for (const std::string& name : names_in(place))
                            if (name.starts_with(".")) std::filesystem::remove_all(place + "/" + name);
                        std::filesystem::remove_all(place + "/" + checkpoint::default_tag(new_step));
                    }
                    return fault.hit();
                });
    for (const int culprit : {0, 1, 2})
        for (const int number : {EIO, EINTR})
            every_call([&](std::int64_t n) {
                one_fault fault(culprit, n, {number, -1});
                load_options back;
                back.hook = fault.hooks();
                const load_result found = load_on(3, all, place, back);
                INFO("load, " << fault.place() << ": " << text(found.thrown));
                judge_one(fault, number, found.thrown);
                REQUIRE((answer(found.thrown) == code::ok ? found.equal : found.untouched));
                return fault.hit();
            });
}
