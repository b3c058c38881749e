// One rank fails in a collective call, by a bad argument or for want of memory: every rank gets the same code and the
// failing rank's sentence, nothing hangs, and all can go on. Not here: wrong arguments on all ranks (misuse_test.cpp).
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>

#include "support.hpp"

using namespace zero_test;

namespace {

// The library's small buffers come from aligned_alloc (src/device); this one gives out when it is told to.
long allocations_left = -1;  // -1: as many as wanted

}  // namespace

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
    if (allocations_left == 0) {
        errno = ENOMEM;
        return nullptr;
    }
    if (allocations_left > 0) --allocations_left;
    void* memory = nullptr;
    return posix_memalign(&memory, alignment, size) == 0 ? memory : nullptr;
}

namespace {

std::string without_rank(const std::string& text) {
    const std::string mark = "rank " + std::to_string(size_of() - 1) + ": ";
    return text.rfind(mark, 0) == 0 ? text.substr(mark.size()) : text;
}

int lowest(int mine) {
    int all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}
int highest(int mine) {
    return -lowest(-mine);
}

// The last rank's sentence, on all ranks.
std::string last_ranks(const std::string& mine) {
    char text[1024] = {};
    mine.copy(text, sizeof text - 1);
    MPI_Bcast(text, sizeof text, MPI_CHAR, size_of() - 1, MPI_COMM_WORLD);
    return text;
}

// What the call answered is the same everywhere, and so is what it said, up to whose it is. Returns the code.
int same_everywhere(const char* what, int code) {
    const std::string said = code == ZERO_OK ? "" : zero_last_error();
    INFO(what << " gave " << zero_error_name(code) << ": " << said);
    CHECK(lowest(code) == highest(code));
    CHECK(without_rank(said) == without_rank(last_ranks(said)));
    return code;
}

#define FAILS(expected, call) CHECK(same_everywhere(#call, (call)) == (expected))

}  // namespace

TEST_CASE("a bad argument on the last rank, call by call") {
    listening quiet;
    const bool bad = last_rank();
    zero_t z = nullptr;
    FAILS(ZERO_ERR_ARGUMENT, zero_init(MPI_COMM_WORLD, nullptr, bad ? nullptr : &z));
    CHECK(z == nullptr);
    FAILS(ZERO_ERR_CONFIG, zero_init(MPI_COMM_WORLD, bad ? "{\"zero_optimization\": {\"stage\": 7}}" : "{}", &z));
    FAILS(ZERO_ERR_IO, zero_init(MPI_COMM_WORLD, bad ? "/no/such/file" : "", &z));
    {
        model m(1, false);
        FAILS(ZERO_ERR_ARGUMENT, zero_set_model_comm(m.z, bad ? MPI_COMM_NULL : MPI_COMM_SELF));
        WORKS(zero_commit(m.z));
        m.check_usable();
    }
    for (const int stage : {0, 1, 2, 3}) {
        model m(stage, true, ", \"gradient_accumulation_steps\": 2");
        std::vector<double> buffer(15);
        const void* from = buffer.data();
        double result = 0;
        int flag = 0;
        char text[16384];
        FAILS(ZERO_ERR_ARGUMENT, zero_fill(m.z, bad ? 9 : m.id_b, "constant", 1, 0, 0));
        FAILS(ZERO_ERR_ARGUMENT, zero_fill(m.z, m.id_b, "uniform", bad ? 2 : 0, 1, 0));
        FAILS(ZERO_ERR_ARGUMENT, zero_fill(m.z, m.id_b, "normal", 0, bad ? -1 : 1, 0));
        FAILS(ZERO_ERR_ARGUMENT, zero_gather_to(m.z, m.id_b, ZERO_EVERYONE, bad ? nullptr : buffer.data()));
        FAILS(ZERO_ERR_ARGUMENT, zero_scatter(m.z, m.id_b, ZERO_EVERYONE, bad ? nullptr : from));
        FAILS(ZERO_ERR_ARGUMENT, zero_scatter(m.z, m.id_b, size_of() - 1, bad ? nullptr : from));
        FAILS(ZERO_ERR_ARGUMENT, zero_gather_state(m.z, m.id_b, bad ? "no" : "value", ZERO_EVERYONE, buffer.data()));
        FAILS(ZERO_ERR_ARGUMENT, zero_scatter_state(m.z, m.id_b, bad ? "no" : "value", ZERO_EVERYONE, from));
        FAILS(ZERO_ERR_ARGUMENT, zero_dot(m.z, "value", bad ? "no" : "value", -1, &result));
        FAILS(ZERO_ERR_ARGUMENT, zero_should_stop(m.z, bad ? nullptr : &flag));
        FAILS(ZERO_ERR_ARGUMENT, zero_report(m.z, bad ? nullptr : text, sizeof text, nullptr));
        FAILS(ZERO_ERR_ARGUMENT, zero_report(m.z, text, bad ? 5 : sizeof text, nullptr));  // cut, and nobody would know
        std::int64_t sharing = 1;
        WORKS(zero_get_int(m.z, "ranks_sharing_values", &sharing));
        if (stage == 3 && sharing == 1) {  // gathers meet
            void* whole[2] = {nullptr, nullptr};
            const int ids[2] = {m.id_a, bad ? 9 : m.id_b};
            FAILS(ZERO_ERR_ARGUMENT, zero_gather(m.z, ids[1], whole));
            FAILS(ZERO_ERR_ARGUMENT, zero_prefetch(m.z, ids[1]));
            FAILS(ZERO_ERR_ARGUMENT, zero_gather_list(m.z, 2, ids, whole));
            FAILS(ZERO_ERR_ARGUMENT, zero_gather_list(m.z, bad ? -1 : 0, ids, whole));
            EXPECT(ZERO_ERR_STATE, zero_release(m.z, m.id_a));  // nothing was gathered by them
        }
        // A wrong state of one rank: it alone has begun a micro-step.
        if (bad) WORKS(zero_reduce(m.z, m.id_b, m.gradient_b.data()));
        FAILS(ZERO_ERR_STATE, zero_publish(m.z));
        // Another call on one rank.
        if (size_of() > 1) FAILS(ZERO_ERR_MISMATCH, bad ? zero_finish(m.z) : zero_wait(m.z));
        if (size_of() > 1) FAILS(ZERO_ERR_MISMATCH, bad ? zero_wait(m.z) : zero_finish(m.z));
        WORKS(zero_wait(m.z));
        WORKS(zero_step(m.z));
        WORKS(zero_step(m.z));
        WORKS(zero_gather_to(m.z, m.id_b, ZERO_EVERYONE, buffer.data()));
        CHECK(buffer[6] == Approx(-0.5 / size_of()));
        // One rank has another option.
        if (bad) WORKS(zero_set_real(m.z, "optimizer.params.lr", 7));
        if (size_of() > 1) EXPECT(ZERO_ERR_MISMATCH, zero_step(m.z));
        if (size_of() > 1) FAILS(ZERO_ERR_MISMATCH, zero_finish(m.z));
        WORKS(zero_set_real(m.z, "optimizer.params.lr", 1));
        WORKS(zero_step(m.z));
        WORKS(zero_finalize(&m.z));
    }
    CHECK(quiet.heard().empty());
}

