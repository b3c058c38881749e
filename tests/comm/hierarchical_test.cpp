// Two levels on nodes that one machine plays: the bits of the plain exchange in many portions, gathers in many pieces, what
// crosses between the nodes, who falls back to one level, and news of a rank that gives up or dies. The verbs as such: the
// tests of their names, with ZERO_TEST_NODE_SHARED and ZERO_TEST_NODE_SIZE.
#include <catch2/catch.hpp>
#include <chrono>

#include "comm/ranks.hpp"
#include "support/pmpi_count.hpp"
#include "tensor/vector.hpp"

using namespace zero;
using namespace ranks;

namespace {

constexpr int per_node = 2;

// As many nodes as there are, of two ranks each (ZERO_TEST_NODE_SIZE: of so many), and how they talk.
int ranks_of_a_node() { return node_size() == 0 ? per_node : node_size(); }
std::unique_ptr<comm::communicator> flat(const everyone& all) { return comm::make_mpi(&all.comm, {ranks_of_a_node(), 0}); }
std::unique_ptr<comm::communicator> two_levels(const everyone& all) {
    std::string reason;
    return comm::share_node(flat(all), reason);
}
bool has_levels(const comm::communicator& talk) { return talk.nodes().nodes > 1 && talk.shared() != nullptr; }

std::int64_t sum_over_node(std::int64_t mine, int rank) {
    MPI_Comm node = MPI_COMM_NULL;
    PMPI_Comm_split(MPI_COMM_WORLD, rank / ranks_of_a_node(), rank, &node);
    std::int64_t all = 0;
    PMPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, node);
    PMPI_Comm_free(&node);
    return all;
}

// Reductions of all kinds, one after the other; ranks differ in what travels.
struct buckets {
    explicit buckets(const comm::communicator& over) {
        for (unsigned k = 0; k < 12; ++k) {
            const std::int64_t slice = std::int64_t{k} * k * 37, all = slice * over.size();
            const bool narrow = (k + static_cast<unsigned>(over.rank())) % 3 == 0 && k % 2 == 0;
            const auto numbers = values<float>(all, k * 100 + static_cast<unsigned>(over.rank()));
            const auto wider = values<double>(k % 2 == 0 ? 0 : all, k * 100 + static_cast<unsigned>(over.rank()));
            std::vector<std::uint16_t> short_ones(static_cast<std::size_t>(narrow ? all : 0));
            if (narrow) vector::convert(dtype::bf16, short_ones.data(), dtype::f32, numbers.data(), all);
            wide.push_back(std::make_unique<visible<float>>(over, numbers));
            wider_still.push_back(std::make_unique<visible<double>>(over, wider));
            shorter.push_back(std::make_unique<visible<std::uint16_t>>(over, short_ones));
            targets.emplace_back(static_cast<std::size_t>(slice), 2.5);
            comm::reduce_scatter_request what;
            what.slice = slice;
            what.target = targets.back().data();
            what.add = k % 3 == 1;
            what.short_type = dtype::bf16;
            what.short_source = narrow;
            what.source = narrow ? static_cast<const void*>(shorter.back()->data()) : wide.back()->data();
            if (narrow) what.travel_type = dtype::bf16;
            if (k % 2 == 1) {
                what.sum_type = what.travel_type = dtype::f64;
                what.source = wider_still.back()->data();
            }
            announced.push_back(0);
            what.finished = [this, k](int, std::int64_t first, std::int64_t count, void*) {
                if (first == announced[k] && first % 16 == 0) announced[k] += count;
            };
            requests.push_back(std::move(what));
        }
    }
    void reduce(comm::communicator& over) {
        std::vector<std::unique_ptr<comm::operation>> going;
        for (auto& what : requests) going.push_back(over.start_reduce_scatter(what));
        if (over.rank() % 2 == 0) {
            for (auto& one : going) one->finish();
        } else {
            for (std::size_t k = going.size(); k-- > 0;) {
                while (!going[k]->progress()) {
                }
            }
        }
        for (std::size_t k = 0; k < requests.size(); ++k) CHECK(announced[k] == requests[k].slice);
    }
    std::vector<std::unique_ptr<visible<float>>> wide;
    std::vector<std::unique_ptr<visible<double>>> wider_still;
    std::vector<std::unique_ptr<visible<std::uint16_t>>> shorter;
    std::vector<std::vector<double>> targets;
    std::vector<std::int64_t> announced;
    std::vector<comm::reduce_scatter_request> requests;
};

}  // namespace

