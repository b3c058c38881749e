// The main job through the C interface against a plain serial reference: stages 0 to 3, gradients in all the ways they
// can be handed over, lists, the step in parts, groups.
#include <cmath>

#include "support.hpp"

using namespace zero_test;

TEST_CASE("plain descent on a quadratic is what it is on paper, in every stage") {
    // f = sum over ranks r of |w - c_r|^2 / 2 with c_r = r: the mean gradient is w - (P-1)/2.
    for (const int stage : {0, 1, 2, 3}) {
        model m(stage);
        WORKS(zero_set_real(m.z, "optimizer.params.lr", 0.25));
        WORKS(zero_fill(m.z, m.id_b, "constant", 8, 0, 0));
        double expected = 8;
        for (int step = 0; step < 10; ++step) {
            void* values = nullptr;
            void* gradient = nullptr;
            WORKS(zero_gather(m.z, m.id_b, &values));
            WORKS(zero_gradient(m.z, m.id_b, &gradient));
            for (int i = 0; i < 7; ++i) static_cast<double*>(gradient)[i] = static_cast<double*>(values)[i] - rank_of();
            WORKS(zero_release(m.z, m.id_b));
            WORKS(zero_reduce(m.z, m.id_b, nullptr));
            WORKS(zero_step(m.z));
            expected -= 0.25 * (expected - 0.5 * (size_of() - 1));
            double whole[7] = {};
            WORKS(zero_gather_to(m.z, m.id_b, ZERO_EVERYONE, whole));
            for (const double value : whole) CHECK(value == Approx(expected).epsilon(1e-12));
        }
        std::int64_t steps = 0;
        WORKS(zero_get_int(m.z, "step", &steps));
        CHECK(steps == 10);
    }
}

TEST_CASE("scaled hand-overs and lists") {
    for (const int stage : {0, 1, 2, 3}) {
        model m(stage);
        const int ids[2] = {m.id_a, m.id_b};
        const void* gradients[2] = {m.gradient_a.data(), m.gradient_b.data()};
        WORKS(zero_reduce_list(m.z, 2, ids, gradients));                                                // 1
        WORKS(zero_reduce_scaled(m.z, m.id_a, 2.0, m.gradient_a.data()));                               // + 2
        WORKS(zero_reduce_scaled(m.z, m.id_b, 0.0, nullptr == gradients[1] ? nullptr : gradients[1]));  // + 0
        WORKS(zero_step(m.z));
        void* values[2] = {nullptr, nullptr};
        WORKS(zero_gather_list(m.z, 2, ids, values));
        for (int i = 0; i < 15; ++i) CHECK(static_cast<float*>(values[0])[i] == -3.0F);
        for (int i = 0; i < 7; ++i) CHECK(static_cast<double*>(values[1])[i] == -1.0);
        WORKS(zero_release_list(m.z, 2, ids));
        EXPECT(ZERO_ERR_STATE, zero_release_list(m.z, 2, ids));
    }
}

TEST_CASE("an optimizer of the caller's on the slices") {
    for (const int stage : {0, 1, 2, 3}) {
        model m(stage, false);
        WORKS(zero_state(m.z, "memory"));
        WORKS(zero_commit(m.z));
        for (int step = 1; step <= 3; ++step) {  // v = v / 2 + g;  p = p - v
            WORKS(zero_reduce(m.z, m.id_b, m.gradient_b.data()));
            WORKS(zero_finish(m.z));
            double squares = 0;
            WORKS(zero_dot(m.z, "gradient", "gradient", -1, &squares));
            CHECK(squares == 7);
            void* value = nullptr;
            void* memory = nullptr;
            void* gradient = nullptr;
            std::int64_t first = -1;
            std::int64_t count = -1;
            WORKS(zero_slice(m.z, m.id_b, "gradient", &gradient, nullptr, nullptr));
            WORKS(zero_slice(m.z, m.id_b, "memory", &memory, nullptr, nullptr));
            WORKS(zero_slice(m.z, m.id_b, "value", &value, &first, &count));
            CHECK((first >= 0 && count >= 0 && first + count <= 7));
            for (std::int64_t i = 0; i < count; ++i) {
                double& v = static_cast<double*>(memory)[i];
                v = 0.5 * v + static_cast<double*>(gradient)[i];
                static_cast<double*>(value)[i] -= v;
            }
            WORKS(zero_publish(m.z));
        }
        double whole[7] = {};
        WORKS(zero_gather_to(m.z, m.id_b, ZERO_EVERYONE, whole));
        for (const double value : whole) CHECK(value == -(1 + 1.5 + 1.75));
    }
}

