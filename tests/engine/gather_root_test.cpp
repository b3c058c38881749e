// B32: a gather to one root costs the root the whole and everybody else a chunk. Measured as the kernel sees it, so alone in
// its process. Not here: whether the values are right in all their forms (cases_test.cpp, parts_test.cpp).
#include <malloc.h>

#include <fstream>

#include "support.hpp"

using namespace engine_test;
using zero::dtype;

namespace {

constexpr std::int64_t mebibyte = 1 << 20;

std::int64_t status_bytes(const std::string& key) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        std::int64_t kilobytes = 0;
        if (word == key && status >> kilobytes) return kilobytes * 1024;
    }
    return -1;
}

// How much the resident memory rose above its present size during the work, at its highest.
template <typename Work>
std::int64_t growth_of(Work&& work) {
    malloc_trim(0);  // what earlier calls freed must not hide what this one takes
    std::ofstream("/proc/self/clear_refs") << "5";  // the high-water mark starts anew
    const std::int64_t before = status_bytes("VmRSS:");
    work();
    return status_bytes("VmHWM:") - before;
}

}  // namespace

TEST_CASE("B32: the root grows by the whole, the others by a chunk at most") {
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);  // fixed: else glibc keeps the large blocks that were freed
    setup s;
    s.stage = 3;
    s.optimizer = R"("type": "SGD", "params": {"lr": 1})";
    zero::engine z(world(), json(s));
    const std::int64_t all = 4'000'000, part = 400'000;
    const int big = z.add_tensor("big", dtype::f32, {&all, 1}, nullptr, 0);
    std::vector<int> ids;
    for (int t = 0; t < 10; ++t) ids.push_back(z.add_tensor("", dtype::f32, {&part, 1}, nullptr, 0));
    z.commit();
    z.fill(big, "uniform", 1, 2, 3);
    for (const int id : ids) z.fill(id, "constant", id, 0, 0);

    std::vector<float> everywhere(static_cast<std::size_t>(all));
    z.gather_to(big, -1, everywhere.data());  // also warms up what MPI keeps
    z.gather_to(ids[3], 0, everywhere.data());
    z.gather_to(big, -1, everywhere.data());
    const bool root = rank() == 0;
    std::vector<float> whole;
    const std::int64_t growth = growth_of([&] {
        if (root) whole.resize(static_cast<std::size_t>(all));
        z.gather_to(big, 0, root ? whole.data() : nullptr);
    });
    INFO("grew by " << growth << " bytes");
    if (root) {
        CHECK(growth >= all * 4 - mebibyte);
        CHECK(growth <= all * 4 + 4 * mebibyte);
        CHECK(whole == everywhere);
    } else {
        CHECK(growth <= 4 * mebibyte);
    }

    const std::int64_t one = growth_of([&] { z.gather_to(ids[7], 0, root ? whole.data() : nullptr); });
    INFO("grew by " << one << " bytes");
    CHECK(one <= 4 * mebibyte);
    if (root) CHECK(std::vector<float>(whole.begin(), whole.begin() + part) == std::vector<float>(400'000, static_cast<float>(ids[7])));
    const std::int64_t state = growth_of([&] { z.gather_state(big, "value", 0, root ? whole.data() : nullptr); });
    INFO("grew by " << state << " bytes");
    CHECK(state <= 4 * mebibyte);
    if (root) CHECK(whole == everywhere);
}
