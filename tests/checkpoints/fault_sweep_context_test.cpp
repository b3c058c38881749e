// zero_save and zero_load of a context over MPI: every call to the file system of every rank fails once, or is interrupted.
// The same code on all ranks, nothing left, nothing leaked, and the context goes on. Kinds of saves and every errno:
// fault_sweep_test.cpp.
#include <cstdio>

#include "jobs.hpp"
#include "sweep.hpp"

using namespace zero;
using namespace zero::test;

namespace {

int worst(int mine) {
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return mine;
}

// What a trial compares: the folder on rank 0, what the ledger holds on each.
struct state {
    std::map<std::string, std::string> files;
    std::int64_t bytes = 0;
    bool operator==(const state&) const = default;
};

state now(engine& z, const std::string& place) {
    MPI_Barrier(MPI_COMM_WORLD);
    state found;
    if (world_rank() == 0) found.files = tree(place);
    found.bytes = z.book().bytes(purpose::checkpoint);
    MPI_Barrier(MPI_COMM_WORLD);
    return found;
}

void build(engine& z) {
    z.add_tensor("a", dtype::f32, std::vector<std::int64_t>{1000}, nullptr, 0);
    z.add_tensor("b", dtype::bf16, std::vector<std::int64_t>{33}, nullptr, 0);
    z.commit();
}

// The number of trials; `call` saves or loads with this disk.
std::int64_t sweep(engine& z, const std::string& place, const std::function<void(const files::disk&)>& call,
                   const std::function<void()>& mend) {
    const std::vector<int> errors{EIO, ENOSPC, EACCES, EDQUOT, EROFS, EINTR};
    std::int64_t trials = 0;
    const state before = now(z, place);
    const holdings held_before = held();
    for (int culprit = 0; culprit < world_size(); ++culprit)
        every_call([&](std::int64_t n) {
            const int number = errors[static_cast<std::size_t>(n) % errors.size()];
            one_fault fault(culprit, n, {number, -1});
            const files::disk disk(fault.hooks()(world_rank()));
            std::string text;
            const code answer = code_of([&] { call(disk); }, &text);
            const bool hit = worst(fault.hit() ? 1 : 0) != 0;
            INFO(fault.place() << ": " << text);
            REQUIRE(worst(static_cast<int>(answer)) == -worst(-static_cast<int>(answer)));  // the same on all
            if (answer == code::ok) {
                mend();
            } else {
                REQUIRE(answer == code::io);
                REQUIRE(number != EINTR);
                REQUIRE_THAT(text, Catch::Contains(place) && Catch::Contains("while ") &&
                                       Catch::Contains("rank " + std::to_string(culprit)) &&
                                       Catch::Contains("errno " + std::to_string(number)));
            }
            REQUIRE((now(z, place) == before));
            REQUIRE(holds_no_more_than(held_before));
            trials += hit ? 1 : 0;
            return hit;
        });
    return trials;
}

}  // namespace

TEST_CASE("a context whose saves and loads fail at any call", "[fault]") {
    const bool behind = GENERATE(false, true);
    const shared_folder folder;
    const std::string place = folder / "c";
    MPI_Comm comm = MPI_COMM_WORLD;
    engine z(&comm, json_for(3, adam, behind ? R"(, "checkpoint": {"async": true})" : ""));
    build(z);
    z.logger().redirect([](log_level, const std::string&) {});
    for (const char* tag : {"older", "good"}) {
        checkpoint::save(z, place, tag);
        z.wait();
        constant_step(z, 1);
    }
    const std::vector<float> values = values_of<float>(z, 0);
    const std::int64_t saves = sweep(
        z, place,
        [&](const files::disk& disk) {
            checkpoint::save(z, place, "new", disk);
            z.wait();
        },
        [&] {
            on_first([&] {
                std::filesystem::remove_all(place + "/new");
                for (const std::string& name : names_in(place))
                    if (name.starts_with(".")) std::filesystem::remove_all(place + "/" + name);
                write_file(place + "/LATEST", "good\n");
            });
        });
    CHECK(values_of<float>(z, 0) == values);
    // A load of "good" leaves step 1; where it fails, what was before is there.
    const auto load = [&](const files::disk& disk) {
        const std::int64_t step = z.progress().step;
        try {
            checkpoint::load(z, place, "good", disk);
        } catch (const error&) {
            REQUIRE(z.progress().step == step);
            REQUIRE(values_of<float>(z, 0) == values);
            throw;
        }
        REQUIRE(z.progress().step == 1);
    };
    const auto go_on = [&] {
        constant_step(z, 1);
        REQUIRE(values_of<float>(z, 0) == values);  // as the run that never stopped
    };
    const std::int64_t loads = sweep(z, place, load, go_on);
    checkpoint::save(z, place, "after");
    z.close();
    if (world_rank() == 0) std::printf("%ld calls of saves, %ld of loads\n", saves, loads);
    CHECK(saves > 50);
    CHECK(loads > 10);
}