TEST_CASE("scatter from one rank and from everyone; states") {
    for (const int stage : {0, 1, 2, 3}) {
        model m(stage);
        const int root = size_of() - 1;
        std::vector<double> given(7), got(7);
        for (std::size_t i = 0; i < 7; ++i) given[i] = 10.0 + static_cast<double>(i);
        WORKS(zero_scatter(m.z, m.id_b, root, rank_of() == root ? given.data() : nullptr));
        WORKS(zero_gather_to(m.z, m.id_b, 0, rank_of() == 0 ? got.data() : nullptr));
        if (rank_of() == 0) CHECK(got == given);
        WORKS(zero_gather_state(m.z, m.id_b, "master", ZERO_EVERYONE, got.data()));
        CHECK(got == given);
        given[3] = -1;
        WORKS(zero_scatter_state(m.z, m.id_b, "value", ZERO_EVERYONE, given.data()));
        WORKS(zero_gather_to(m.z, m.id_b, ZERO_EVERYONE, got.data()));
        CHECK(got == given);
    }
}

TEST_CASE("the caller's array moves") {
    model m(1);
    m.train_one_step();
    std::vector<float> moved = m.a;
    WORKS(zero_rebind(m.z, m.id_a, moved.data()));
    std::fill(m.a.begin(), m.a.end(), 99.0F);
    m.train_one_step();
    for (const float value : moved) CHECK(value == -2.0F);
    for (const float value : m.a) CHECK(value == 99.0F);
}

TEST_CASE("a group's rate, at run time too") {
    zero_t z = nullptr;
    WORKS(zero_init(MPI_COMM_WORLD, sgd(2).c_str(), &z));
    int group = 0;
    WORKS(zero_group(z, "{\"lr\": 3}", &group));
    CHECK(group == 1);
    std::vector<double> p(3, 0.0), q(3, 0.0);
    const std::vector<double> g(3, 1.0);
    const std::int64_t three = 3;
    int id_p = -1, id_q = -1;
    WORKS(zero_register(z, "p", ZERO_F64, 1, &three, p.data(), 0, &id_p));
    WORKS(zero_register(z, "q", ZERO_F64, 1, &three, q.data(), group, &id_q));
    WORKS(zero_commit(z));
    for (int step = 0; step < 2; ++step) {
        WORKS(zero_reduce(z, id_p, g.data()));
        WORKS(zero_reduce(z, id_q, g.data()));
        WORKS(zero_step(z));
        WORKS(zero_set_real(z, "groups.1.lr", 5));
    }
    CHECK(p == std::vector<double>(3, -2.0));
    CHECK(q == std::vector<double>(3, -8.0));
    WORKS(zero_finalize(&z));
}

TEST_CASE("save, then load into a fresh context") {
    const std::string folder = "ckpt";
    model first(3);
    first.train_one_step();
    const int saved = zero_save(first.z, folder.c_str(), nullptr);
    if (saved == ZERO_ERR_UNSUPPORTED) return;  // built without HDF5
    REQUIRE(saved == ZERO_OK);
    EXPECT(ZERO_ERR_CHECKPOINT, zero_save(first.z, folder.c_str(), nullptr));
    first.train_one_step();
    model second(1);
    WORKS(zero_load(second.z, folder.c_str(), "step-000000000001"));
    double whole[7] = {};
    WORKS(zero_gather_to(second.z, second.id_b, ZERO_EVERYONE, whole));
    for (const double value : whole) CHECK(value == -1.0);
    EXPECT(ZERO_ERR_CHECKPOINT, zero_load(second.z, folder.c_str(), "step-000000000002"));
    EXPECT(ZERO_ERR_ARGUMENT, zero_save(second.z, folder.c_str(), "../outside"));
    second.check_usable();
}
