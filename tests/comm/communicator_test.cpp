// Making and freeing communicators, nodes, and the small blocking verbs.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "comm/ranks.hpp"
#include "support/pmpi_count.hpp"

using namespace zero;
using namespace ranks;

TEST_CASE("sums and maxima over the ranks", "[mpi]") {
    const everyone all;
    const std::int64_t largest_count = GENERATE(0, 7);
    const auto talk = all.talk({0, largest_count});
    std::vector<std::int64_t> sum, most;
    for (int i = 0; i < 20; ++i) {
        sum.push_back((std::int64_t{1} << 40) * i + talk->rank());
        most.push_back(i % 2 == 0 ? talk->rank() : -talk->rank());
    }
    pmpi_count_reset();
    talk->all_reduce(sum, comm::combine::sum);
    CHECK(pmpi_count_get().reductions == (largest_count == 0 ? 1 : 3));
    CHECK(pmpi_count_get().world_uses == 0);
    talk->all_reduce(most, comm::combine::maximum);
    const std::int64_t ranks = talk->size();
    for (int i = 0; i < 20; ++i) {
        CHECK(sum[static_cast<std::size_t>(i)] == (std::int64_t{1} << 40) * i * ranks + ranks * (ranks - 1) / 2);
        CHECK(most[static_cast<std::size_t>(i)] == (i % 2 == 0 ? ranks - 1 : 0));
    }
}

TEST_CASE("broadcasts and texts from every root") {
    const everyone all;
    const std::int64_t largest_count = GENERATE(0, 7);
    const auto talk = all.talk({0, largest_count});
    pmpi_count_reset();
    for (int root = 0; root < talk->size(); ++root) {
        std::vector<int> data(50, talk->rank() == root ? root + 7 : -1);
        talk->broadcast(data.data(), 50 * 4, root);
        CHECK(data == std::vector<int>(50, root + 7));
        const std::string long_text(static_cast<std::size_t>(root) * 100, 'x');
        CHECK(talk->broadcast(talk->rank() == root ? long_text : "other", root) == long_text);
        const auto texts = talk->gather(std::string(static_cast<std::size_t>(talk->rank()) * 9, 'r'), root);
        REQUIRE(texts.size() == static_cast<std::size_t>(talk->rank() == root ? talk->size() : 0));
        for (std::size_t rank = 0; rank < texts.size(); ++rank) CHECK(texts[rank] == std::string(rank * 9, 'r'));
    }
    if (largest_count > 0) CHECK(pmpi_count_get().largest_count <= 7);
}

// The wait of one rank ends by bad news before the others have come: what MPI still does then is done to nobody's memory.
TEST_CASE("collective calls that bad news end complete without the caller", "[mpi]") {
    const everyone all;
    const auto talk = all.talk();
    if (talk->size() == 1) return;
    const bool hasty = talk->rank() == talk->size() - 1;
    const auto meet = [&](const auto& call) {
        if (hasty) {
            talk->meanwhile([]() -> bool { fail(code::mpi, "bad news for a test"); });
            CHECK(code_of(call) == code::mpi);
            talk->meanwhile({});
        }
        MPI_Barrier(all.comm);
    };
    std::vector<std::int64_t> data(20, 5), one{1}, two{2};
    const auto spread = [&] { talk->broadcast(data.data(), 160, 0); };
    const auto add = [&] { talk->all_reduce(one, comm::combine::sum); };
    meet(spread);
    meet(add);
    if (hasty) {
        data.assign(20, 6);
        talk->all_reduce(two, comm::combine::sum);
    } else {
        spread();
        add();
        talk->all_reduce(two, comm::combine::sum);
    }
    CHECK(data == std::vector<std::int64_t>(20, hasty ? 6 : 5));
    CHECK(one[0] == (hasty ? 1 : talk->size()));
    CHECK(two[0] == 2 * talk->size());
}

