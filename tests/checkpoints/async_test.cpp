// checkpoint.async: what zero_save has seen is what is written, whatever comes after it; a later call commits or fails.
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <set>
#include <thread>

#include "jobs.hpp"

using namespace zero;
using namespace zero::test;

namespace {

using int64s = std::vector<std::int64_t>;
const std::string async_on = R"(, "checkpoint": {"async": true, "keep_last": 2, "keep_every": 4})";

// A disk whose background threads wait at their first call until they are let go, and then perhaps fail.
struct slow_disk {
    std::atomic<bool> go{false};
    std::atomic<int> fail_with{0};
    const std::thread::id main = std::this_thread::get_id();
    std::atomic<int> behind{0};       // calls of other threads
    std::atomic<bool> astray{false};  // calls of other threads that may not be theirs
    std::atomic<bool> disturbed{false};
    const files::disk disk{[this](const files::request& what) {
        if (std::this_thread::get_id() == main) return files::verdict{};
        ++behind;
        const std::set<files::action> theirs{files::action::open, files::action::write, files::action::sync,
                                             files::action::close};
        if (!theirs.contains(what.what) || what.path.find("/part-") == std::string::npos) astray = true;
        sigset_t blocked;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        if (::sigismember(&blocked, SIGTERM) != 1 || ::sigismember(&blocked, SIGUSR1) != 1) disturbed = true;
        if (::fegetexcept() != 0) disturbed = true;
        while (!go) ::usleep(200);
        return files::verdict{what.what == files::action::write ? fail_with.load() : 0, -1};
    }};
};

void build(engine& z, std::int64_t count = 1000) {
    z.add_tensor("a", dtype::f32, int64s{count}, nullptr, 0);
    z.add_tensor("b", dtype::bf16, int64s{33}, nullptr, 0);
    z.commit();
}

bool there(const std::string& path) {
    MPI_Barrier(MPI_COMM_WORLD);
    const bool found = std::filesystem::exists(path);
    MPI_Barrier(MPI_COMM_WORLD);
    return found;
}

std::set<std::string> names_in(const std::string& folder) {
    MPI_Barrier(MPI_COMM_WORLD);
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
    MPI_Barrier(MPI_COMM_WORLD);
    return names;
}

std::string bits(engine& z) {
    std::string all;
    const auto add = [&](const auto& values) {
        all.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
    };
    add(values_of<float>(z, 0));
    add(values_of<std::uint16_t>(z, 1));
    for (const char* state : {"exp_avg", "exp_avg_sq", "master"}) add(state_of<float>(z, 1, state));
    return all + std::to_string(z.progress().step);
}

}  // namespace

TEST_CASE("what changes after zero_save is not in the file; nothing is there before a call has committed it") {
    const shared_folder folder;
    const int stage = GENERATE(0, 1, 2, 3);
    std::string before;
    double own = 1.5 + world_rank();
    std::int64_t counter = 11;
    const auto attach = [&](engine& z) {
        z.attach({"own", dtype::f64, {1}, 1, &own, true});
        z.attach({"counter", dtype::i64, {}, 1, &counter, false});
    };
    {
        MPI_Comm comm = MPI_COMM_WORLD;
        slow_disk slow;
        engine z(&comm, json_for(stage, adam, async_on));
        attach(z);
        build(z);
        z.fill(0, "normal", 0, 1, 7);
        constant_step(z, 1);
        before = bits(z);
        ::feenableexcept(FE_OVERFLOW | FE_DIVBYZERO | FE_INVALID);  // as simulation codes do
        checkpoint::save(z, folder / "c", "", slow.disk);
        ::fedisableexcept(FE_ALL_EXCEPT);
        CHECK(z.book().bytes(purpose::checkpoint) > 0);
        constant_step(z, -3);
        z.set("optimizer.params.lr", 0.7);
        own = -1;
        counter = -1;
        set_values(z, 0, std::vector<float>(1000, 9));
        constant_step(z, 5);
        CHECK_FALSE(there(folder / "c/step-000000000001"));
        CHECK_FALSE(there(folder / "c/LATEST"));
        slow.go = true;
        z.wait();
        CHECK(there(folder / "c/step-000000000001"));
        CHECK(names_in(folder / "c") == std::set<std::string>{"LATEST", "step-000000000001"});
        CHECK(slow.behind > 0);
        CHECK_FALSE(slow.astray);
        CHECK_FALSE(slow.disturbed);
        z.close();
    }
    MPI_Comm comm = MPI_COMM_WORLD;
    engine z(&comm, json_for(3 - stage, adam));
    attach(z);
    build(z);
    checkpoint::load(z, folder / "c", "");
    CHECK((bits(z) == before));
    CHECK(own == 1.5 + world_rank());
    CHECK(counter == 11);
    CHECK(z.get_text("lr") == "0.1");
}

