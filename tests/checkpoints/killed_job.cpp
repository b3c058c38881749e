// One job of killed_job.sh (case B36 a). "good FOLDER": saves step 1, every value -1. "kill FOLDER RANK CALL": goes on
// to step 2, every value -2, and dies by SIGKILL on that rank at that call to the file system while it saves; "behind": the
// same with an asynchronous save. "look
// FOLDER": loads the newest and prints its step, after checking that it is one state and whole.
#include <mpi.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "jobs.hpp"

using namespace zero;
using namespace zero::test;

namespace {

void add(engine& z) {
    z.add_tensor("a", dtype::f32, std::vector<std::int64_t>{100}, nullptr, 0);
    z.commit();
}

int work(const std::string& mode, const std::string& folder, int rank, std::int64_t number) {
    const files::disk disk([&](const files::request& what) {
        if (mode != "good" && world_rank() == rank && what.number == number) ::raise(SIGKILL);
        return files::verdict{};
    });
    MPI_Comm comm = MPI_COMM_WORLD;
    engine z(&comm, json_for(mode == "look" ? 1 : 3, sgd_one,
                             mode == "behind" ? R"(, "checkpoint": {"async": true})" : ""));
    add(z);
    if (mode != "good") checkpoint::load(z, folder, "");
    if (mode == "look") {
        const float step = static_cast<float>(z.progress().step);
        if (step < 1 || values_of<float>(z, 0) != std::vector<float>(100, -step)) return 1;
        if (world_rank() == 0) std::printf("%d\n", static_cast<int>(step));
        return 0;
    }
    constant_step(z, 1);
    checkpoint::save(z, folder, "", disk);
    z.close();
    return 0;
}

}  // namespace

int main(int count, char** words) {
    MPI_Init(&count, &words);
    int answer = 1;
    try {
        answer = work(words[1], words[2], count > 4 ? std::stoi(words[3]) : -1, count > 4 ? std::stoi(words[4]) : -1);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "rank %d: %s\n", world_rank(), problem.what());
    }
    MPI_Finalize();
    return answer;
}