TEST_CASE("zero_finish when one rank alone trained a stale copy") {
    model m(3, false);
    WORKS(zero_set_int(m.z, "libzero.stale_check", 1));
    EXPECT(ZERO_ERR_STATE, zero_finish(m.z));  // all are too early
    EXPECT(ZERO_ERR_STATE, zero_wait(m.z));
    WORKS(zero_commit(m.z));
    if (last_rank()) WORKS(zero_reduce(m.z, m.id_b, m.gradient_b.data()));
    FAILS(ZERO_ERR_STATE, zero_finish(m.z));
    std::vector<double> buffer(7);
    WORKS(zero_gather_to(m.z, m.id_b, ZERO_EVERYONE, buffer.data()));
    WORKS(zero_finish(m.z));
    EXPECT(ZERO_ERR_STATE, zero_finish(m.z));
    WORKS(zero_wait(m.z));
    WORKS(zero_step(m.z));
    WORKS(zero_gather_to(m.z, m.id_b, ZERO_EVERYONE, buffer.data()));
    CHECK(buffer[6] == Approx(-1.0 / size_of()));
}

TEST_CASE("zero_forecast is local: a rank that asks wrongly, or not at all, is alone with it") {
    for (const int stage : {0, 1, 2, 3}) {
        model m(stage, false);
        std::int64_t bytes = -1, peak = -1, taken = 0;
        CHECK(zero_forecast(m.z, last_rank() ? 0 : ZERO_PLACE_HOST, &bytes, &peak) ==
              (last_rank() ? ZERO_ERR_ARGUMENT : ZERO_OK));
        CHECK((bytes == -1) == last_rank());
        if (last_rank()) {
            EXPECT(ZERO_ERR_ARGUMENT, zero_forecast(m.z, 4, &bytes, &peak));
            WORKS(zero_set_int(m.z, "zero_optimization.stage", 1 + stage % 3));  // options that differ are for commit
            WORKS(zero_forecast(m.z, ZERO_PLACE_HOST, nullptr, nullptr));
            WORKS(zero_set_int(m.z, "zero_optimization.stage", stage));
            WORKS(zero_forecast(m.z, ZERO_PLACE_HOST, &bytes, &peak));
        }
        WORKS(zero_set_int(m.z, "zero_optimization.stage", stage));  // on all, so that the options are the same text
        WORKS(zero_commit(m.z));
        WORKS(zero_memory(m.z, ZERO_PLACE_HOST, &taken, nullptr));
        CHECK(taken == bytes);
        CHECK(zero_forecast(m.z, ZERO_PLACE_HOST, &bytes, &peak) == ZERO_ERR_STATE);
        CHECK(bytes == taken);
        m.check_usable();
    }
}

