// Several nodes on one machine (libzero.node_size): values once per node, forecasts, and what crosses between the nodes,
// counted below MPI, against one flat level. The bits: the other tests of the engine, run with that option (CMakeLists.txt).
#include <algorithm>

#include "support.hpp"
#include "support/pmpi_count.hpp"

using namespace engine_test;
using zero::dtype;

namespace {

int per_node() { return size() == 8 ? 4 : 2; }
bool equal_nodes() { return size() % per_node() == 0 && size() > per_node(); }

setup nodes_of(int stage, dtype type, bool levels) {
    setup s;
    s.stage = stage;
    s.type = type;
    s.more = R"(, "libzero": {"node_size": )" + std::to_string(per_node()) + R"(, "node_shared": )" + (levels ? "true}" : "false}");
    return s;
}

std::int64_t sum_over_node(std::int64_t mine) {
    MPI_Comm node = MPI_COMM_NULL;
    PMPI_Comm_split(MPI_COMM_WORLD, rank() / per_node(), rank(), &node);
    std::int64_t all = 0;
    PMPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, node);
    PMPI_Comm_free(&node);
    return all;
}

}  // namespace

TEST_CASE("a step crosses the network once per node: N e for gradients, N e for values, where the flat way takes L times that") {
    if (!equal_nodes()) return;
    pmpi_count_nodes_of(per_node());
    const std::int64_t nodes = size() / per_node(), n = std::int64_t{32} * 1100 * size();
    for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16}) {
        for (const int stage : {1, 2, 3}) {
            for (const bool library_owned : {false, true}) {
                for (const bool levels : {false, true}) {
                    zero::engine z(world(), json(nodes_of(stage, type, levels)));
                    std::vector<std::byte> array(static_cast<std::size_t>(n * zero::size_of(type))), gradient(array.size());
                    const int id = z.add_tensor("w", type, {&n, 1}, library_owned ? nullptr : array.data(), 0);
                    z.commit();
                    for (int step = 0; step < 2; ++step) {
                        pmpi_count_reset();
                        const std::int64_t before = z.get_integer("sent.off_node_bytes");
                        z.gather(id);
                        z.release(id);
                        z.reduce(id, 1, gradient.data());
                        z.step();
                        const auto now = pmpi_count_get();
                        INFO("stage " << stage << " " << name(type) << (levels ? " two levels" : " flat") << " library " << library_owned);
                        CHECK(z.get_integer("sent.off_node_bytes") - before == now.off_node_bytes);
                        // Sums of a node travel in the sum type, contributions in their own.
                        const std::int64_t gradients = levels ? zero::size_of(zero::sum_type(type)) : zero::size_of(type);
                        const std::int64_t once = n * (gradients + zero::size_of(type)) / nodes * (nodes - 1);
                        CHECK(sum_over_node(now.off_node_bytes) == once * (levels ? 1 : per_node()));
                        CHECK(now.collective_bytes <= 8192);  // agreements and the norm
                    }
                }
            }
        }
    }
    pmpi_count_nodes_of(0);
}

TEST_CASE("values of stages 0 to 2 exist once per node; ledger, forecast and estimate say so") {
    for (const int stage : {0, 1, 2, 3}) {
        setup s = nodes_of(stage, dtype::bf16, true);
        zero::engine z(world(), json(s));
        const std::int64_t n = std::int64_t{64} * 500 * size();
        z.add_tensor("w", dtype::bf16, {&n, 1}, nullptr, 0);
        const std::int64_t forecast = z.forecast(zero::place::host).first;
        z.commit();
        const bool once = equal_nodes() && stage < 3;
        CHECK(z.memory(zero::place::host).first == forecast);
        CHECK(z.get_integer("ranks_sharing_values") == (once ? per_node() : size() <= per_node() ? size() : 1));
        if (!equal_nodes()) continue;
        CHECK(z.get_integer("nodes") == size() / per_node());
        CHECK(z.get_integer("memory.parameters") == (stage == 3 ? 2 * n / size() : once ? 2 * n / per_node() : 2 * n));
        const auto guess = zero::estimate_memory(json(s), dtype::bf16, size(), size() / per_node(), n, n);
        CHECK(guess.host == z.get_integer("memory.parameters") + z.get_integer("memory.gradients") + z.get_integer("memory.master") + z.get_integer("memory.states"));
    }
}

// Values that exist once per node change by the root's node first, then by its peers on the others.
TEST_CASE("values scattered by any rank, or filled, are the same on every node") {
    for (const int stage : {0, 1, 2, 3}) {
        zero::engine z(world(), json(nodes_of(stage, dtype::f32, true)));
        const std::int64_t n = 5'000;
        const int id = z.add_tensor("w", dtype::f32, {&n, 1}, nullptr, 0);
        z.commit();
        const auto everywhere = [&](const std::vector<float>& expected) {
            std::vector<float> all(expected.size());
            z.gather_to(id, -1, all.data());
            const auto* whole = static_cast<const float*>(z.gather(id));
            const bool right = all == expected && std::equal(expected.begin(), expected.end(), whole);
            z.release(id);
            return right;
        };
        for (int root = -1; root < size(); ++root) {
            const std::vector<float> values(static_cast<std::size_t>(n), static_cast<float>(root) + 3.5F);
            z.scatter(id, root, root < 0 || root == rank() ? values.data() : nullptr);
            CHECK(everywhere(values));
        }
        z.fill(id, "constant", 2.25, 0, 0);
        CHECK(everywhere(std::vector<float>(static_cast<std::size_t>(n), 2.25F)));
    }
}