TEST_CASE("many reductions in many portions give the bits of the plain exchange") {
    const everyone all;
    ledger book;
    for (const std::int64_t reserved : {100, 2'000, 40'000}) {  // bytes of a slice: rows of a lane are no longer
        const auto plain = flat(all), levels = two_levels(all);
        plain->reserve(book, reserved);
        levels->reserve(book, reserved);
        CHECK(book.bytes(place::host, purpose::communication) == plain->scratch_bytes(reserved) + levels->scratch_bytes(reserved));
        buckets apart(*plain), together(*levels);
        apart.reduce(*plain);
        together.reduce(*levels);
        for (std::size_t k = 0; k < apart.targets.size(); ++k) CHECK((same_bits(apart.targets[k], together.targets[k])));
        levels->fence();  // before contributions go
        plain->reserve(book, 0);
        levels->reserve(book, 0);
    }
}

TEST_CASE("gathers in many pieces, in private and in visible memory, several at once and finished in any order") {
    const everyone all;
    ledger book;
    const auto talk = two_levels(all);
    if (!has_levels(*talk)) return;
    talk->reserve(book, 100'000);
    const auto rank = static_cast<unsigned>(talk->rank());
    std::vector<std::vector<std::vector<double>>> landed(6);
    std::vector<std::unique_ptr<visible<double>>> own;
    std::vector<std::unique_ptr<comm::operation>> going;
    const auto part = [](unsigned seed, unsigned of) { return values<double>(of % 3 == 2 && seed % 2 == 0 ? 0 : 20'000 + 150'000 * (of % 2) + seed, seed * 50 + of); };
    for (unsigned seed = 0; seed < landed.size(); ++seed) {
        own.push_back(std::make_unique<visible<double>>(*talk, part(seed, rank)));
        comm::all_gather_request what;
        for (int of = 0; of < talk->size(); ++of) {
            landed[seed].emplace_back(part(seed, static_cast<unsigned>(of)).size());
            what.landings.push_back({landed[seed].back().data(), static_cast<std::int64_t>(landed[seed].back().size() * sizeof(double))});
        }
        what.own = own.back()->data();
        what.own_bytes = what.landings[rank].bytes;
        what.visible = seed % 2 == 0;
        what.root = seed == 4 ? talk->size() - 1 : -1;
        going.push_back(talk->start_all_gather(std::move(what)));
    }
    for (std::size_t i = 0; i < going.size(); ++i) going[talk->rank() % 2 == 0 ? i : going.size() - 1 - i]->finish();
    for (unsigned seed = 0; seed < landed.size(); ++seed) {
        if (seed == 4 && talk->rank() != talk->size() - 1) continue;
        for (int of = 0; of < talk->size(); ++of) CHECK(landed[seed][static_cast<std::size_t>(of)] == part(seed, static_cast<unsigned>(of)));
    }
    talk->fence();
}

TEST_CASE("what exists once per node comes there once") {
    const everyone all;
    const auto talk = two_levels(all);
    if (!has_levels(*talk)) return;
    const std::int64_t each = 70'000, ranks = talk->size();
    const auto place = talk->shared()->take_common(each * ranks * 8);
    auto* numbers = reinterpret_cast<double*>(place->data);
    talk->shared()->reserve(place->data, talk->nodes().local_of(talk->rank()) == 0 ? each * ranks * 8 : 0);
    talk->fence();
    const auto part_of = [&](int rank) { return values<double>(each, static_cast<unsigned>(rank) + 9); };
    const auto mine = part_of(talk->rank());
    std::memcpy(numbers + talk->rank() * each, mine.data(), static_cast<std::size_t>(each) * 8);
    comm::all_gather_request what;
    what.once = true;
    for (int rank = 0; rank < ranks; ++rank) what.landings.push_back({numbers + rank * each, each * 8});
    what.own = what.landings[static_cast<std::size_t>(talk->rank())].data;
    what.own_bytes = each * 8;
    talk->start_all_gather(std::move(what))->finish();
    talk->fence();
    for (int rank = 0; rank < ranks; ++rank) CHECK(std::equal(numbers + rank * each, numbers + (rank + 1) * each, part_of(rank).begin()));
    talk->fence();
}

TEST_CASE("every byte crosses once per node, where the flat way sends it for every rank") {
    const everyone all;
    const std::int64_t slice = 3'000;
    pmpi_count_nodes_of(ranks_of_a_node());
    for (const bool leveled : {false, true}) {
        const auto talk = leveled ? two_levels(all) : flat(all);
        if (talk->nodes().nodes == 1) continue;
        ledger book;
        talk->reserve(book, 4'096);  // several portions
        const std::int64_t elements = slice * talk->size(), nodes = talk->nodes().nodes, once = elements / nodes * (nodes - 1) * 4;
        visible<float> source(*talk, values<float>(elements, static_cast<unsigned>(talk->rank())));
        std::vector<float> whole(static_cast<std::size_t>(elements)), target(static_cast<std::size_t>(slice));
        const auto count = [&](const auto& call, const char* what) {
            pmpi_count_reset();
            const auto before = talk->sent();
            call();
            const auto counts = pmpi_count_get();
            INFO(what << (leveled ? ", two levels" : ", flat"));
            CHECK(talk->sent().off_node_bytes - before.off_node_bytes == counts.off_node_bytes);
            if (leveled) CHECK(counts.send_bytes == counts.off_node_bytes);
            CHECK(sum_over_node(counts.off_node_bytes, talk->rank()) == once * (leveled ? 1 : talk->nodes().per_node()));
        };
        comm::reduce_scatter_request sum;
        sum.source = source.data();
        sum.slice = slice;
        sum.target = target.data();
        count([&] { talk->start_reduce_scatter(sum)->finish(); }, "gradients");
        comm::all_gather_request gather;
        for (int rank = 0; rank < talk->size(); ++rank) gather.landings.push_back({whole.data() + rank * slice, slice * 4});
        gather.own = target.data();
        gather.own_bytes = slice * 4;
        count([&] { talk->start_all_gather(gather)->finish(); }, "values");
        talk->fence();
    }
    pmpi_count_nodes_of(0);
}

TEST_CASE("unequal nodes, and ranks alone on theirs, make one level, with the reason") {
    const everyone all;
    int ranks = 0;
    MPI_Comm_size(all.comm, &ranks);
    for (const int size : {1, 2, 3, ranks, ranks + 1}) {
        std::string reason;
        const auto talk = comm::share_node(comm::make_mpi(&all.comm, {size, 0}), reason);
        INFO(ranks << " ranks, " << size << " per node: " << reason);
        const bool one_node = size >= ranks, unequal = !one_node && ranks % size != 0, alone = !one_node && size == 1;
        CHECK((talk->shared() == nullptr) == (unequal || alone));
        CHECK(talk->nodes().nodes == (one_node || unequal ? 1 : ranks / size));
        CHECK((reason.find("unequal") != std::string::npos) == unequal);
        CHECK((reason.find("alone") != std::string::npos) == alone);
        std::int64_t one = 1;
        talk->all_reduce({&one, 1}, comm::combine::sum);
        CHECK(one == ranks);
    }
}

TEST_CASE("an operation that one rank gives up is an error on every node, and agreement goes on") {
    const everyone all;
    const auto talk = two_levels(all);
    if (!has_levels(*talk)) return;
    ledger book;
    talk->reserve(book, 4'096);
    const int guilty = GENERATE(0, 1);
    const bool reducing = GENERATE(true, false);
    visible<float> source(*talk, std::vector<float>(static_cast<std::size_t>(5'000 * talk->size()), 1.F));
    std::vector<float> target(5'000), whole(target.size() * static_cast<std::size_t>(talk->size()));
    const auto start = [&] {
        if (reducing) return talk->start_reduce_scatter({.source = source.data(), .slice = 5'000, .target = target.data()});
        comm::all_gather_request what;
        what.own = target.data();
        what.own_bytes = 20'000;
        for (std::int64_t rank = 0; rank < talk->size(); ++rank) what.landings.push_back({whole.data() + rank * 5'000, 20'000});
        return talk->start_all_gather(std::move(what));
    };
    if (talk->rank() == guilty) start().reset();
    MPI_Barrier(all.comm);  // the others begin when it is given up
    if (talk->rank() == guilty) {
        CHECK(code_of([&] { start(); }) == code::state);
    } else {
        std::string text;
        CHECK(code_of([&] { start()->finish(); start()->finish(); }, &text) == code::state);
        CHECK(text.find("given up") != std::string::npos);
    }
    std::int64_t one = 1;
    talk->all_reduce({&one, 1}, comm::combine::sum);
    CHECK(one == talk->size());
}

// Ranks hold a lock as long as they take part, so that one that is gone looks like one that died.
TEST_CASE("a rank that ends is an error on every node within seconds, in every wait") {
    const everyone all;
    auto talk = two_levels(all);
    if (!has_levels(*talk)) return;
    ledger book;
    talk->reserve(book, 4'096);
    const bool reducing = GENERATE(true, false);
    talk->fence();
    const auto start = std::chrono::steady_clock::now();
    if (talk->rank() == talk->size() - 1) {
        talk.reset();
    } else {
        visible<float> source(*talk, std::vector<float>(static_cast<std::size_t>(100 * talk->size()), 1.F));
        std::vector<float> target(100);
        std::int64_t number = 1;
        std::string text;
        const code got = code_of([&] {
            if (reducing) talk->start_reduce_scatter({.source = source.data(), .slice = 100, .target = target.data()})->finish();
            talk->all_reduce({&number, 1}, comm::combine::sum);
        }, &text);
        // Far away it may be a neighbour that gives up because of the news.
        const bool far = talk->nodes().node_of(talk->rank()) + 1 < talk->nodes().nodes;
        const bool told = got == code::mpi && text.find("has ended without zero_finalize") != std::string::npos;
        INFO(text);
        CHECK((told || (far && got == code::state && text.find("given up") != std::string::npos)));
    }
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
    MPI_Barrier(all.comm);
}