TEST_CASE("with enable_sanity_checks gathers agree in every stage") {
    const bool bad = last_rank();
    for (const int stage : {0, 1, 2, 3}) {
        model m(stage, false);
        WORKS(zero_set_int(m.z, "zero_optimization.enable_sanity_checks", 1));
        WORKS(zero_commit(m.z));
        void* whole = nullptr;
        const int id = m.id_a;
        FAILS(ZERO_ERR_ARGUMENT, zero_gather(m.z, bad ? 9 : m.id_a, &whole));
        FAILS(ZERO_ERR_ARGUMENT, zero_gather(m.z, m.id_a, bad ? nullptr : &whole));
        FAILS(ZERO_ERR_ARGUMENT, zero_prefetch(m.z, bad ? -1 : m.id_a));
        FAILS(ZERO_ERR_ARGUMENT, zero_gather_list(m.z, 1, bad ? nullptr : &id, &whole));
        m.check_usable();
    }
}

TEST_CASE("ranks with other frozen groups, while gradients are under way") {
    if (size_of() == 1) return;
    for (const int stage : {0, 1, 2, 3}) {
        for (const bool set_back : {false, true}) {
            model m(stage);
            if (last_rank()) WORKS(zero_set_int(m.z, "groups.0.frozen", 1));
            WORKS(zero_reduce(m.z, m.id_a, m.gradient_a.data()));
            WORKS(zero_reduce(m.z, m.id_b, m.gradient_b.data()));
            EXPECT(ZERO_ERR_MISMATCH, zero_step(m.z));
            if (set_back) {  // the options are equal again (said on all ranks: spelled out is another text), the window is not
                WORKS(zero_set_int(m.z, "groups.0.frozen", 0));
                EXPECT(ZERO_ERR_MISMATCH, zero_step(m.z));
            }
            WORKS(zero_finalize(&m.z));
        }
    }
}

TEST_CASE("the last rank runs out of memory, at every place where it can") {
    listening quiet;
    for (const int round : {0, 1, 2, 3, 4, 5, 6, 7}) {
        const int stage = round % 4;
        const bool parts = round >= 4;  // zero_finish, then zero_step
        const bool bad = last_rank();
        const auto give = [&](long count) { allocations_left = bad ? count : -1; };
        // Calls until one is through: the k-th allocation of each fails, k = 0, 1, ...
        const auto starve = [&](const char* what, const std::function<int()>& call) {
            for (int k = 0; k < 40; ++k) {
                give(k);
                const int code = call();
                give(-1);
                if (same_everywhere(what, code) == ZERO_OK) return;
                CHECK(code == ZERO_ERR_MEMORY);
            }
            FAIL("never through: " << what);
        };
        model m(stage, false);
        starve("zero_commit", [&] { return zero_commit(m.z); });
        m.check_usable();
        std::vector<double> buffer(7, 4.0);
        void* whole = nullptr;
        starve("zero_scatter", [&] { return zero_scatter(m.z, m.id_b, 0, buffer.data()); });
        starve("zero_scatter_state", [&] { return zero_scatter_state(m.z, m.id_b, "value", 0, buffer.data()); });
        starve("zero_fill", [&] { return zero_fill(m.z, m.id_b, "constant", 1, 0, 0); });
        starve("zero_gather", [&] { return zero_gather(m.z, m.id_b, &whole); });
        WORKS(zero_release(m.z, m.id_b));
        const int ids[2] = {m.id_a, m.id_b};
        void* both[2] = {nullptr, nullptr};
        starve("zero_gather_list", [&] { return zero_gather_list(m.z, 2, ids, both); });
        WORKS(zero_release_list(m.z, 2, ids));
        starve("zero_gather_to", [&] { return zero_gather_to(m.z, m.id_b, ZERO_EVERYONE, buffer.data()); });
        m.check_usable();
        std::vector<double> moved(7);
        WORKS(zero_gather_to(m.z, m.id_b, ZERO_EVERYONE, buffer.data()));
        // Handed over twice, so that the bucket goes twice, with a copy open elsewhere.
        WORKS(zero_gather(m.z, m.id_a, &whole));
        if (bad) WORKS(zero_release(m.z, m.id_a));
        WORKS(zero_reduce(m.z, m.id_b, m.gradient_b.data()));
        WORKS(zero_reduce(m.z, m.id_a, m.gradient_a.data()));
        if (rank_of() == 0) WORKS(zero_reduce(m.z, m.id_b, m.gradient_b.data()));
        if (parts) {
            starve("zero_finish", [&] { return zero_finish(m.z); });
            starve("zero_wait", [&] { return zero_wait(m.z); });
        }
        starve("zero_step", [&] { return zero_step(m.z); });
        WORKS(zero_gather_to(m.z, m.id_b, ZERO_EVERYONE, moved.data()));
        CHECK(moved[6] == Approx(buffer[6] - 1 - 1.0 / size_of()));  // nothing was lost on the way
        if (!bad) WORKS(zero_release(m.z, m.id_a));
        m.check_usable();
        WORKS(zero_finalize(&m.z));
    }
    CHECK(quiet.heard().empty());
}
