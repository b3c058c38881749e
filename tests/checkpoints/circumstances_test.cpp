// Around a save or a load: other jobs and readers in the same folder, disks that are full, read-only, elsewhere or without
// direct access, paths that are relative or as long as the system allows.
#include <catch2/catch.hpp>
#include <fstream>

#include "checkpoints/verify.hpp"
#include "own_mounts.hpp"
#include "sweep.hpp"

using namespace zero;
using namespace zero::test;

namespace {

// Starts `work` in a process of its own, without Catch2; what it says comes back with `heard`.
class other_job {
public:
    explicit other_job(const std::function<std::string()>& work) : said_(folder_ / "said"), process_(::fork()) {
        if (process_ != 0) return;
        write_file(said_, work());
        ::_exit(0);
    }
    std::string heard() {
        int status = 0;
        ::waitpid(process_, &status, 0);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? read_file(said_) : "it died";
    }

private:
    temporary_folder folder_;
    std::string said_;
    pid_t process_;
};

// Saves of two ranks with the tags <name><k>; step k and the model of k. What went wrong or was warned of.
std::string save_many(const std::string& place, const std::string& name, int count, std::int64_t keep_last, bool same_tags) {
    std::string problems;
    for (int k = 0; k < count; ++k) {
        std::vector<std::string> warnings;
        save_options how;
        how.tag = name + std::to_string(k);
        how.step = k;
        how.keep_last = keep_last;
        how.behind = k % 2 == 1;
        how.warnings = &warnings;
        const auto thrown = save_on(2, small_model(static_cast<unsigned>(k)), place, how);
        const bool taken = same_tags && answer(thrown) == code::checkpoint;  // by the other job, and that is said
        if (answer(thrown) != code::ok && !taken) problems += how.tag + ": " + text(thrown) + "\n";
        for (const std::string& one : warnings) problems += how.tag + " warns: " + one + "\n";
    }
    return problems;
}

void require_clean(const std::string& place) {
    for (const std::string& name : names_in(place)) {
        INFO(name);
        REQUIRE_FALSE(name.starts_with("."));
        if (name != "LATEST") REQUIRE(checkpoint::verify(files::disk(), place + "/" + name, true).problems.empty());
    }
}

std::vector<whole_tensor> large_model(unsigned seed) {
    return {make_tensor("big", dtype::f32, {1'100'003}, false, seed), make_tensor("a", dtype::f32, {5}, false, seed + 3)};
}

const char* const not_allowed = "mounting is not allowed here: this part is left out (it needs root, or CAP_SYS_ADMIN)";

}  // namespace

TEST_CASE("two jobs save into one folder at the same time") {
    const temporary_folder folder;
    const std::string place = folder / "a/b/c";  // both make it
    const bool same_tags = GENERATE(false, true);
    const std::int64_t keep_last = same_tags ? 0 : GENERATE(0, 2);
    const int count = 12;
    other_job other([&] { return save_many(place, same_tags ? "t" : "x", count, keep_last, same_tags); });
    CHECK(save_many(place, same_tags ? "t" : "y", count, keep_last, same_tags) == "");
    CHECK(other.heard() == "");
    require_clean(place);
    const std::size_t kept = names_in(place).size() - 1;
    CHECK(kept >= (keep_last == 0 ? static_cast<std::size_t>(same_tags ? count : 2 * count) : std::size_t{2}));
    CHECK(load_on(3, small_model(count - 1), place).equal);
}

TEST_CASE("a reader while saves run: each load is one whole state, never an older one than before") {
    const temporary_folder folder;
    const std::string place = folder / "c";
    const int count = 40;
    REQUIRE(save_many(place, "t", 1, 1, false) == "");
    std::vector<std::vector<whole_tensor>> models;
    for (int k = 0; k < count; ++k) models.push_back(small_model(static_cast<unsigned>(k)));
    other_job writer([&] { return save_many(place, "u", count, 1, false); });
    std::int64_t last = 0;
    int loads = 0;
    while (last < count - 1 && loads < 100'000) {
        std::atomic<int> seen = -1;
        load_options how;
        how.look = [&](share& mine, int rank) {
            for (int k = 0; rank == 0 && k < count; ++k)
                if (mine.equals(models[static_cast<std::size_t>(k)])) seen = k;
        };
        const load_result found = load_on(2, models[0], place, how);
        INFO("load " << loads << ": " << text(found.thrown));
        REQUIRE(answer(found.thrown) == code::ok);
        REQUIRE(seen == found.run.step);
        REQUIRE(found.run.step >= last);
        last = found.run.step;
        ++loads;
    }
    CHECK(writer.heard() == "");
    CHECK(loads > 3);
}

