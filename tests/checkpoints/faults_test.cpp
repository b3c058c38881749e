// Damage and failures: a checkpoint is complete or absent, and never silently wrong.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>

#include "checkpoints/directory.hpp"
#include "checkpoints/verify.hpp"
#include "sweep.hpp"

using namespace zero;
using namespace zero::test;

TEST_CASE("every flipped bit of a part or the manifest is found, or does not matter") {
    const std::vector<whole_tensor> all = small_model(1);
    const temporary_folder folder;
    save_options how;
    how.tag = "t";
    REQUIRE(text(save_on(2, all, folder / "c", how)) == "");
    std::vector<std::string> paths = parts_of(folder / "c/t");
    paths.push_back(folder / "c/t/MANIFEST.json");
    std::mt19937 random(7);
    load_options back;
    back.tag = "t";
    for (const std::string& path : paths) {
        const std::string good = read_file(path);
        for (int round = 0; round < 400; ++round) {
            std::string bad = good;
            const std::size_t bit = random() % (8 * good.size());
            bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
            write_file(path, bad);
            const load_result found = load_on(1, all, folder / "c", back);
            INFO(path << " bit " << bit << ": " << text(found.thrown));
            REQUIRE(answer(found.thrown) == code::checkpoint);
            REQUIRE_THAT(text(found.thrown), Catch::Contains(path));
            REQUIRE(found.untouched);
        }
        for (int round = 0; round < 20; ++round) {
            write_file(path, good.substr(0, random() % good.size()));
            REQUIRE(answer(load_on(2, all, folder / "c", back).thrown) == code::checkpoint);
        }
        write_file(path, good + "x");
        CHECK(answer(load_on(2, all, folder / "c", back).thrown) == code::checkpoint);
        write_file(path, good);
    }
    CHECK(load_on(2, all, folder / "c", back).equal);
}

TEST_CASE("a missing part, swapped parts, a foreign part (B36, B42)") {
    const std::vector<whole_tensor> all = small_model(1), others = small_model(77);
    const temporary_folder folder;
    save_options how;
    how.tag = "t";
    REQUIRE(text(save_on(3, all, folder / "c", how)) == "");
    how.tag = "u";
    REQUIRE(text(save_on(3, others, folder / "c", how)) == "");
    const std::vector<std::string> parts = parts_of(folder / "c/t"), foreign = parts_of(folder / "c/u");
    load_options back;
    back.tag = "t";
    const auto expect_damage = [&](const std::string& named) {
        const load_result found = load_on(2, all, folder / "c", back);
        CHECK(answer(found.thrown) == code::checkpoint);
        CHECK_THAT(text(found.thrown), Catch::Contains(named));
        CHECK(found.untouched);
    };
    const std::string first = read_file(parts[0]), second = read_file(parts[1]);
    write_file(parts[0], second);
    expect_damage("part-");
    write_file(parts[0], read_file(foreign[0]));
    expect_damage(parts[0]);
    std::filesystem::remove(parts[0]);
    expect_damage(parts[0] + " is missing");
    write_file(parts[0], first);
    CHECK(load_on(2, all, folder / "c", back).equal);
    std::filesystem::rename(folder / "c/t/index.h5", folder / "c/t/other.h5");
    CHECK(load_on(2, all, folder / "c", back).equal);  // the index is for others
    std::filesystem::rename(folder / "c", folder / "moved");
    CHECK(load_on(4, all, folder / "moved", back).equal);
}

TEST_CASE("without a tag the next older whole one is taken, and that is said") {
    const std::vector<whole_tensor> old = small_model(1), fresh = small_model(50);
    const temporary_folder folder;
    save_options how;
    how.tag = "old";
    REQUIRE(text(save_on(2, old, folder / "c", how)) == "");
    how.tag = "new";
    REQUIRE(text(save_on(2, fresh, folder / "c", how)) == "");
    std::filesystem::create_directory(folder / "c/.staging-stray");
    write_file(folder / "c/stray", "x");
    CHECK(load_on(3, fresh, folder / "c").equal);
    std::string damaged_path;
    SECTION("a part cut in half") {
        damaged_path = parts_of(folder / "c/new")[1];
        write_file(damaged_path, read_file(damaged_path).substr(0, 2000));
    }
    SECTION("a part removed") {
        damaged_path = parts_of(folder / "c/new")[0];
        std::filesystem::remove(damaged_path);
    }
    SECTION("a head that lies about its place in the order") {
        damaged_path = folder / "c/new/MANIFEST.json";
        std::string manifest = read_file(damaged_path);
        manifest.replace(manifest.find("\"sequence\":2"), 12, "\"sequence\":0");
        write_file(damaged_path, manifest);
    }
    SECTION("a manifest without its end") {
        damaged_path = folder / "c/new/MANIFEST.json";
        const std::string manifest = read_file(damaged_path);
        write_file(damaged_path, manifest.substr(0, manifest.size() - 3));
    }
    const load_result found = load_on(3, old, folder / "c");
    INFO(text(found.thrown));
    CHECK(answer(found.thrown) == code::ok);
    CHECK(found.equal);
    REQUIRE(found.warnings.size() == 1);
    CHECK_THAT(found.warnings[0], Catch::Contains(damaged_path));
    load_options tagged;
    tagged.tag = "new";
    CHECK(answer(load_on(3, old, folder / "c", tagged).thrown) == code::checkpoint);
}

