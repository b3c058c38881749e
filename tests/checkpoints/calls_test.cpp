// zero_save and zero_load as calls: what they refuse and how, failures of one rank, other optimizers, models over
// ranks.
#include <fcntl.h>
#include <hdf5.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>

#include "checkpoints/verify.hpp"
#include "jobs.hpp"

using namespace zero;
using namespace zero::test;

namespace {

using int64s = std::vector<std::int64_t>;

void build(engine& z, std::int64_t count = 10) {
    z.add_tensor("a", dtype::f32, int64s{count}, nullptr, 0);
    z.commit();
}

// The code is the same on all ranks.
bool everywhere(code mine) {
    int low = static_cast<int>(mine), high = low;
    MPI_Allreduce(MPI_IN_PLACE, &low, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &high, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return low == high;
}

int descriptors() {
    int open = 0;
    for (int number = 0; number < 1024; ++number) open += ::fcntl(number, F_GETFD) >= 0 ? 1 : 0;
    return open;
}

// Files, groups, datasets, types, attributes.
std::int64_t hdf5_objects() {
    return H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL);
}

std::int64_t resident_bytes() {
    std::ifstream from("/proc/self/statm");
    std::int64_t all = 0, resident = 0;
    from >> all >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool keeps_freed_memory = true;  // the sanitizer does, and looks for leaks itself
#else
constexpr bool keeps_freed_memory = false;
#endif

}  // namespace

TEST_CASE("what save and load refuse") {
    const shared_folder folder;
    MPI_Comm comm = MPI_COMM_WORLD;
    engine z(&comm, json_for(2, sgd_one));
    std::string text;
    z.add_tensor("a", dtype::f32, int64s{10}, nullptr, 0);
    CHECK(code_of([&] { checkpoint::save(z, folder / "c", "t"); }) == code::state);  // before commit
    z.commit();
    const std::vector<float> gradient(10, 1);
    z.reduce(0, 1, gradient.data());
    CHECK(code_of([&] { checkpoint::save(z, folder / "c", "t"); }, &text) == code::state);
    CHECK_THAT(text, Catch::Contains("zero_save inside an accumulation window"));
    CHECK(code_of([&] { checkpoint::load(z, folder / "c", "t"); }) == code::state);
    z.step();
    CHECK(code_of([&] { checkpoint::save(z, folder / "c", "a/b"); }) == code::argument);
    CHECK(code_of([&] { checkpoint::save(z, "", "t"); }) == code::argument);
    CHECK(code_of([&] { checkpoint::load(z, folder / "c", "t"); }) == code::checkpoint);
    CHECK(code_of([&] { checkpoint::save(z, folder / "c", "t"); }) == code::ok);
    CHECK(code_of([&] { checkpoint::save(z, folder / "c", "t"); }, &text) == code::checkpoint);
    CHECK_THAT(text, Catch::Contains("exists already"));
    if (world_size() > 1) {
        CHECK(code_of([&] { checkpoint::save(z, folder / "c", world_rank() == 0 ? "u" : "v"); }) == code::mismatch);
        CHECK(code_of([&] { checkpoint::load(z, folder / (world_rank() == 0 ? "c" : "d"), "t"); }) == code::mismatch);
    }
    CHECK(code_of([&] { checkpoint::save(z, "/proc/nowhere", "t"); }, &text) == code::io);
    CHECK_THAT(text, Catch::Contains("/proc/nowhere") && Catch::Contains("errno"));
    CHECK(code_of([&] { checkpoint::load(z, folder / "c", "t"); }) == code::ok);
}

TEST_CASE("one rank's file system fails: the same code on all, nothing left, the context goes on") {
    const shared_folder folder;
    MPI_Comm comm = MPI_COMM_WORLD;
    engine z(&comm, json_for(3, adam));
    build(z, 1000);
    checkpoint::save(z, folder / "c", "good");
    const int open = descriptors();
    for (const int number : {ENOSPC, EIO, EACCES})
        for (std::int64_t n = 0; n < 12; ++n) {
            int hit = 0;
            const files::disk disk([&](const files::request& what) {
                if (world_rank() != world_size() - 1 || what.number != n) return files::verdict{};
                hit = 1;
                return files::verdict{number, -1};
            });
            std::string text;
            const code answer = code_of([&] { checkpoint::save(z, folder / "c", "x", disk); }, &text);
            MPI_Bcast(&hit, 1, MPI_INT, world_size() - 1, MPI_COMM_WORLD);
            CHECK(everywhere(answer));
            CHECK(answer == (hit != 0 ? code::io : code::ok));
            if (hit != 0) {
                CHECK_THAT(text, Catch::Contains("errno " + std::to_string(number)) && Catch::Contains("while "));
            }
            on_first([&] {
                for (const auto& entry : std::filesystem::directory_iterator(folder / "c")) {
                    const std::string name = entry.path().filename();
                    CHECK_FALSE(name.starts_with(".staging"));
                }
                std::filesystem::remove_all(folder / "c/x");
            });
            CHECK(z.book().bytes(purpose::checkpoint) == 0);
        }
    CHECK(descriptors() == open);
    constant_step(z, 1);
    checkpoint::load(z, folder / "c", "good");
    CHECK(z.progress().step == 0);
}

TEST_CASE(
    "progress, loss scale, attached arrays come back; other ranks (S24) or optimizers are refused, or weights taken") {
    const shared_folder folder;
    const std::string fp16 = R"(, "fp16": {"enabled": true, "initial_scale_power": 8, "hysteresis": 1})";
    std::int64_t counter = 77;
    double own = world_rank() + 0.5;
    const auto attach = [&](engine& z, bool per_rank) {
        z.attach({"counter", dtype::i64, {}, 1, &counter, false});
        if (per_rank) z.attach({"own", dtype::f64, {1}, 1, &own, true});
    };
    job(world_size(), [&](MPI_Comm comm) {
        engine z(&comm, json_for(2, adam, fp16));
        z.add_tensor("a", dtype::f16, int64s{9}, nullptr, 0);
        attach(z, true);
        z.commit();
        z.fill(0, "constant", 1, 0, 0);
        std::vector<std::uint16_t> gradient(9, 0x5c00);  // 256: 1 at this scale
        z.reduce(0, 1, gradient.data());
        z.step();
        gradient.assign(9, 0x7c00);  // inf
        z.reduce(0, 1, gradient.data());
        z.step();
        CHECK(z.progress().skipped == 1);
        CHECK(z.progress().scale.scale == 128);
        checkpoint::save(z, folder / "c", "");
    });
    counter = 0;
    own = 0;
    job(world_size(), [&](MPI_Comm comm) {
        engine z(&comm, json_for(3, adam, fp16));
        z.add_tensor("a", dtype::f16, int64s{9}, nullptr, 0);
        attach(z, true);
        z.commit();
        checkpoint::load(z, folder / "c", "");
        CHECK(z.progress().step == 1);
        CHECK(z.progress().skipped == 1);
        CHECK(z.progress().scale.scale == 128);
        CHECK(z.progress().scale.last_overflow == 1);
        CHECK(counter == 77);
        CHECK(own == world_rank() + 0.5);
    });
    if (world_size() > 1)
        job(world_size() - 1, [&](MPI_Comm comm) {
            engine z(&comm, json_for(3, adam, fp16));
            z.add_tensor("a", dtype::f16, int64s{9}, nullptr, 0);
            attach(z, true);
            z.commit();
            std::string text;
            CHECK(code_of([&] { checkpoint::load(z, folder / "c", ""); }, &text) == code::checkpoint);
            CHECK_THAT(text, Catch::Contains("\"own\""));
        });
    job(world_size(), [&](MPI_Comm comm) {
        engine strict(&comm, json_for(1, sgd_momentum));
        build(strict, 9);
        std::string text;
        CHECK(code_of([&] { checkpoint::load(strict, folder / "c", ""); }, &text) == code::checkpoint);
        CHECK_THAT(text, Catch::Contains("checkpoint.load") && Catch::Contains("weights"));
        engine z(&comm, json_for(1, sgd_momentum, R"(, "checkpoint": {"load": "weights"})"));
        build(z, 9);
        constant_step(z, 1);
        checkpoint::load(z, folder / "c", "");
        for (const float value : values_of<float>(z, 0)) CHECK(value == Approx(0.9).epsilon(1e-5));
        CHECK(z.progress().step == 0);
        constant_step(z, 1);
        for (const float value : state_of<float>(z, 0, "momentum")) CHECK(value == 1);  // the old momentum is gone
        // Of another optimizer a partial load takes the values and begins a new run too; of the same it goes on.
        for (const bool same : {false, true}) {
            engine part(&comm, json_for(2, same ? adam : sgd_momentum, R"(, "checkpoint": {"load": "partial"})"));
            double unknown = 5;
            part.attach({"unknown", dtype::f64, {}, 1, &unknown, false});
            counter = 0;
            part.attach({"counter", dtype::i64, {}, 1, &counter, false});
            part.add_tensor("new", dtype::f32, int64s{7}, nullptr, 0);
            build(part, 9);
            part.fill(0, "constant", 3, 0, 0);
            checkpoint::load(part, folder / "c", "");
            CHECK(values_of<float>(part, 0) == std::vector<float>(7, 3));
            for (const float value : values_of<float>(part, 1)) CHECK(value == Approx(0.9).epsilon(1e-5));
            CHECK(part.progress().step == (same ? 1 : 0));
            CHECK(unknown == 5);
            CHECK(counter == 77);
        }
    });
}

TEST_CASE("a loss scale goes on only where it moves: nobody else's gradients are divided by it") {
    const shared_folder folder;
    MPI_Comm comm = MPI_COMM_WORLD;
    const auto run = [&](const std::string& more, double expected, const std::string& place, bool save) {
        engine z(&comm, json_for(2, sgd_one, more));
        build(z);
        if (save) {
            const std::vector<float> infinite(10, std::numeric_limits<float>::infinity());
            if (more.find("\"loss_scale\"") == std::string::npos && !more.empty()) {
                z.reduce(0, 1, infinite.data());
                z.step();
            }
            constant_step(z, 1);
            checkpoint::save(z, place, "t");
        } else {
            checkpoint::load(z, place, "t");
        }
        CHECK(z.progress().scale.scale == expected);
        const std::vector<float> before = values_of<float>(z, 0);
        constant_step(z, expected);  // 1, at this scale
        CHECK(values_of<float>(z, 0)[9] == before[9] - 1);
    };
    const std::string moving = R"(, "fp16": {"enabled": true, "initial_scale_power": 8, "hysteresis": 1})";
    const std::string fixed = R"(, "fp16": {"enabled": true, "loss_scale": 32})";
    run(moving, 128, folder / "moving", true);
    run("", 1, folder / "none", true);
    run(fixed, 32, folder / "fixed", true);
    run(moving, 128, folder / "moving", false);
    for (const char* from : {"none", "fixed"}) run(moving, 256, folder / from, false);
    for (const char* from : {"moving", "fixed", "none"}) {
        run("", 1, folder / from, false);
        run(fixed, 32, folder / from, false);
    }
}

TEST_CASE("damage that one rank alone reads is the same error on all, and the older one is taken by all") {
    const shared_folder folder;
    const std::string place = folder / "c";
    MPI_Comm comm = MPI_COMM_WORLD;
    engine z(&comm, json_for(3, sgd_one));
    build(z, 64);
    checkpoint::save(z, place, "old");
    constant_step(z, 1);
    checkpoint::save(z, place, "new");
    constant_step(z, 1);
    const checkpoint::manifest written = checkpoint::read_manifest(files::disk(), place + "/new");
    const checkpoint::extent& last = written.extents.back();  // elements of the last rank that owns any
    const std::string part = place + "/new/" + written.files[static_cast<std::size_t>(last.file)].name;
    on_first([&] {
        std::fstream bytes(part, std::ios::in | std::ios::out | std::ios::binary);
        bytes.seekp(last.offset + 2);
        bytes.put('\x77');
    });
    int read = 0;
    const files::disk disk([&](const files::request& what) {
        if (what.what == files::action::read && what.path == part && what.offset == last.offset) read = 1;
        return files::verdict{};
    });
    std::string text;
    CHECK(code_of([&] { checkpoint::load(z, place, "new", disk); }, &text) == code::checkpoint);
    CHECK(read == (world_rank() == last.file ? 1 : 0));
    CHECK_THAT(text, Catch::Contains(part));
    CHECK(values_of<float>(z, 0) == std::vector<float>(64, -2));
    CHECK(z.progress().step == 2);
    checkpoint::load(z, place, "");
    CHECK(values_of<float>(z, 0) == std::vector<float>(64, 0));
    CHECK(z.progress().step == 0);
}

TEST_CASE("a model over ranks: one folder for all, over both communicators") {
    if (world_size() != 4) return;
    const shared_folder folder;
    const grid ranks(2);
    const std::int64_t count = ranks.model_rank == 0 ? 11 : 6;
    std::vector<float> start;
    for (std::int64_t k = 0; k < count; ++k) start.push_back(static_cast<float>(100 * ranks.model_rank + k));
    for (const int stage : {1, 3}) {
        const std::string place = folder / std::to_string(stage);
        {
            engine z(&ranks.data, json_for(stage, adam));
            z.set_model_comm(&ranks.model);
            build(z, count);
            set_values(z, 0, start);
            checkpoint::save(z, place, "t");
            CHECK(code_of([&] { checkpoint::save(z, place, "t"); }) == code::checkpoint);
            const std::string other = ranks.model_rank == 0 ? place : folder / "other";
            CHECK(code_of([&] { checkpoint::save(z, other, "u"); }) == code::mismatch);
        }
        engine z(&ranks.data, json_for(3 - stage, adam));
        z.set_model_comm(&ranks.model);
        build(z, count);
        checkpoint::load(z, place, "");
        CHECK(values_of<float>(z, 0) == start);
        if (world_rank() == 0)
            CHECK(std::distance(std::filesystem::directory_iterator(place + "/t"), {}) ==
                  6);  // 4 parts, index, manifest
    }
}

TEST_CASE("S17: fifty saves: memory, descriptors, HDF5's objects and folders stay flat") {
    const shared_folder folder;
    MPI_Comm comm = MPI_COMM_WORLD;
    const bool behind = GENERATE(false, true);
    engine z(&comm, json_for(2, adam, behind ? R"(, "checkpoint": {"keep_last": 3, "async": true})"
                                             : R"(, "checkpoint": {"keep_last": 3})"));
    build(z, 5000);
    int open = 0;
    std::int64_t resident = 0, objects = 0;
    for (int k = 0; k < 50; ++k) {
        checkpoint::save(z, folder / "c", "t" + std::to_string(k));
        if (k != 2) continue;
        open = descriptors();
        resident = resident_bytes();
        objects = hdf5_objects();
    }
    z.wait();
    const std::int64_t kept = z.book().bytes(purpose::checkpoint), states = z.owned(0, "value").count * 12;
    CHECK(kept >= (behind ? states : 0));
    CHECK(kept <= (behind ? states + 4 * 4096 : 0));  // value and two moments, each begins a page
    CHECK(descriptors() <= open);
    CHECK(hdf5_objects() <= objects);
    if (!keeps_freed_memory) CHECK(resident_bytes() - resident <= std::int64_t{1} << 20);
    on_first(
        [&] { CHECK(std::distance(std::filesystem::directory_iterator(folder / "c"), {}) == 4); });  // three and LATEST
}