TEST_CASE("every call that joins commits: the next save, a load, finalize; a step only what is written") {
    const shared_folder folder;
    MPI_Comm comm = MPI_COMM_WORLD;
    slow_disk slow, fast;
    fast.go = true;
    const auto let_go_soon = [&] {
        return std::thread([&] {
            ::usleep(20'000);
            slow.go = true;
        });
    };
    engine z(&comm, json_for(2, adam, async_on));
    build(z);
    checkpoint::save(z, folder / "c", "a", slow.disk);
    std::thread later = let_go_soon();
    checkpoint::save(z, folder / "c", "b", fast.disk);
    later.join();
    CHECK(there(folder / "c/a"));
    z.wait();
    CHECK(there(folder / "c/b"));
    constant_step(z, 1);
    slow.go = false;
    checkpoint::save(z, folder / "c", "c", slow.disk);
    const std::string then = bits(z);
    constant_step(z, 1);
    CHECK_FALSE(there(folder / "c/c"));  // it did not wait
    later = let_go_soon();
    checkpoint::load(z, folder / "c", "");
    later.join();
    CHECK((bits(z) == then));
    slow.go = false;
    checkpoint::save(z, folder / "c", "d", slow.disk);
    constant_step(z, 1);
    CHECK_FALSE(there(folder / "c/d"));
    slow.go = true;
    while (!z.behind()->ready()) ::usleep(1000);
    constant_step(z, 1);
    bool found = there(folder / "c/d");
    if (!found) {  // not yet written on some other rank
        ::sleep(1);
        constant_step(z, 1);
        found = there(folder / "c/d");
    }
    CHECK(found);
    slow.go = false;
    checkpoint::save(z, folder / "c", "e", slow.disk);
    later = let_go_soon();
    z.close();
    later.join();
    CHECK(there(folder / "c/e"));
    // Retention: the last two; "a" and "b" have step 0, a multiple of four.
    CHECK(names_in(folder / "c") == std::set<std::string>{"LATEST", "a", "b", "d", "e"});
}

TEST_CASE("a failure is thrown by the next call that joins, on all ranks, and leaves nothing behind") {
    const shared_folder folder;
    MPI_Comm comm = MPI_COMM_WORLD;
    slow_disk good;
    good.go = true;
    engine z(&comm, json_for(3, adam, async_on));
    build(z);
    checkpoint::save(z, folder / "c", "good", good.disk);
    z.wait();
    const std::int64_t kept = z.book().bytes(purpose::checkpoint);
    const std::string by = GENERATE("wait", "save", "load", "close", "step");
    INFO(by);
    slow_disk bad;
    if (world_rank() == world_size() - 1) bad.fail_with = ENOSPC;
    checkpoint::save(z, folder / "c", "bad", bad.disk);
    bad.go = true;
    std::string text;
    const auto join = [&] {
        if (by == "wait") z.wait();
        if (by == "save") checkpoint::save(z, folder / "c", "next", good.disk);
        if (by == "load") checkpoint::load(z, folder / "c", "");
        if (by == "close") z.close();
        if (by == "step") {
            while (!z.behind()->ready()) ::usleep(1000);
            MPI_Barrier(MPI_COMM_WORLD);
            constant_step(z, 1);  // sees it, and does not fail
            CHECK(names_in(folder / "c") == std::set<std::string>{"LATEST", "good"});
            z.wait();
        }
    };
    CHECK(code_of(join, &text) == code::io);
    CHECK_THAT(text, Catch::Contains("earlier zero_save") && Catch::Contains("errno 28") &&
                         Catch::Contains(folder / "c") && Catch::Contains("\"bad\"") &&
                         Catch::Contains("rank " + std::to_string(world_size() - 1)));
    CHECK(names_in(folder / "c") == std::set<std::string>{"LATEST", "good"});
    if (by == "close") return;
    z.wait();  // told once
    constant_step(z, 1);
    const std::string now = bits(z);
    checkpoint::save(z, folder / "c", "after", good.disk);
    constant_step(z, 1);
    checkpoint::load(z, folder / "c", "");
    CHECK((bits(z) == now));
    CHECK(z.book().bytes(purpose::checkpoint) == kept);
    z.close();
}

TEST_CASE("zero_save itself says what can be known at once, and joins no failure of its own") {
    const shared_folder folder;
    MPI_Comm comm = MPI_COMM_WORLD;
    engine z(&comm, json_for(1, adam, async_on));
    build(z);
    checkpoint::save(z, folder / "c", "t");
    CHECK(code_of([&] { checkpoint::save(z, folder / "c", "t"); }) == code::checkpoint);
    CHECK(code_of([&] { checkpoint::save(z, folder / "c", "a/b"); }) == code::argument);
    CHECK(code_of([&] { checkpoint::save(z, "/proc/nowhere", "t"); }) == code::io);
    z.wait();
    CHECK(names_in(folder / "c") == std::set<std::string>{"LATEST", "t"});
    z.close();
}

TEST_CASE("a context that ends without finalize gives the save up") {
    const shared_folder folder;
    MPI_Comm comm = MPI_COMM_WORLD;
    slow_disk slow;
    {
        engine z(&comm, json_for(2, adam, async_on));
        build(z);
        checkpoint::save(z, folder / "c", "lost", slow.disk);
        MPI_Barrier(MPI_COMM_WORLD);
        slow.go = true;
    }
    CHECK(names_in(folder / "c").empty());
}

TEST_CASE("two contexts save at once, into one folder; the working directory changes; a process is forked") {
    const shared_folder folder;
    MPI_Comm comm = MPI_COMM_WORLD;
    slow_disk first_disk, second_disk;
    engine one(&comm, json_for(2, adam, async_on)), two(&comm, json_for(3, adam, async_on));
    for (engine* z : {&one, &two}) build(*z);
    one.fill(0, "constant", 1, 0, 0);
    two.fill(0, "constant", 2, 0, 0);
    const std::filesystem::path before = std::filesystem::current_path();
    on_first([&] { std::filesystem::create_directory(folder / "here"); });
    std::filesystem::current_path(folder / "here");
    checkpoint::save(one, "c", "one", first_disk.disk);
    checkpoint::save(two, "c", "two", second_disk.disk);
    std::filesystem::current_path("/");
#ifndef __SANITIZE_THREAD__  // it takes what MPI does before a fork for an error
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    int status = 0;
    CHECK(::waitpid(child, &status, 0) == child);
#endif
    second_disk.go = true;
    two.wait();
    CHECK(there(folder / "here/c/two"));
    CHECK_FALSE(there(folder / "here/c/one"));
    first_disk.go = true;
    one.close();
    two.close();
    engine z(&comm, json_for(1, adam));
    build(z);
    for (const auto& [tag, value] : {std::pair{"one", 1.0F}, {"two", 2.0F}}) {
        checkpoint::load(z, folder / "here/c", tag);
        CHECK(values_of<float>(z, 0) == std::vector<float>(1000, value));
    }
    std::filesystem::current_path(before);
}

TEST_CASE("different calls meet: the save goes on, and is committed later") {
    if (world_size() == 1) return;
    const shared_folder folder;
    MPI_Comm comm = MPI_COMM_WORLD;
    engine z(&comm, json_for(2, adam, async_on));
    build(z);
    checkpoint::save(z, folder / "c", "t");
    CHECK(code_of([&] {
              if (world_rank() == 0)
                  z.wait();
              else
                  checkpoint::load(z, folder / "c", "t");
          }) == code::mismatch);
    z.wait();
    CHECK(there(folder / "c/t"));
    z.close();
}

TEST_CASE("the forecast's peak holds the copy, and by no more than padding too much") {
    const shared_folder folder;
    MPI_Comm comm = MPI_COMM_WORLD;
    std::vector<double> everywhere(1000), own(500);
    for (const int stage : {0, 1, 2, 3}) {
        std::int64_t peak[2] = {0, 0};
        for (const bool behind : {false, true}) {
            engine z(&comm, json_for(stage, adam, behind ? async_on : ""));
            z.add_group(R"({"frozen": true})");
            z.add_tensor("a", dtype::f32, int64s{20'011}, nullptr, 0);
            z.add_tensor("b", dtype::bf16, int64s{10'007}, nullptr, 0);
            z.add_tensor("ice", dtype::f64, int64s{5'003}, nullptr, 1);
            z.attach({"everywhere", dtype::f64, {1000}, 1000, everywhere.data(), false});
            z.attach({"own", dtype::f64, {500}, 500, own.data(), true});
            peak[behind] = z.forecast(place::host).second;
            if (!behind) continue;
            z.commit();
            constant_step(z, 1);
            checkpoint::save(z, folder / std::to_string(stage), "t");
            z.wait();
            const std::int64_t copy = z.book().bytes(purpose::checkpoint), said = peak[1] - peak[0];
            INFO("stage " << stage << ": " << copy << " bytes, " << said << " said");
            CHECK(copy > 0);
            CHECK(copy <= said);
            CHECK(said - copy <= 4 * 4096);  // slices are padded to 64 bytes
        }
    }
}

TEST_CASE("a model over ranks: both communicators join") {
    if (world_size() != 4) return;
    const shared_folder folder;
    const grid ranks(2);
    {
        slow_disk slow;
        if (world_rank() != 3) slow.go = true;
        engine z(&ranks.data, json_for(2, adam, async_on));
        z.set_model_comm(&ranks.model);
        build(z, 100 + ranks.model_rank);
        checkpoint::save(z, folder / "c", "t", slow.disk);
        for (int k = 0; k < 3; ++k) constant_step(z, 1);
        CHECK_FALSE(there(folder / "c/t"));  // rank 3 is slow
        slow.go = true;
        z.wait();
        CHECK(there(folder / "c/t"));
        slow.fail_with = world_rank() == 2 ? EIO : 0;
        checkpoint::save(z, folder / "c", "u", slow.disk);
        CHECK(code_of([&] { z.close(); }) == code::io);
    }
    CHECK(names_in(folder / "c") == std::set<std::string>{"LATEST", "t"});
}