TEST_CASE("a disk that is really full: an error, nothing left, and it goes on when there is space") {
    const temporary_folder folder;
    const std::string place = folder / "full";
    const std::vector<whole_tensor> all = small_model(1), fresh = small_model(30);
    const std::optional<std::string> problem = with_own_mounts([&]() -> std::string {
        std::filesystem::create_directory(place);
        if (!mount_memory(place, "1m")) return "no mount";
        save_options how;
        how.tag = "old";
        if (answer(save_on(2, all, place + "/c", how)) != code::ok) return "the first save failed";
        const std::map<std::string, std::string> before = tree(place + "/c");
        const std::int64_t room = free_bytes(place);
        how.tag = "large";
        auto thrown = save_on(2, large_model(1), place + "/c", how);
        if (answer(thrown) != code::io || text(thrown).find("reserve space for") == std::string::npos ||
            text(thrown).find("errno 28") == std::string::npos)
            return "large: " + text(thrown);
        if (tree(place + "/c") != before || free_bytes(place) != room) return "large: something is left";
        // All but a few pages are taken by others: in some place of the save it ends.
        int refused = 0, done = 0;
        how.tag = "new";
        for (std::int64_t pages = 0; pages < 24; ++pages) {
            write_file(place + "/others", std::string(static_cast<std::size_t>(room - 4096 * pages), 'x'));
            how.behind = pages % 2 == 1;
            thrown = save_on(2, fresh, place + "/c", how);
            std::filesystem::remove(place + "/others");
            if (answer(thrown) == code::ok) {
                ++done;
                if (!load_on(1, fresh, place + "/c").equal) return "the new state is not there";
                std::filesystem::remove_all(place + "/c/new");
                write_file(place + "/c/LATEST", "old\n");
                continue;
            }
            ++refused;
            if (answer(thrown) != code::io || text(thrown).find("errno 28") == std::string::npos) return text(thrown);
            if (tree(place + "/c") != before || free_bytes(place) != room)
                return "pages " + std::to_string(pages) + ": something is left";
        }
        return refused < 3 || done < 3 ? formatted("{} refused, {} done", refused, done) : "";
    });
    if (problem)
        CHECK(*problem == "");
    else
        WARN(not_allowed);
}

TEST_CASE("a read-only folder: no save, but loads") {
    const temporary_folder folder;
    const std::vector<whole_tensor> all = small_model(1);
    REQUIRE(text(save_on(2, all, folder / "c")) == "");
    const std::map<std::string, std::string> before = tree(folder / "c");
    const std::optional<std::string> problem = with_own_mounts([&]() -> std::string {
        if (!make_read_only(folder / "c")) return "no mount";
        save_options how;
        how.tag = "new";
        const auto thrown = save_on(2, all, folder / "c", how);
        if (answer(thrown) != code::io || text(thrown).find("errno 30") == std::string::npos) return "save: " + text(thrown);
        const load_result found = load_on(3, all, folder / "c");
        return found.equal ? "" : "load: " + text(found.thrown);
    });
    CHECK((tree(folder / "c") == before));
    if (problem)
        CHECK(*problem == "");
    else
        WARN(not_allowed);
}