TEST_CASE("bad communicators are refused by name", "[mpi]") {
    std::string text;
    const MPI_Comm none = MPI_COMM_NULL;
    CHECK(code_of([&] { comm::make(&none, {}); }, &text) == code::argument);
    CHECK(text.find("MPI_COMM_NULL") != std::string::npos);
    CHECK(code_of([&] { comm::make(nullptr, {}); }) == code::argument);
    const everyone all;
    CHECK(code_of([&] { all.talk({0, 3}); }) == code::argument);
    CHECK(code_of([&] { all.talk({-1, 0}); }) == code::argument);
    int rank = 0, size = 0;
    MPI_Comm_rank(all.comm, &rank);
    MPI_Comm_size(all.comm, &size);
    if (size == 1) return;
    MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL;
    MPI_Comm_split(all.comm, rank == 0 ? 0 : 1, rank, &half);
    MPI_Intercomm_create(half, 0, all.comm, rank == 0 ? 1 : 0, 5, &between);
    CHECK(code_of([&] { comm::make(&between, {}); }, &text) == code::argument);
    CHECK(text.find("inter-communicator") != std::string::npos);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

TEST_CASE("one rank makes no MPI call once it is made") {
    const MPI_Comm alone = MPI_COMM_SELF;
    const auto talk = comm::make(&alone, {});
    pmpi_count_reset();
    std::int64_t number = 1;
    talk->all_reduce({&number, 1}, comm::combine::sum);
    talk->gather("x", 0);
    float value = 1;
    talk->start_reduce_scatter({.source = &value, .slice = 1, .target = &value})->finish();
    const pmpi_counts counts = pmpi_count_get();
    CHECK(counts.sends + counts.collectives + counts.communicators_made == 0);
}

TEST_CASE("2100 communicators come and go and leave nothing (case B30)", "[mpi]") {
    const everyone all;
    int ranks = 0;
    MPI_Comm_size(all.comm, &ranks);
    const int times = ranks <= 2 ? 2100 : 100;  // MPI runs out of communicators near 2048; more ranks add only time
    pmpi_count_reset();
    for (int i = 0; i < times; ++i) all.talk({1, 0});
    for (int i = 0; i < 20; ++i) all.talk();  // with a search for nodes
    const pmpi_counts counts = pmpi_count_get();
    CHECK(counts.communicators_made == times + 40);
    CHECK(counts.communicators == 0);
    CHECK(counts.operations + counts.types + counts.windows + counts.files + counts.groups == 0);
    CHECK(counts.world_uses == 0);
}

TEST_CASE("an error of MPI comes back as a code with MPI's text", "[mpi]") {
    const everyone all;
    const auto talk = all.talk();
    if (talk->size() == 1) return;
    std::string text;
    comm::all_gather_request what{nullptr, -0, {}, -1};
    what.landings.resize(static_cast<std::size_t>(talk->size()), {&what, 8});
    what.own_bytes = 8;  // own null with 8 bytes as a sender only: MPI refuses the buffer
    what.root = talk->rank() == 0 ? 1 : 0;
    CHECK(code_of([&] { talk->start_all_gather(what); }, &text) == code::mpi);
    CHECK(text.find("MPI_Isend failed: ") == 0);
}

TEST_CASE("nodes by fiat: only equal nodes count") {
    const everyone all;
    for (int node_size = 1; node_size <= 5; ++node_size) {
        const auto talk = all.talk({node_size, 0});
        const int ranks = talk->size();
        CHECK(talk->nodes().ranks == ranks);
        CHECK(talk->nodes().nodes == (ranks % node_size == 0 ? ranks / node_size : 1));
    }
}

TEST_CASE("nodes as MPI finds them count when ranks are numbered node by node") {
    const everyone all;
    int rank = 0, size = 0;
    MPI_Comm_rank(all.comm, &rank);
    MPI_Comm_size(all.comm, &size);
    if (node_size() != 0) return;
    const int found = all.talk()->nodes().nodes;
    if (std::getenv("ZERO_TEST_TWO_HOSTS") != nullptr) {
        CHECK(found == 2);
    } else if (std::getenv("MPIR_CVAR_NUM_CLIQUES") == nullptr) {
        CHECK(found == 1);
    } else if (size == 2) {
        CHECK(found == 2);
    } else if (size == 4) {
        // Two nodes of two: either 0 1 2 3 or 0 2 1 3 goes node by node, and the other one is one flat node.
        MPI_Comm shuffled = MPI_COMM_NULL;
        MPI_Comm_split(all.comm, 0, rank % 2 * size + rank, &shuffled);
        CHECK(found + comm::make_mpi(&shuffled, {})->nodes().nodes == 3);
        MPI_Comm_free(&shuffled);
    }
}
