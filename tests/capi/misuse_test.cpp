// Every misuse of the contract's list: the documented code and a sentence, on all ranks, nothing printed, and a context
// that can still be used or finalized.
#include <cstdint>
#include <limits>
#include <thread>

#include "support.hpp"

using namespace zero_test;

TEST_CASE("handles that are none") {
    const listening quiet;
    zero_t none = nullptr;
    int number = 0;
    double real = 0;
    EXPECT(ZERO_ERR_ARGUMENT, zero_finalize(nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_finalize(&none));
    EXPECT(ZERO_ERR_ARGUMENT, zero_commit(nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_step(nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_count(nullptr, &number));
    EXPECT(ZERO_ERR_ARGUMENT, zero_get_real(nullptr, "lr", &real));
    EXPECT(ZERO_ERR_ARGUMENT, zero_save(nullptr, "somewhere", nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_set_log(nullptr, nullptr, nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_should_stop(nullptr, &number));

    zero_t z = nullptr;
    WORKS(zero_init(MPI_COMM_WORLD, nullptr, &z));
    const zero_t dead = z;
    WORKS(zero_finalize(&z));
    CHECK(z == nullptr);
    zero_t again = dead;
    EXPECT(ZERO_ERR_ARGUMENT, zero_finalize(&again));
    EXPECT(ZERO_ERR_ARGUMENT, zero_commit(dead));

    // A new context may lie where the dead one lay: the dead handle stays dead.
    WORKS(zero_init(MPI_COMM_WORLD, "", &z));
    CHECK(z != dead);
    EXPECT(ZERO_ERR_ARGUMENT, zero_count(dead, &number));
    int on_the_stack = 0;
    EXPECT(ZERO_ERR_ARGUMENT, zero_count(reinterpret_cast<zero_t>(&on_the_stack), &number));
    EXPECT(ZERO_ERR_ARGUMENT, zero_step(reinterpret_cast<zero_t>(std::uintptr_t{1})));
    WORKS(zero_finalize(&z));
}

TEST_CASE("init that cannot be") {
    listening quiet;
    zero_t z = reinterpret_cast<zero_t>(std::uintptr_t{12345});
    EXPECT(ZERO_ERR_ARGUMENT, zero_init(MPI_COMM_NULL, nullptr, &z));
    CHECK(z == nullptr);
    EXPECT(ZERO_ERR_ARGUMENT, zero_init_f(MPI_Comm_c2f(MPI_COMM_NULL), nullptr, &z));
    EXPECT(ZERO_ERR_ARGUMENT, zero_init(MPI_COMM_WORLD, nullptr, nullptr));
    EXPECT(ZERO_ERR_CONFIG, zero_init(MPI_COMM_WORLD, "{\"zero_optimization\": {\"stage\": 4}}", &z));
    CHECK(z == nullptr);
    EXPECT(ZERO_ERR_CONFIG, zero_init(MPI_COMM_WORLD, "{\"zero_optimization\": {\"reduce_bucket_sizee\": 4}}", &z));
    CHECK(std::string(zero_last_error()).find("reduce_bucket_size") != std::string::npos);
    EXPECT(ZERO_ERR_CONFIG, zero_init(MPI_COMM_WORLD, "{\"zero_optimization\": {\"stage\": 1, ", &z));
    EXPECT(ZERO_ERR_IO, zero_init(MPI_COMM_WORLD, "no/such/file.json", &z));
    // One rank alone has a wrong configuration: all say so.
    EXPECT(ZERO_ERR_CONFIG,
           zero_init(MPI_COMM_WORLD, last_rank() ? "{\"zero_optimization\": {\"stage\": -1}}" : "{}", &z));
    CHECK(z == nullptr);
    if (size_of() > 1) {
        EXPECT(ZERO_ERR_MISMATCH, zero_init(MPI_COMM_WORLD, last_rank() ? "{\"gradient_clipping\": 2}" : "{}", &z));
        CHECK(z == nullptr);
    }
    CHECK(quiet.heard().empty());
}

TEST_CASE("wrong descriptions of the model") {
    listening quiet;
    model m(1, false);
    const std::int64_t negative[2] = {3, -1};
    const std::int64_t huge[2] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
    const std::int64_t six[1] = {6};
    std::vector<float> other(6);
    int id = 77;
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "n", ZERO_F32, 2, negative, nullptr, 0, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "n", ZERO_F32, 2, huge, nullptr, 0, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "n", ZERO_F32, 8, huge, nullptr, 0, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "n", ZERO_F32, -1, huge, nullptr, 0, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "n", ZERO_F32, 1, nullptr, nullptr, 0, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "a", ZERO_F32, 1, six, other.data(), 0, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "n", ZERO_F32, 1, six, m.a.data() + 1, 0, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "x/../y", ZERO_F32, 1, six, other.data(), 0, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "n", 42, 1, six, other.data(), 0, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "n", ZERO_I32, 1, six, other.data(), 0, &id));
    EXPECT(ZERO_ERR_UNSUPPORTED, zero_register(m.z, "n", ZERO_C64, 1, six, nullptr, 0, &id));
    EXPECT(ZERO_ERR_UNSUPPORTED, zero_register(m.z, "n", ZERO_C128, 1, six, nullptr, 0, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "n", ZERO_F32, 1, six, other.data(), 5, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_register(m.z, "n", ZERO_F32, 1, six, other.data(), -1, &id));
    CHECK(id == 77);
    EXPECT(ZERO_ERR_ARGUMENT, zero_find(m.z, "nobody", &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_find(m.z, nullptr, &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_find(m.z, "a", nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_tensor(m.z, 2, &id, nullptr, nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_tensor(m.z, -1, &id, nullptr, nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_count(m.z, nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_group(m.z, "{}", nullptr));
    EXPECT(ZERO_ERR_CONFIG, zero_group(m.z, "{\"lrr\": 1}", &id));
    EXPECT(ZERO_ERR_ARGUMENT, zero_state(m.z, nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_state(m.z, "exp_avg"));
    EXPECT(ZERO_ERR_UNSUPPORTED, zero_place(m.z, m.id_a, m.dims_a, m.dims_a, nullptr, nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_attach(m.z, nullptr, ZERO_F32, 1, six, other.data(), ZERO_REPLICATED));
    EXPECT(ZERO_ERR_ARGUMENT, zero_attach(m.z, "x", ZERO_F32, 1, six, nullptr, ZERO_REPLICATED));
    EXPECT(ZERO_ERR_ARGUMENT, zero_attach(m.z, "x", ZERO_F32, 1, six, other.data(), 2));
    EXPECT(ZERO_ERR_ARGUMENT, zero_attach(m.z, "x", ZERO_F32, 2, negative, other.data(), ZERO_PER_RANK));
    EXPECT(ZERO_ERR_ARGUMENT, zero_attach(m.z, "x", ZERO_F32, 2, huge, other.data(), ZERO_PER_RANK));
    EXPECT(ZERO_ERR_UNSUPPORTED, zero_attach(m.z, "x", ZERO_C128, 1, six, other.data(), ZERO_PER_RANK));
    EXPECT(ZERO_ERR_ARGUMENT, zero_forecast(m.z, 4, nullptr, nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_memory(m.z, 0, nullptr, nullptr));
    WORKS(zero_count(m.z, &id));
    CHECK(id == 2);
    WORKS(zero_group(m.z, "{\"lr\": 3}", &id));  // a group without tensors is allowed
    WORKS(zero_commit(m.z));
    CHECK(quiet.heard().empty());
    m.check_usable();
}

TEST_CASE("calls at the wrong time") {
    listening quiet;
    for (const int stage : {0, 3}) {
        model m(stage, false);
        void* values = nullptr;
        std::int64_t six = 6;
        int id = 0;
        EXPECT(ZERO_ERR_STATE, zero_step(m.z));
        EXPECT(ZERO_ERR_STATE, zero_finish(m.z));
        EXPECT(ZERO_ERR_STATE, zero_publish(m.z));
        EXPECT(ZERO_ERR_STATE, zero_reduce(m.z, m.id_a, m.gradient_a.data()));
        EXPECT(ZERO_ERR_STATE, zero_gather(m.z, m.id_a, &values));
        EXPECT(ZERO_ERR_STATE, zero_gather_to(m.z, m.id_a, ZERO_EVERYONE, m.a.data()));
        EXPECT(ZERO_ERR_STATE, zero_fill(m.z, m.id_a, "constant", 1, 0, 0));
        EXPECT(ZERO_ERR_STATE, zero_save(m.z, "folder", nullptr));
        EXPECT(ZERO_ERR_STATE, zero_load(m.z, "folder", nullptr));
        WORKS(zero_commit(m.z));
        EXPECT(ZERO_ERR_STATE, zero_commit(m.z));
        EXPECT(ZERO_ERR_STATE, zero_register(m.z, "late", ZERO_F32, 1, &six, nullptr, 0, &id));
        EXPECT(ZERO_ERR_STATE, zero_group(m.z, "{}", &id));
        EXPECT(ZERO_ERR_STATE, zero_state(m.z, "late"));
        EXPECT(ZERO_ERR_STATE, zero_set_int(m.z, "zero_optimization.stage", 1));
        EXPECT(ZERO_ERR_STATE, zero_release(m.z, m.id_a));
        EXPECT(ZERO_ERR_STATE, zero_gather_state(m.z, m.id_a, "gradient", ZERO_EVERYONE, m.a.data()));
        EXPECT(ZERO_ERR_ARGUMENT, zero_reduce(m.z, m.id_a, nullptr));  // no buffer of zero_gradient
        EXPECT(ZERO_ERR_STATE, zero_rebind(m.z, m.id_b, m.gradient_b.data()));
        m.check_usable();
        WORKS(zero_reduce(m.z, m.id_a, m.gradient_a.data()));
        EXPECT(ZERO_ERR_STATE, zero_save(m.z, "folder", nullptr));
        WORKS(zero_reduce(m.z, m.id_b, m.gradient_b.data()));
        WORKS(zero_step(m.z));
        WORKS(zero_finalize(&m.z));
    }
    CHECK(quiet.heard().empty());
}

TEST_CASE("wrong arguments of one rank are everybody's error") {
    listening quiet;
    for (const int stage : {0, 1, 2, 3}) {
        model m(stage);
        const bool bad = last_rank();
        std::vector<float> buffer(15, 2.0F);
        double result = 0;
        const char* no_text = nullptr;
        // Collective calls: the same code on all ranks.
        EXPECT(ZERO_ERR_ARGUMENT, zero_gather_to(m.z, bad ? 99 : m.id_a, ZERO_EVERYONE, buffer.data()));
        EXPECT(ZERO_ERR_ARGUMENT, zero_gather_to(m.z, m.id_a, ZERO_EVERYONE, bad ? nullptr : buffer.data()));
        EXPECT(ZERO_ERR_ARGUMENT, zero_gather_to(m.z, m.id_a, bad ? -2 : 0, buffer.data()));
        EXPECT(ZERO_ERR_ARGUMENT, zero_gather_to(m.z, m.id_a, bad ? size_of() : 0, buffer.data()));
        EXPECT(ZERO_ERR_ARGUMENT, zero_scatter(m.z, m.id_a, size_of() - 1, nullptr));
        EXPECT(ZERO_ERR_ARGUMENT, zero_scatter(m.z, bad ? -1 : m.id_a, 0, buffer.data()));
        EXPECT(ZERO_ERR_ARGUMENT,
               zero_gather_state(m.z, m.id_a, bad ? no_text : "value", ZERO_EVERYONE, buffer.data()));
        EXPECT(ZERO_ERR_ARGUMENT,
               zero_gather_state(m.z, m.id_a, bad ? "exp_avg_sq" : "value", ZERO_EVERYONE, buffer.data()));
        EXPECT(ZERO_ERR_ARGUMENT,
               zero_scatter_state(m.z, m.id_a, bad ? no_text : "value", ZERO_EVERYONE, buffer.data()));
        EXPECT(ZERO_ERR_ARGUMENT, zero_fill(m.z, m.id_a, bad ? no_text : "constant", 1, 0, 0));
        EXPECT(ZERO_ERR_ARGUMENT, zero_fill(m.z, m.id_a, bad ? "poisson" : "constant", 1, 0, 0));
        EXPECT(ZERO_ERR_ARGUMENT, zero_dot(m.z, bad ? no_text : "value", "value", -1, &result));
        EXPECT(ZERO_ERR_ARGUMENT, zero_dot(m.z, "value", bad ? "nonsense" : "value", -1, &result));
        EXPECT(ZERO_ERR_ARGUMENT, zero_dot(m.z, "value", "value", bad ? 3 : -1, &result));
        EXPECT(ZERO_ERR_ARGUMENT, zero_dot(m.z, "value", "value", -1, bad ? nullptr : &result));
        EXPECT(ZERO_ERR_ARGUMENT, zero_save(m.z, bad ? nullptr : "folder", nullptr));
        EXPECT(ZERO_ERR_ARGUMENT, zero_save(m.z, bad ? "" : "folder", nullptr));
        EXPECT(ZERO_ERR_ARGUMENT, zero_load(m.z, bad ? nullptr : "folder", nullptr));
        EXPECT(ZERO_ERR_CHECKPOINT, zero_load(m.z, "no_such_folder", nullptr));
        int flag = 0;
        EXPECT(ZERO_ERR_ARGUMENT, zero_should_stop(m.z, bad ? nullptr : &flag));
        // Local calls: the failing rank alone.
        void* pointer = nullptr;
        std::int64_t first = 0;
        std::int64_t count = 0;
        EXPECT(ZERO_ERR_ARGUMENT, zero_reduce(m.z, 99, buffer.data()));
        EXPECT(ZERO_ERR_ARGUMENT, zero_reduce_scaled(m.z, -1, 2.0, buffer.data()));
        EXPECT(ZERO_ERR_ARGUMENT, zero_gradient(m.z, 99, &pointer));
        EXPECT(ZERO_ERR_ARGUMENT, zero_gradient(m.z, m.id_a, nullptr));
        EXPECT(ZERO_ERR_ARGUMENT, zero_slice(m.z, 99, "value", &pointer, &first, &count));
        EXPECT(ZERO_ERR_ARGUMENT, zero_slice(m.z, m.id_a, "nonsense", &pointer, &first, &count));
        EXPECT(ZERO_ERR_ARGUMENT, zero_slice(m.z, m.id_a, nullptr, &pointer, &first, &count));
        EXPECT(ZERO_ERR_ARGUMENT, zero_release(m.z, 99));
        const int ids[2] = {m.id_a, 99};
        const void* gradients[2] = {buffer.data(), buffer.data()};
        EXPECT(ZERO_ERR_ARGUMENT, zero_reduce_list(m.z, 2, ids, gradients));
        EXPECT(ZERO_ERR_ARGUMENT, zero_reduce_list(m.z, -1, ids, gradients));
        EXPECT(ZERO_ERR_ARGUMENT, zero_reduce_list(m.z, 1, nullptr, gradients));
        EXPECT(ZERO_ERR_ARGUMENT, zero_reduce_list(m.z, 1, ids, nullptr));
        EXPECT(ZERO_ERR_ARGUMENT, zero_release_list(m.z, 1, nullptr));
        // Gathers, on all ranks at once: whether they meet depends on the stage and on whether the ranks share memory.
        std::int64_t sharing = 1;
        WORKS(zero_get_int(m.z, "ranks_sharing_values", &sharing));
        void* values[2] = {nullptr, nullptr};
        EXPECT(ZERO_ERR_ARGUMENT, zero_gather(m.z, 99, values));
        EXPECT(ZERO_ERR_ARGUMENT, zero_gather(m.z, m.id_a, nullptr));
        EXPECT(ZERO_ERR_ARGUMENT, zero_gather_list(m.z, 2, ids, values));
        EXPECT(ZERO_ERR_ARGUMENT, zero_gather_list(m.z, -2, ids, values));
        EXPECT(ZERO_ERR_ARGUMENT, zero_gather_list(m.z, 1, nullptr, values));
        EXPECT(ZERO_ERR_ARGUMENT, zero_prefetch(m.z, 99));
        if (stage == 3 && sharing == 1) {  // here they do
            EXPECT(ZERO_ERR_ARGUMENT, zero_gather(m.z, m.id_a, bad ? nullptr : values));
            EXPECT(ZERO_ERR_ARGUMENT, zero_gather_list(m.z, 1, bad ? nullptr : ids, values));
        }
        m.check_usable();
    }
    CHECK(quiet.heard().empty());
}

TEST_CASE("ranks that differ") {
    if (size_of() == 1) return;
    listening quiet;
    const bool other = last_rank();
    {
        model m(2);
        std::vector<float> buffer(15);
        EXPECT(ZERO_ERR_MISMATCH, zero_gather_to(m.z, other ? m.id_b : m.id_a, ZERO_EVERYONE, buffer.data()));
        EXPECT(ZERO_ERR_MISMATCH, other ? zero_publish(m.z) : zero_step(m.z));
        EXPECT(ZERO_ERR_MISMATCH, zero_fill(m.z, m.id_a, "constant", other ? 1 : 2, 0, 0));
        EXPECT(ZERO_ERR_MISMATCH, zero_save(m.z, "folder", other ? "one" : "two"));
        // One rank wants to leave: nothing is freed, and all can go on.
        EXPECT(ZERO_ERR_MISMATCH, other ? zero_finalize(&m.z) : zero_step(m.z));
        CHECK(m.z != nullptr);
        m.check_usable();
    }
    {
        zero_t z = nullptr;
        const std::int64_t dims[1] = {other ? 4 : 5};
        WORKS(zero_init(MPI_COMM_WORLD, nullptr, &z));
        WORKS(zero_register(z, "a", ZERO_F32, 1, dims, nullptr, 0, nullptr));
        EXPECT(ZERO_ERR_MISMATCH, zero_commit(z));
        WORKS(zero_finalize(&z));
    }
    CHECK(quiet.heard().empty());
}

TEST_CASE("options that are wrong") {
    listening quiet;
    model m(1);
    double real = 0;
    std::int64_t integer = 0;
    EXPECT(ZERO_ERR_CONFIG, zero_set_int(m.z, "optimizer.params.lrr", 1));
    CHECK(std::string(zero_last_error()).find("optimizer.params.lr") != std::string::npos);
    EXPECT(ZERO_ERR_CONFIG, zero_set_real(m.z, "gradient_clipping", -1));
    EXPECT(ZERO_ERR_CONFIG, zero_set_int(m.z, "libzero.end_window", 2));
    EXPECT(ZERO_ERR_CONFIG, zero_set_text(m.z, "optimizer.params.lr", "fast"));
    EXPECT(ZERO_ERR_ARGUMENT, zero_set_text(m.z, "optimizer.params.lr", nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_set_int(m.z, nullptr, 1));
    EXPECT(ZERO_ERR_ARGUMENT, zero_set_real(m.z, nullptr, 1));
    EXPECT(ZERO_ERR_ARGUMENT, zero_get_int(m.z, nullptr, &integer));
    EXPECT(ZERO_ERR_ARGUMENT, zero_get_int(m.z, "step", nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_get_real(m.z, "lr", nullptr));
    EXPECT(ZERO_ERR_CONFIG, zero_get_real(m.z, "no_such_reading", &real));
    EXPECT(ZERO_ERR_CONFIG, zero_get_int(m.z, "no_such_reading", &integer));
    EXPECT(ZERO_ERR_ARGUMENT, zero_estimate(nullptr, ZERO_F32, 0, 1, 10, 10, nullptr, nullptr, nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_estimate(nullptr, ZERO_F32, 1, 1, -1, 0, nullptr, nullptr, nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_estimate(nullptr, ZERO_F32, 1, 1, 10, 11, nullptr, nullptr, nullptr));
    EXPECT(ZERO_ERR_ARGUMENT, zero_estimate(nullptr, 0, 1, 1, 10, 10, nullptr, nullptr, nullptr));
    EXPECT(ZERO_ERR_CONFIG,
           zero_estimate("{\"zero_optimization\": 7}", ZERO_F32, 1, 1, 10, 10, nullptr, nullptr, nullptr));
    int somewhere = 0;
    EXPECT(ZERO_ERR_UNSUPPORTED, zero_set_stream(m.z, &somewhere));
    WORKS(zero_set_stream(m.z, nullptr));
    CHECK(quiet.heard().empty());
    m.check_usable();
}

TEST_CASE("the last error belongs to the thread") {
    int number = 0;
    EXPECT(ZERO_ERR_ARGUMENT, zero_count(nullptr, &number));
    const std::string mine = zero_last_error();
    std::string fresh = "unset";
    std::string others;
    std::thread([&] {
        fresh = zero_last_error();
        zero_estimate(nullptr, ZERO_F32, 0, 1, 10, 10, nullptr, nullptr, nullptr);
        others = zero_last_error();
    }).join();
    CHECK(fresh.empty());
    CHECK(others != mine);
    CHECK(zero_last_error() == mine);
}
