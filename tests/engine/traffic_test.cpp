// What a context sends, calls and makes, counted below MPI by the PMPI shim: bytes per rank, reductions per step, counts per
// call, objects left behind. Not here: the same of the verbs alone (tests/comm).
#include "support.hpp"

#include "partition/layout.hpp"
#include "support/pmpi_count.hpp"

using namespace engine_test;
using zero::dtype;

namespace {


// Counts of the calls in between.
class counted {
public:
    counted() { pmpi_count_reset(); }
    pmpi_counts so_far() const { return pmpi_count_get(); }
};

std::int64_t most_over_ranks(std::int64_t mine) {
    std::int64_t most = 0;
    MPI_Allreduce(&mine, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

// All that stages 1 to 3 may send in a step: every bucket's gradients and values, but for the own slice.
std::int64_t allowed_bytes(const zero::engine& z) {
    std::int64_t bytes = 0;
    for (const auto& b : z.space().buckets()) bytes += 2 * (size() - 1) * b.slice * zero::size_of(b.type);
    return bytes;
}

}  // namespace

TEST_CASE("a step of stages 1 to 3 sends N e (P-1)/P for gradients and as much for values") {
    for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16}) {
        for (const int stage : {1, 2, 3}) {
            for (const bool library_owned : {false, true}) {
                setup s;
                s.stage = stage;
                s.optimizer = sgd;
                zero::engine z(world(), json(s));
                const std::int64_t n = 32 * 2500 * size(), wanted = 2 * n * zero::size_of(type) * (size() - 1) / size();
                std::vector<std::byte> array(static_cast<std::size_t>(n * zero::size_of(type))), gradient(array.size());
                const int id = z.add_tensor("w", type, {&n, 1}, library_owned ? nullptr : array.data(), 0);
                z.commit();
                for (int step = 0; step < 3; ++step) {
                    const counted traffic;
                    z.gather(id);
                    z.release(id);
                    z.reduce(id, 1, gradient.data());
                    z.step();
                    const auto now = traffic.so_far();
                    INFO("stage " << stage << " " << name(type) << " step " << step);
                    CHECK(now.send_bytes == wanted);
                    CHECK(now.collective_bytes <= 4096);  // agreements and the norm
                    CHECK(now.world_uses == 0);
                }
            }
        }
    }
}

TEST_CASE("many tensors in small buckets send no more than that") {
    for (const int stage : {1, 2, 3}) {
        for (const bool library_owned : {false, true}) {
            setup s;
            s.stage = stage;
            s.bucket = 100;
            s.library_owned = library_owned;
            model m(s);
            for (int step = 0; step < 2; ++step) {
                const counted traffic;
                m.train(1);
                CHECK(traffic.so_far().send_bytes <= allowed_bytes(m.z));
            }
        }
    }
}

TEST_CASE("accumulation: stage 1 sends once per window, stages 2 and 3 every micro-step") {
    for (const int stage : {1, 2, 3}) {
        setup s;
        s.stage = stage;
        s.accumulation = 4;
        s.optimizer = sgd;
        zero::engine z(world(), json(s));
        const std::int64_t n = 16 * 100 * size(), once = n * 4 * (size() - 1) / size();
        const int id = z.add_tensor("w", dtype::f32, {&n, 1}, nullptr, 0);
        z.commit();
        const std::vector<float> gradient(static_cast<std::size_t>(n));
        for (int window = 0; window < 2; ++window) {
            z.gather(id);
            z.release(id);
            const counted traffic;
            for (int micro = 0; micro < 4; ++micro) {
                z.reduce(id, 1, gradient.data());
                z.step();
            }
            const std::int64_t values = stage == 3 ? 0 : once;
            CHECK(traffic.so_far().send_bytes == (stage == 1 ? once : 4 * once) + values);
        }
    }
}

