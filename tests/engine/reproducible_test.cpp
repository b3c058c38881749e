// libzero.reproducible: the same micro-gradients give the same bits of values and states on any number of ranks, in every
// stage and type, whatever else is set. Expected is what one rank makes of all of them; the plain sums of these gradients differ.
#include "reproducible.hpp"

using namespace engine_test;

TEST_CASE("reproducible: the bits of one rank that gets all micro-gradients, in every stage and type") {
    for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
        for (const int micro_gradients : {24, size()}) {  // in several micro-steps, and in one
            run r;
            r.type = type;
            r.micro_gradients = micro_gradients;
            const auto expected = expected_of(r);
            for (const int stage : {0, 1, 2, 3}) {
                r.stage = stage;
                r.library_owned = stage % 2 == 1;
                INFO("stage " << stage << " " << name(type) << " of " << micro_gradients);
                CHECK(train(MPI_COMM_WORLD, r) == expected);
            }
        }
    }
}

TEST_CASE("reproducible, whatever else is set") {
    for (const dtype type : {dtype::f32, dtype::bf16, dtype::f64}) {
        run r;
        r.type = type;
        const auto expected = expected_of(r);
        for (const int stage : {1, 2, 3}) {
            for (const std::int64_t bucket : {1, 500'000'000}) {
                r.stage = stage;
                r.bucket = bucket;
                r.overlap = bucket == 1;
                r.threads = bucket == 1 ? 1 : 2;
                r.build_in_place = stage != 2;
                INFO("stage " << stage << " bucket " << bucket << " " << name(type));
                CHECK(train(MPI_COMM_WORLD, r) == expected);
            }
        }
    }
    run lossy;
    lossy.stage = 2;
    lossy.more = R"(, "communication_data_type": "bf16")";
    CHECK(train(MPI_COMM_WORLD, lossy) == expected_of(lossy));
    run lamb;
    lamb.stage = 1;
    lamb.optimizer = R"("type": "Lamb", "params": {"lr": 0.01, "weight_decay": 0.1})";
    lamb.vectors = {"exp_avg", "exp_avg_sq"};  // its directions are built over the gradients
    CHECK(train(MPI_COMM_WORLD, lamb) == expected_of(lamb));
    run plain_sgd;
    plain_sgd.stage = 3;
    plain_sgd.type = dtype::f64;
    plain_sgd.optimizer = sgd;
    plain_sgd.vectors = {"gradient"};
    CHECK(train(MPI_COMM_WORLD, plain_sgd) == expected_of(plain_sgd));
}

TEST_CASE("the plain sums of these gradients depend on the number of ranks") {
    if (size() == 1) return;
    for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
        run r;
        r.type = type;
        r.stage = 2;
        r.exact = false;
        CHECK(train(MPI_COMM_WORLD, r) != expected_of(r));
    }
}

TEST_CASE("reproducible: what would be rounded by itself is refused") {
    if (size() == 1) return;
    zero::engine z(world(), R"({"zero_optimization": {"stage": 2}, "optimizer": {"type": "SGD"}, "libzero": {"reproducible": true}})");
    const std::int64_t n = 100;
    std::vector<float> values(100), gradient(100, 1);
    const int id = z.add_tensor("w", dtype::f32, {&n, 1}, values.data(), 0);
    z.commit();
    z.reduce(id, 1, gradient.data());
    CHECK(code_of([&] { z.reduce(id, 1, gradient.data()); }) == zero::code::state);
    z.reduce(id, 0, gradient.data());  // nothing
    z.step();
    CHECK(z.get_integer("step") == 1);
}