TEST_CASE("another file system, behind a link; direct access refused by the system") {
    const std::vector<whole_tensor> all = large_model(1);
    const temporary_folder folder;
    const std::string elsewhere = std::filesystem::is_directory("/dev/shm") ? "/dev/shm/zero_elsewhere.XXXXXX" : folder / "e.XXXXXX";
    std::string made = elsewhere;
    REQUIRE(::mkdtemp(made.data()) != nullptr);
    std::filesystem::create_directory_symlink(made, folder / "link");
    const bool refused = GENERATE(false, true), behind = GENERATE(false, true);
    std::atomic<int> asked = 0;
    // The second opening of an open part is the one with O_DIRECT.
    const auto hook = [&](int) {
        return [&, open = std::make_shared<std::map<std::string, int>>(), guard = std::make_shared<std::mutex>()](const files::request& what) {
            const std::scoped_lock lock(*guard);
            if (what.what == files::action::close) (*open)[what.path] = 0;
            if (what.what != files::action::open || what.path.find("/part-") == std::string::npos) return files::verdict{};
            if (++(*open)[what.path] < 2) return files::verdict{};
            ++asked;
            return files::verdict{refused ? EINVAL : 0, -1};
        };
    };
    save_options how;
    how.hook = hook;
    how.behind = behind;
    CHECK(text(save_on(1, all, folder / "link/c", how)) == "");
    load_options back;
    back.hook = hook;
    const load_result found = load_on(1, all, folder / "link/c", back);
    CHECK(text(found.thrown) == "");
    CHECK(found.equal);
    CHECK(asked >= 2);
    CHECK(checkpoint::verify(files::disk(), made + "/c/step-000000000007", true).problems.empty());
    CHECK(names_in(made + "/c") == std::vector<std::string>{"LATEST", "step-000000000007"});
    std::filesystem::remove_all(made);
}

TEST_CASE("relative paths, and another working directory at the load") {
    const temporary_folder folder;
    const std::vector<whole_tensor> all = small_model(1);
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::create_directories(folder / "here/below");
    std::filesystem::current_path(folder / "here");
    const std::vector<std::string> spelled{"c", "./d/", "../here/e//f", "below/../g"};
    for (const std::string& place : spelled) CHECK(text(save_on(2, all, place)) == "");
    std::filesystem::current_path(folder / "here/below");
    for (const std::string& place : spelled) CHECK(load_on(3, all, "../" + place).equal);
    CHECK(answer(load_on(3, all, "c").thrown) == code::checkpoint);
    std::filesystem::current_path(before);
    CHECK(load_on(1, all, folder / "here/c").equal);
}

TEST_CASE("names of 255 bytes, and of every kind") {
    const temporary_folder folder;
    const std::string longest(255, 'n'), place = folder / longest + "/" + longest;
    std::vector<whole_tensor> all = small_model(1);
    std::string deep = "d";
    while (deep.size() < 253) deep += "/d";
    for (const std::string& name : {longest, deep, std::string("a.b"), std::string("..."), std::string("Größe λ/\u2028\U0001F600"),
                                    std::string("\"q\"\\\n\t%b%%"), std::string("b"), std::string("b/c.value"), std::string(" ")})
        all.push_back(make_tensor(name, dtype::f32, {3, 2}, false, static_cast<unsigned>(name.size())));
    std::vector<std::string> tags{longest, "two words", "Größe λ", "no UTF-8 \xff\xfe", "\"q\"\\\n\t%b", "-", "a.b.c"};
    for (const std::string& tag : tags) {
        save_options how;
        how.tag = tag;
        INFO(tag);
        CHECK(text(save_on(2, all, place, how)) == "");
        load_options back;
        back.tag = tag;
        CHECK(load_on(3, all, place, back).equal);
        CHECK(load_on(1, all, place).equal);
        CHECK(checkpoint::verify(files::disk(), place + "/" + tag, true).problems.empty());
    }
    std::sort(tags.begin(), tags.end());
    std::vector<std::string> there = names_in(place);
    std::erase(there, "LATEST");
    CHECK(there == tags);
    save_options bad;
    bad.tag = longest + "n";
    CHECK(answer(save_on(2, all, place, bad)) == code::argument);
    std::string too_long = folder.path();
    while (too_long.size() < 4200) too_long += "/" + longest;
    const auto thrown = save_on(2, all, too_long);
    CHECK(answer(thrown) == code::io);
    CHECK_THAT(text(thrown), Catch::Contains("errno 36"));
    CHECK(answer(load_on(2, all, too_long).thrown) == code::io);
}
