// Edits of gathered values, where ranks share memory as where they do not: in stage 3 and on the way to zero_scatter they are
// each rank's own. Every case runs both ways.
#include <algorithm>
#include <cstdlib>

#include "support.hpp"

using namespace engine_test;
using zero::dtype;

namespace {

// Fp32 tensors of the library; "a" and "b" lie in one page, "large" spans many. Values: initial().
struct edited {
    edited(int stage, bool shared, std::int64_t persistence = 0) : z(world(), text(stage, shared, persistence)) {
        for (std::size_t t = 0; t < 3; ++t) z.add_tensor(std::string("abl", t, 1), dtype::f32, {&counts[t], 1}, nullptr, 0);
        z.commit();
        for (std::size_t t = 0; t < 3; ++t) {
            start[t] = initial(t);
            z.scatter(static_cast<int>(t), 0, rank() == 0 ? start[t].data() : nullptr);
        }
    }
    static std::string text(int stage, bool shared, std::int64_t persistence) {
        setup s;
        s.stage = stage;
        s.optimizer = sgd;
        s.persistence = persistence;
        s.more = std::string(R"(, "libzero": {"stale_check": false, "node_shared": )") + (shared ? "true}" : "false}");
        return json(s);
    }
    static std::vector<float> initial(std::size_t t) {
        std::vector<float> all;
        for (std::int64_t i = 0; i < counts[t]; ++i) all.push_back(static_cast<float>(i % 97) + 100.F * static_cast<float>(t + 1));
        return all;
    }
    float* gather(int id) { return static_cast<float*>(z.gather(id)); }
    bool holds(int id, const float* whole) const { return std::equal(start[static_cast<std::size_t>(id)].begin(), start[static_cast<std::size_t>(id)].end(), whole); }
    bool node_holds(int id) {
        std::vector<float> all(start[static_cast<std::size_t>(id)].size());
        z.gather_to(id, -1, all.data());
        return holds(id, all.data());
    }
    // Every value falls by 1 (SGD, lr 1), and so does what is expected.
    void step() {
        for (int id = 0; id < 3; ++id) {
            const std::vector<float> ones(start[static_cast<std::size_t>(id)].size(), 1.F);
            z.reduce(id, 1, ones.data());
            for (float& one : start[static_cast<std::size_t>(id)]) one -= 1;
        }
        z.step();
    }
    static constexpr std::int64_t counts[3] = {100, 60, 30'000};
    static constexpr int a = 0, b = 1, large = 2;
    zero::engine z;
    std::vector<float> start[3];
};

// What this rank scribbles; ranks differ.
void scribble(float* to, std::int64_t count) { std::fill_n(to, count, -1000.F - static_cast<float>(rank())); }
bool is_scribbled(const float* from, std::int64_t count) {
    return std::all_of(from, from + count, [](float x) { return x == -1000.F - static_cast<float>(rank()); });
}

}  // namespace

TEST_CASE("stage 3: what is written into a gathered copy stays there and is gone at the next gather") {
    const bool shared = GENERATE(true, false);
    edited m(3, shared);
    for (const int id : {m.a, m.b, m.large}) {
        float* whole = m.gather(id);
        CHECK(m.holds(id, whole));
        scribble(whole, m.counts[id]);
        CHECK(m.node_holds(id));
        CHECK(is_scribbled(whole, m.counts[id]));
        CHECK(m.gather(id) == whole);  // counted: the same copy, as it is
        CHECK(is_scribbled(whole, m.counts[id]));
        m.z.release(id);
        m.z.release(id);
        CHECK(m.holds(id, m.gather(id)));
        m.z.release(id);
    }
}

TEST_CASE("stage 3: neighbours in one page are edited apart") {
    const bool shared = GENERATE(true, false);
    edited m(3, shared);
    float *a = m.gather(m.a), *b = m.gather(m.b);
    scribble(a, m.counts[m.a]);
    CHECK(m.holds(m.b, b));
    m.z.release(m.b);
    b = m.gather(m.b);  // while "a" is held and edited
    CHECK(m.holds(m.b, b));
    CHECK(is_scribbled(a, m.counts[m.a]));
    scribble(b, m.counts[m.b]);
    m.z.release(m.b);
    b = m.gather(m.b);
    CHECK(m.holds(m.b, b));
    CHECK(is_scribbled(a, m.counts[m.a]));
    m.z.release(m.a);
    a = m.gather(m.a);  // while "b" is held
    CHECK(m.holds(m.a, a));
    CHECK(m.holds(m.b, b));
    m.z.release(m.a);
    m.z.release(m.b);
}

TEST_CASE("stage 3: an edit that lasts over an update is gone, and so is one after the release") {
    const bool shared = GENERATE(true, false);
    edited m(3, shared);
    float *a = m.gather(m.a), *large = m.gather(m.large);
    scribble(a, m.counts[m.a]);
    scribble(large + 5'000, 20'000);
    m.step();
    CHECK(m.holds(m.a, a));  // copies that are held over an update show the new values
    CHECK(m.holds(m.large, large));
    m.z.release(m.a);
    m.z.release(m.large);
    const bool looks = shared && (size() == 1 || m.z.get_integer("ranks_sharing_values") > 1);
    if (looks) {  // else the copy's memory is gone
        scribble(a, m.counts[m.a]);
        scribble(large, m.counts[m.large]);
        CHECK(m.node_holds(m.a));
        CHECK(m.node_holds(m.large));
    }
    float* b = m.gather(m.b);
    CHECK(m.holds(m.b, b));
    CHECK(m.holds(m.a, m.gather(m.a)));
    CHECK(m.holds(m.large, m.gather(m.large)));
    for (const int id : {m.a, m.b, m.large}) m.z.release(id);
    m.step();
    for (const int id : {m.large, m.b, m.a}) {
        CHECK(m.holds(id, m.gather(id)));
        m.z.release(id);
        CHECK(m.node_holds(id));
    }
}

// One rank holds and edits, the others do not gather at all: possible where gathers are looks.
TEST_CASE("stage 3 on one node: a rank that gathers alone disturbs nobody") {
    edited m(3, true);
    if (m.z.get_integer("ranks_sharing_values") == 1 && size() > 1) return;
    float* a = nullptr;
    if (rank() == 0) {
        a = m.gather(m.a);
        scribble(a, m.counts[m.a]);
    }
    m.step();
    if (rank() == 0) {
        CHECK(m.holds(m.a, a));
        scribble(a, m.counts[m.a]);
    } else {
        CHECK(m.holds(m.a, m.gather(m.a)));
        m.z.release(m.a);
    }
    m.step();
    if (rank() == 0) m.z.release(m.a);
    for (const int id : {m.a, m.b, m.large}) CHECK(m.node_holds(id));
}

// Read-only unless followed by zero_scatter: so an edit and zero_scatter of that very pointer are new values, in every stage.
TEST_CASE("an edit becomes the values by zero_scatter of the gathered pointer") {
    const bool shared = GENERATE(true, false);
    const std::int64_t persistence = GENERATE(0, 70);
    const int stage = GENERATE(0, 1, 2, 3), root = GENERATE(-1, 0);
    edited m(stage, shared, persistence);
    for (const int id : {m.a, m.b, m.large}) {
        CAPTURE(stage, root, shared, persistence, id);
        float* whole = m.gather(id);
        for (std::int64_t i = 0; i < m.counts[id]; ++i) whole[i] *= 2;  // on every rank, as one program does
        for (float& one : m.start[id]) one *= 2;
        m.z.scatter(id, root, whole);
        CHECK(m.holds(id, whole));
        m.z.release(id);
        CHECK(m.node_holds(id));
    }
    m.step();
    for (const int id : {m.a, m.b, m.large}) CHECK(m.node_holds(id));
}

TEST_CASE("a scatter shows in what neighbours hold, and takes no edit of theirs with it") {
    const bool shared = GENERATE(true, false);
    edited m(3, shared);
    float *a = m.gather(m.a), *b = m.gather(m.b);
    const std::vector<float> fresh(static_cast<std::size_t>(m.counts[m.a]), 5.F);
    scribble(b, m.counts[m.b]);
    m.z.scatter(m.a, size() - 1, rank() == size() - 1 ? fresh.data() : nullptr);
    m.start[m.a] = fresh;
    CHECK(m.holds(m.a, a));
    CHECK(m.holds(m.b, b));  // open copies are renewed
    m.z.release(m.a);
    m.z.release(m.b);
    CHECK(m.node_holds(m.a));
    CHECK(m.node_holds(m.b));
}