TEST_CASE("the n-th call fails: the same code everywhere, nothing left, the earlier one untouched") {
    const std::vector<whole_tensor> all = small_model(1), later = small_model(30);
    const temporary_folder folder;
    save_options good;
    good.tag = "good";
    REQUIRE(text(save_on(2, all, folder / "c", good)) == "");
    const std::vector<std::string> before = names_in(folder / "c");
    const std::size_t descriptors = open_descriptors();
    for (const int round : {0, 1, 2, 3}) {
        const int culprit = round % 2;
        const bool behind = round >= 2;
        for (const int number : {EIO, ENOSPC, EACCES}) {
            bool reached = true;
            for (std::int64_t n = 0; reached; n += number == EIO ? 1 : 7) {
                std::atomic<bool> hit = false;
                save_options how;
                how.tag = "later";
                how.behind = behind;
                how.hook = [&](int rank) {
                    return [&, rank](const files::request& what) {
                        if (rank != culprit || what.number != n) return files::verdict{};
                        hit = true;
                        return files::verdict{number, -1};
                    };
                };
                const std::vector<std::optional<error>> thrown = save_on(2, later, folder / "c", how);
                reached = hit;
                INFO("rank " << culprit << ", call " << n << ", behind " << behind << ": " << text(thrown));
                if (answer(thrown) == code::ok) {
                    load_options tagged;
                    tagged.tag = "later";
                    REQUIRE(load_on(1, later, folder / "c", tagged).equal);
                    std::filesystem::remove_all(folder / "c/later");
                    for (const std::string& name : names_in(folder / "c"))
                        if (name.starts_with(".")) std::filesystem::remove_all(folder / ("c/" + name));
                    write_file(folder / "c/LATEST", "good\n");
                } else {
                    REQUIRE(answer(thrown) == code::io);
                    REQUIRE_THAT(text(thrown), Catch::Contains(folder.path().string()) && Catch::Contains("while ") &&
                                                   Catch::Contains("errno"));
                    REQUIRE(names_in(folder / "c") == before);
                    REQUIRE(load_on(1, all, folder / "c").equal);
                }
                REQUIRE(open_descriptors() == descriptors);
            }
        }
    }
}

TEST_CASE("interrupted and short calls change nothing") {
    const std::vector<whole_tensor> all = small_model(1);
    const temporary_folder folder;
    const auto hook = [](int) {
        return [](const files::request& what) {
            if (what.number % 3 == 0) return files::verdict{EINTR, -1};
            return files::verdict{0, 3};
        };
    };
    save_options how;
    how.hook = hook;
    REQUIRE(text(save_on(2, all, folder / "c", how)) == "");
    load_options back;
    back.hook = hook;
    CHECK(load_on(3, all, folder / "c", back).equal);
    CHECK(checkpoint::verify(files::disk(), folder / "c/step-000000000007", true).problems.empty());
}

TEST_CASE("a failing read is an error on all ranks, and the context is as it was") {
    const std::vector<whole_tensor> all = small_model(1);
    const temporary_folder folder;
    REQUIRE(text(save_on(2, all, folder / "c")) == "");
    bool reached = true;
    for (std::int64_t n = 0; reached; ++n) {
        std::atomic<bool> hit = false;
        load_options back;
        back.hook = [&](int rank) {
            return [&, rank](const files::request& what) {
                if (rank != 1 || what.number != n) return files::verdict{};
                hit = true;
                return files::verdict{EIO, -1};
            };
        };
        const load_result found = load_on(3, all, folder / "c", back);
        reached = hit;
        // Closing a file that was read cannot lose anything.
        if (answer(found.thrown) == code::ok)
            REQUIRE(found.equal);
        else {
            REQUIRE(answer(found.thrown) == code::io);
            REQUIRE(found.untouched);
        }
    }
}