TEST_CASE("S02: 64 tensors of 100 with buckets of 1600 make exactly 4 reductions a step") {
    if (size() == 1) return;  // nothing travels
    for (const int stage : {1, 2, 3}) {
        for (const bool overlap : {false, true}) {
            setup s;
            s.stage = stage;
            s.bucket = 1600;
            s.persistence = 1000;  // stage 3: whole tensors share buckets
            s.more_zero = std::string(R"(, "overlap_comm": )") + (overlap ? "true" : "false");
            zero::engine z(world(), json(s));
            const std::int64_t n = 100;
            for (int t = 0; t < 64; ++t) z.add_tensor("", dtype::f32, {&n, 1}, nullptr, 0);
            z.commit();
            const std::vector<float> gradient(100, 1.0F);
            for (int step = 0; step < 4; ++step) {
                const counted traffic;
                for (int t = 63; t >= 0; --t) z.reduce(step % 2 == 0 ? t : 63 - t, 1, gradient.data());
                z.step();
                CHECK(traffic.so_far().exchanges[0] == 4);
            }
        }
    }
}

TEST_CASE("B30: 2100 contexts come, train and go and leave no MPI object") {
    const int times = size() <= 2 ? 2100 : 100;  // MPI runs out of communicators near 2048; more ranks add only time
    const counted objects;
    for (int i = 0; i < times; ++i) {
        setup s;
        s.stage = i % 4;
        s.optimizer = sgd;
        zero::engine z(world(), json(s));
        const std::int64_t n = 4;
        const int id = z.add_tensor("w", dtype::f32, {&n, 1}, nullptr, 0);
        z.commit();
        z.gather(id);
        z.release(id);
        const float gradient[4] = {1, 1, 1, 1};
        z.reduce(id, 1, gradient);
        z.step();
        z.close();
    }
    const auto now = objects.so_far();
    CHECK(now.communicators == 0);
    CHECK(now.operations + now.types + now.windows + now.files + now.groups == 0);
    CHECK(now.world_uses == 0);
    if (size() > 1) CHECK(now.communicators_made >= times);
}

TEST_CASE("B50: no MPI call beyond the largest count, as many calls on every rank, the same bits") {
    for (const int stage : {0, 1, 2, 3}) {
        std::vector<float> expected;
        for (const bool hooked : {false, true}) {
            setup s;
            s.stage = stage;
            s.optimizer = sgd;
            s.more = hooked ? R"(, "libzero": {"largest_count": 7})" : "";
            zero::engine z(world(), json(s));
            const std::int64_t big = 100, one = 1;
            const int a = z.add_tensor("a", dtype::f32, {&big, 1}, nullptr, 0), b = z.add_tensor("b", dtype::f32, {&one, 1}, nullptr, 0);
            const counted traffic;
            z.commit();
            const std::vector<float> gradient(100, static_cast<float>(rank()));
            for (const int id : {a, b}) {
                z.fill(id, "constant", 0, 0, 0);
                z.gather(id);
                z.release(id);
                z.reduce(id, 1, gradient.data());
            }
            z.step();
            std::vector<float> p(101), root(100), state(100);
            z.gather_to(a, -1, p.data());
            z.gather_to(b, -1, p.data() + 100);
            z.gather_to(a, size() - 1, rank() == size() - 1 ? root.data() : nullptr);
            z.gather_state(a, "value", 0, rank() == 0 ? state.data() : nullptr);
            z.scatter(a, 0, rank() == 0 ? p.data() : nullptr);
            z.scatter_state(a, "value", -1, p.data());
            z.publish();
            CHECK(z.dot("value", "value", -1) == 101 * 0.25 * (size() - 1) * (size() - 1));
            z.report();
            z.wait();
            const auto now = traffic.so_far();
            CHECK(p == std::vector<float>(101, -0.5F * static_cast<float>(size() - 1)));
            if (rank() == size() - 1) CHECK(root == std::vector<float>(p.begin(), p.begin() + 100));
            if (rank() == 0) CHECK(state == std::vector<float>(p.begin(), p.begin() + 100));
            if (hooked) CHECK(now.largest_count <= 7);
            CHECK(most_over_ranks(now.collectives) == now.collectives);
            CHECK(most_over_ranks(-now.collectives) == -now.collectives);
            if (hooked) CHECK(p == expected);
            expected = p;
            z.close();
        }
    }
}
