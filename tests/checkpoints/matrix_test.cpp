// Any number of ranks from 1 to 8, any stage and either layout of nodes to any other, every dtype and optimizer: bit for
// bit, and the training goes on with the bits of the run on one rank that was never interrupted.
#include <cstdio>

#include "matrix.hpp"

using namespace zero;
using namespace zero::test;

namespace {

// The bits after `steps` on one rank in stage 0.
std::string alone(const std::string& optimizer, const std::string& more, int steps) {
    std::string bits;
    job(1, [&](MPI_Comm comm) {
        varied model(comm, json_of(1, 0, 0, optimizer, more), true);
        go_on(model, 0, steps);
        bits = model.bits();
    });
    return told_by_first(bits);
}

std::string save_on_job(const std::string& place, int ranks, const std::string& json) {
    std::string bits;
    job(ranks, [&](MPI_Comm comm) {
        varied model(comm, json, true);
        go_on(model, 0, 3);
        bits = model.bits();
        checkpoint::save(model.z, place, "t");
    });
    return told_by_first(bits);
}

void stage_to_any(int stage) {
    REQUIRE(world_size() == 8);
    const shared_folder folder;
    const std::string after_three = alone(adam, clipped, 3), after_five = alone(adam, clipped, 5);
    int loads = 0;
    for (int ranks = 1; ranks <= 8; ++ranks) {
        for (const int layout : {0, 1}) {
            const std::string place = folder / zero::formatted("{}-{}", ranks, layout);
            CHECK((save_on_job(place, ranks, json_of(ranks, stage, layout, adam, clipped)) == after_three));
        }
        for (int other = 1; other <= 8; ++other)
            for (const int then : {0, 1, 2, 3}) {
                // Each pair of layouts for a quarter of the pairs of ranks and stages.
                const int turn = ranks + other + then + stage, from = turn % 2, to = turn / 2 % 2;
                job(other, [&](MPI_Comm comm) {
                    varied model(comm, json_of(other, then, to, adam, clipped), false);
                    checkpoint::load(model.z, folder / zero::formatted("{}-{}", ranks, from), "");
                    INFO(ranks << " ranks, stage " << stage << ", layout " << from << " to " << other << ", stage " << then
                               << ", layout " << to);
                    CHECK((model.bits() == after_three));
                    CHECK(model.z.book().bytes(purpose::checkpoint) == 0);
                    go_on(model, 3, 5);
                    CHECK((model.bits() == after_five));
                });
                ++loads;
            }
    }
    if (world_rank() == 0) std::printf("stage %d: 16 saves, %d loads\n", stage, loads);
}

}  // namespace

TEST_CASE("stage 0 to any", "[stage0]") {
    stage_to_any(0);
}
TEST_CASE("stage 1 to any", "[stage1]") {
    stage_to_any(1);
}
TEST_CASE("stage 2 to any", "[stage2]") {
    stage_to_any(2);
}
TEST_CASE("stage 3 to any", "[stage3]") {
    stage_to_any(3);
}

TEST_CASE("every optimizer", "[optimizers]") {
    const shared_folder folder;
    for (const std::string& optimizer :
         {adam, sgd_momentum, sgd_one, std::string(R"({"type": "AdamW", "params": {"lr": 0.1, "weight_decay": 0.01}})"),
          std::string(R"({"type": "Lion", "params": {"lr": 0.01}})"), std::string(R"({"type": "Adagrad", "params": {"lr": 0.1}})"),
          std::string(R"({"type": "Lamb", "params": {"lr": 0.01}})")}) {
        const bool sums_norms = optimizer.find("Lamb") != std::string::npos;  // of parameters, in the order of ranks
        const std::string after_five = sums_norms ? "" : alone(optimizer, "", 5);
        for (const int ranks : {1, 3, 8})
            for (const int stage : {0, 1, 2, 3}) {
                if (ranks > world_size()) continue;
                const std::string place = folder / zero::formatted("{}-{}-{}", std::hash<std::string>()(optimizer), ranks, stage);
                const std::string saved = save_on_job(place, ranks, json_of(ranks, stage, stage % 2, optimizer, ""));
                for (const int other : {1, 2, 5, 8}) {
                    if (other > world_size()) continue;
                    job(other, [&](MPI_Comm comm) {
                        varied model(comm, json_of(other, 3 - stage, other % 2, optimizer, ""), false);
                        checkpoint::load(model.z, place, "");
                        INFO(optimizer << ", " << ranks << " ranks, stage " << stage << " to " << other);
                        CHECK((model.bits() == saved));
                        go_on(model, 3, 5);
                        if (!sums_norms) CHECK((model.bits() == after_five));
                    });
                }
            }
    }
}
