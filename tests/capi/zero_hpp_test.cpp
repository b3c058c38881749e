// zero.hpp: exceptions that carry the code, gathers that release themselves, contexts that finalize themselves.
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "zero/zero.hpp"

namespace {

const char* const config =
    "{\"zero_optimization\": {\"stage\": 3, \"stage3_param_persistence_threshold\": 0}, \"libzero\": {\"stale_check\": "
    "false}, "
    "\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 1}}}";

}  // namespace

TEST_CASE("a training step in C++") {
    zero::context z(MPI_COMM_WORLD, config);
    std::vector<double> w(6, 5.0);
    const int id = z.register_tensor("w", w, {2, 3});
    const int owned_by_library = z.register_tensor("v", ZERO_F32, {4});
    z.set("gradient_clipping", 0.0);
    z.commit();
    CHECK(z.count() == 2);
    CHECK(z.find("v") == owned_by_library);
    CHECK(z.tensor(id).dims == zero::dims{2, 3});
    {
        const auto whole = z.gather<const double>(id);
        CHECK(std::accumulate(whole.begin(), whole.end(), 0.0) == 30);
        const auto gradient = z.gradient<double>(id);
        for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = whole[i];
    }
    z.reduce(id);
    z.step();
    std::vector<double> after(6, 1.0);
    z.gather_to(id, ZERO_EVERYONE, after.data());
    CHECK(after == std::vector<double>(6, 0.0));
    CHECK(z.get_int("step") == 1);
    CHECK(z.get_real("lr") == 1);
    CHECK(z.get_text("optimizer.type") == "SGD");
    CHECK(z.report().size() > 10);
    CHECK(z.memory(ZERO_PLACE_HOST).bytes > 0);
    const auto mine = z.slice<double>(id, "value");
    CHECK(mine.first + static_cast<std::int64_t>(mine.size()) <= 6);
    zero::context moved = std::move(z);
    CHECK(z.handle() == nullptr);
    moved.finalize();
}

TEST_CASE("errors are exceptions with the code and the sentence") {
    zero::context z(MPI_COMM_WORLD, config);
    try {
        z.step();
        FAIL("step before commit succeeded");
    } catch (const zero::error& problem) {
        CHECK(problem.code() == ZERO_ERR_STATE);
        CHECK(std::string(problem.name()) == "ZERO_ERR_STATE");
        CHECK(std::string(problem.what()).find("zero_commit") != std::string::npos);
    }
    CHECK_THROWS_AS(zero::context(MPI_COMM_WORLD, "{\"zero_optimization\": {\"stage\": 9}}"), zero::failure);
    std::vector<float> w(5);
    CHECK_THROWS_AS(z.register_tensor("w", w, {2, 3}), zero::error);
}