// The child saves and dies at call n of one rank; whoever loads then finds the old state or the new one, whole.
TEST_CASE("killed at every call") {
    const std::vector<whole_tensor> old = small_model(1), fresh = small_model(30);
    const temporary_folder folder;
    int olds = 0, news = 0;
    for (const int round : {0, 1, 2, 3}) {
        const int culprit = round % 2;
        const bool behind = round >= 2;
        bool reached = true;
        for (std::int64_t n = 0; reached; n += behind ? 2 : 1) {
            const std::string place = folder / "c";
            std::filesystem::remove_all(place);
            save_options how;
            how.tag = "old";
            REQUIRE(text(save_on(2, old, place, how)) == "");
            const pid_t child = ::fork();
            if (child == 0) {
                how.tag = "new";
                how.behind = behind;
                how.hook = [&](int rank) {
                    return [=](const files::request& what) {
                        if (rank == culprit && what.number == n) ::_exit(9);
                        return files::verdict{};
                    };
                };
                save_on(2, fresh, place, how);
                ::_exit(0);
            }
            int status = 0;
            REQUIRE(::waitpid(child, &status, 0) == child);
            reached = WEXITSTATUS(status) == 9;
            const bool is_old = load_on(3, old, place).equal, is_new = load_on(3, fresh, place).equal;
            INFO("rank " << culprit << ", call " << n);
            REQUIRE(is_old != is_new);
            REQUIRE(std::filesystem::exists(place + "/new") == is_new);
            (is_old ? olds : news) += 1;
            how.tag = "next";
            how.hook = {};
            how.behind = behind;
            REQUIRE(text(save_on(2, old, place, how)) == "");
            for (const std::string& name : names_in(place)) {  // leftovers are gone
                // A file of an owner that is still empty may be another job's that just begins: it is left for an hour.
                if (name.ends_with(".owner") && std::filesystem::file_size(place + "/" + name) == 0) continue;
                REQUIRE_FALSE(name.starts_with("."));
            }
        }
    }
    CHECK(olds > 40);
    CHECK(news > 3);
}

TEST_CASE("whether an owner is gone") {
    const std::string mine = checkpoint::owner_text();
    CHECK_FALSE(checkpoint::owner_is_gone(mine, 0, 1'000'000));
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    std::string dead = mine;
    const std::size_t line = dead.find('\n') + 1;
    dead.replace(line, dead.find(' ', line) - line, std::to_string(child));
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(checkpoint::owner_is_gone(dead, 0, 0));
    std::string reused = mine;
    reused.insert(reused.size() - 1, "1");  // the same number, another start
    CHECK(checkpoint::owner_is_gone(reused, 0, 0));
    for (const std::string& other :
         {"host" + mine, std::string(), mine.substr(0, line)}) {  // elsewhere, not yet written
        CHECK_FALSE(checkpoint::owner_is_gone(other, 1000, 1000 + 60));
        CHECK(checkpoint::owner_is_gone(other, 1000, 1000 + 7200));
    }
}

TEST_CASE("two jobs in one folder: tidying up leaves the other's beginnings alone") {
    const temporary_folder folder;
    const files::disk disk;
    std::int64_t now = disk.look(folder.path().string()).modified;
    write_file(folder / ".staging-a.owner", "");  // just made
    checkpoint::make_staging(disk, folder.path(), "b");
    write_file(folder / ".staging-b/part", "x");
    std::filesystem::create_directory(folder / ".staging-c");  // nobody's
    std::filesystem::create_directory(folder / ".trash-d");
    checkpoint::remove_stale(disk, folder.path(), now);
    CHECK(names_in(folder.path()) == std::vector<std::string>{".staging-a.owner", ".staging-b", ".staging-b.owner"});
    checkpoint::remove_stale(disk, folder.path(), now + 7200);
    CHECK(names_in(folder.path()) == std::vector<std::string>{".staging-b", ".staging-b.owner"});  // we live
}

TEST_CASE("a folder that may not be looked into stops neither save nor load") {
    const std::vector<whole_tensor> all = small_model(1);
    const temporary_folder folder;
    std::filesystem::create_directories(folder / "c/lost+found");
    const auto hook = [](int) {
        return [](const files::request& what) {
            return files::verdict{what.path.find("lost+found/") != std::string::npos ? EACCES : 0, -1};
        };
    };
    save_options how;
    how.hook = hook;
    REQUIRE(text(save_on(2, all, folder / "c", how)) == "");
    load_options back;
    back.hook = hook;
    const load_result found = load_on(2, all, folder / "c", back);
    CHECK(found.equal);
    REQUIRE(found.warnings.size() == 1);
    CHECK_THAT(found.warnings[0], Catch::Contains("lost+found"));
}
