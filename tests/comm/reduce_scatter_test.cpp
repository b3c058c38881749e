// The reduce-scatter against a serial loop, bit for bit; many in flight; what travels; one rank's fault.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <set>

#include "comm/ranks.hpp"
#include "core/crew.hpp"
#include "partition/layout.hpp"
#include "support/pmpi_count.hpp"
#include "tensor/vector.hpp"

using namespace zero;
using namespace ranks;

namespace {

template <typename T>
constexpr dtype type_of = sizeof(T) == 8 ? dtype::f64 : dtype::f32;

// The contribution of `from`, as its owner sees it after the wire.
template <typename T>
std::vector<T> travelled(std::vector<T> data, dtype travel) {
    if (travel == type_of<T>) return data;
    const auto count = static_cast<std::int64_t>(data.size());
    std::vector<std::byte> wire(data.size() * sizeof(T));
    vector::convert(travel, wire.data(), type_of<T>, data.data(), count);
    vector::convert(type_of<T>, data.data(), travel, wire.data(), count);
    return data;
}

template <typename T>
struct bucket {
    std::int64_t slice;
    unsigned seed;
    const comm::communicator& over;
    visible<T> source;
    std::vector<T> target;
    std::int64_t announced = 0;

    bucket(const comm::communicator& all, std::int64_t elements, unsigned number)
        : slice(elements),
          seed(number),
          over(all),
          source(all, of(all.rank())),
          target(static_cast<std::size_t>(slice), T(2)) {}

    std::vector<T> of(int rank) const {
        return values<T>(slice * over.size(), seed * 100 + static_cast<unsigned>(rank));
    }
    comm::reduce_scatter_request request() {
        comm::reduce_scatter_request what;
        what.source = source.data();
        what.sum_type = what.travel_type = type_of<T>;
        what.slice = slice;
        what.target = target.data();
        what.finished = [this](int, std::int64_t first, std::int64_t count, void*) {
            if (first == announced && count > 0 && first % vector::atom(type_of<T>) == 0) announced += count;
        };
        return what;
    }
    template <typename Travel>
    std::vector<T> expected(bool add, const Travel& travel) const {
        const std::int64_t first = partition::slot_of_rank(over.nodes(), over.rank()) * slice;
        std::vector<T> sum, of_node;  // ranks of a node in their order, then nodes in theirs
        const auto plus = [](std::vector<T>& to, const T* more, std::int64_t count, bool fresh) {
            if (fresh) to.assign(static_cast<std::size_t>(count), T(0));
            for (std::size_t i = 0; i < to.size(); ++i) to[i] = fresh ? more[i] : to[i] + more[i];
        };
        for (int rank = 0; rank < over.size(); ++rank) {
            const std::vector<T> all = rank == over.rank() ? of(rank) : travelled(of(rank), travel(rank));
            plus(of_node, all.data() + first, slice, over.nodes().local_of(rank) == 0);
            if (over.nodes().local_of(rank) + 1 == over.nodes().per_node()) plus(sum, of_node.data(), slice, over.nodes().node_of(rank) == 0);
        }
        if (add)
            for (T& one : sum) one = T(2) + one;
        return sum;
    }
    std::vector<T> expected(bool add = false) const {
        return expected(add, [](int) { return type_of<T>; });
    }
};

}  // namespace

TEMPLATE_TEST_CASE("sums in the one order, bit for bit", "", float, double) {
    const everyone all;
    for (comm::mpi_options how : {comm::mpi_options{}, {0, 7}, {2, 0}, {1, 0}}) {
        ledger book;
        const auto talk = all.talk(how);
        for (std::int64_t slice : {0, 1, 3, 16, 257, 1000}) {
            const auto wide = static_cast<std::int64_t>(sizeof(TestType));
            talk->reserve(book, slice * wide);
            CHECK(book.bytes(place::host, purpose::communication) == talk->scratch_bytes(slice * wide));
            for (bool add : {false, true}) {
                bucket<TestType> one(*talk, slice, static_cast<unsigned>(slice));
                auto request = one.request();
                request.add = add;
                auto going = talk->start_reduce_scatter(std::move(request));
                if (talk->rank() % 2 == 0) {
                    while (!going->progress()) {
                    }
                } else {
                    going->finish();
                }
                CHECK(same_bits(one.target, one.expected(add)));
                CHECK(one.announced == slice);
            }
            talk->reserve(book, 0);
        }
    }
}

TEST_CASE("the threads of a rank share its sums and conversions, bit for bit") {
    const everyone all;
    const auto talk = all.talk();
    ledger book;
    const std::int64_t slice = 70'000;
    talk->reserve(book, slice * 4);
    const dtype travel = over_node() ? dtype::f32 : dtype::bf16;
    bucket<float> one(*talk, slice, 11);
    const auto expected = one.expected(true, [&](int) { return travel; });
    for (const std::size_t members : {1u, 2u, 3u}) {
        crew threads(static_cast<int>(members));
        talk->employ(&threads);
        std::vector<std::atomic<int>> times(static_cast<std::size_t>(slice));
        std::mutex guard;
        std::set<int> who;
        std::fill(one.target.begin(), one.target.end(), 2.0f);
        auto request = one.request();
        request.add = true;
        request.travel_type = travel;
        request.finished = [&](int member, std::int64_t first, std::int64_t count, void*) {
            for (std::int64_t i = first; i < first + count; ++i) ++times[static_cast<std::size_t>(i)];
            const std::lock_guard<std::mutex> alone(guard);
            who.insert(member);
        };
        talk->start_reduce_scatter(std::move(request))->finish();
        CHECK(same_bits(one.target, expected));
        CHECK(std::all_of(times.begin(), times.end(), [](const auto& t) { return t == 1; }));
        CHECK(who.size() <= members);
        CHECK((who.size() > 1) == (members > 1));
        talk->employ(nullptr);
    }
}

TEST_CASE("the target may be the own slot inside the source") {
    const everyone all;
    const auto talk = all.talk();
    ledger book;
    talk->reserve(book, 500 * 4);
    bucket<float> one(*talk, 500, 3);
    auto request = one.request();
    float* own = one.source.data() + partition::slot_of_rank(talk->nodes(), talk->rank()) * 500;
    request.target = own;
    talk->start_reduce_scatter(std::move(request))->finish();
    CHECK(same_bits(std::vector<float>(own, own + 500), one.expected()));
}

TEST_CASE("contributions may travel shorter, each rank as it likes", "[mpi]") {
    const everyone all;
    const dtype shorter = GENERATE(dtype::bf16, dtype::f16);
    const std::int64_t largest_count = GENERATE(0, 7);
    const auto talk = all.talk({0, largest_count});
    ledger book;
    talk->reserve(book, 256 * 4);  // several chunks
    const auto travel = [&](int rank) { return rank % 2 == 1 ? shorter : dtype::f32; };
    bucket<float> one(*talk, 1111, 5);
    auto request = one.request();
    request.travel_type = travel(talk->rank());
    request.short_type = shorter;
    talk->start_reduce_scatter(std::move(request))->finish();
    CHECK(same_bits(one.target, one.expected(false, travel)));
}

TEST_CASE("many reductions share the chunks, and gathers and agreements move them on") {
    const everyone all;
    const auto talk = all.talk();
    ledger book;
    talk->reserve(book, 64 * 8);
    std::vector<std::unique_ptr<bucket<float>>> narrow;
    std::vector<std::unique_ptr<bucket<double>>> wide;
    std::vector<std::unique_ptr<comm::operation>> going;
    for (unsigned i = 0; i < 6; ++i) {
        narrow.push_back(std::make_unique<bucket<float>>(*talk, 50 * (i % 4), i));
        wide.push_back(std::make_unique<bucket<double>>(*talk, 300 + i, i + 50));
        going.push_back(talk->start_reduce_scatter(narrow.back()->request()));
        going.push_back(talk->start_reduce_scatter(wide.back()->request()));
    }
    // Rank 0 waits for the reductions first, the others for something that rank 0 does afterwards.
    if (talk->rank() == 0)
        for (auto& one : going) one->finish();
    std::int64_t number = 1;
    talk->all_reduce({&number, 1}, comm::combine::sum);
    CHECK(number == talk->size());
    std::vector<int> gathered(static_cast<std::size_t>(talk->size()));
    comm::all_gather_request what{&number, 4, {}, -1};
    for (int& one : gathered) what.landings.push_back({&one, 4});
    talk->start_all_gather(what)->finish();
    for (std::size_t i = going.size(); i-- > 0;) going[i]->finish();  // the last first: it needs all before it
    for (const auto& one : narrow) CHECK(same_bits(one->target, one->expected()));
    for (const auto& one : wide) CHECK(same_bits(one->target, one->expected()));
}

TEST_CASE("each rank sends N e (P-1)/P bytes, nothing through a collective, nothing on the world", "[mpi]") {
    const everyone all;
    const auto talk = all.talk();
    ledger book;
    talk->reserve(book, 4096);
    bucket<float> one(*talk, 3000, 9);
    auto request = one.request();
    const bool shorter = GENERATE(false, true);
    if (shorter) request.travel_type = dtype::bf16;
    pmpi_count_reset();
    talk->start_reduce_scatter(std::move(request))->finish();
    const pmpi_counts counts = pmpi_count_get();
    const std::int64_t bound = 3000 * (shorter ? 2 : 4) * (talk->size() - 1);
    CHECK(counts.send_bytes == bound);
    CHECK(talk->sent().reduce_bytes == bound);
    CHECK(counts.collectives == 0);
    CHECK(counts.exchanges[0] == (talk->size() > 1 ? 1 : 0));
    CHECK(counts.world_uses == 0);
}

TEST_CASE("a lowered largest count is kept, with as many calls on every rank", "[mpi]") {
    const everyone all;
    const auto talk = all.talk({0, 7});
    ledger book;
    talk->reserve(book, 4096);
    bucket<double> one(*talk, 100, 4);
    pmpi_count_reset();
    talk->start_reduce_scatter(one.request())->finish();
    const pmpi_counts counts = pmpi_count_get();
    CHECK(counts.largest_count <= 7);
    CHECK(counts.sends == 100 * (talk->size() - 1));
    CHECK(same_bits(one.target, one.expected()));
    std::vector<std::int64_t> calls{counts.sends, -counts.sends};
    talk->all_reduce(calls, comm::combine::maximum);
    CHECK(calls[0] == -calls[1]);
}

TEST_CASE("a fault in what one rank does with its sums stays there, and the exchange goes on", "[mpi]") {
    const everyone all;
    const auto talk = all.talk();
    ledger book;
    talk->reserve(book, 256);
    const int guilty = GENERATE(0, 1);
    bucket<float> first(*talk, 200, 1), second(*talk, 200, 2);
    auto request = first.request();
    if (talk->rank() == guilty)
        request.finished = [](int, std::int64_t, std::int64_t, void*) { fail(code::numeric, "on purpose"); };
    auto going = talk->start_reduce_scatter(std::move(request));
    auto next = talk->start_reduce_scatter(second.request());
    CHECK(code_of([&] { going->finish(); }) == (talk->rank() == guilty ? code::numeric : code::ok));
    next->finish();
    CHECK(same_bits(second.target, second.expected()));
}

TEST_CASE("what cannot be is refused before anything travels", "[mpi]") {
    const everyone all;
    const auto talk = all.talk();
    bucket<float> one(*talk, 8, 1);
    if (talk->size() > 1)
        CHECK(code_of([&] { talk->start_reduce_scatter(one.request()); }) == code::internal);  // no reserve
    auto request = one.request();
    request.travel_type = dtype::f64;
    CHECK(code_of([&] { talk->start_reduce_scatter(std::move(request)); }) == code::internal);
}

TEST_CASE("a 16-bit contribution that nobody announced is an error, not a wrong sum", "[mpi]") {
    const everyone all;
    const auto talk = all.talk();
    ledger book;
    talk->reserve(book, 64);
    bucket<float> one(*talk, 16, 1);
    auto request = one.request();
    const bool shorter = talk->rank() == talk->size() - 1;
    if (shorter) request.travel_type = dtype::f16;
    auto going = talk->start_reduce_scatter(std::move(request));
    CHECK(code_of([&] { going->finish(); }) == (shorter ? code::ok : code::internal));
}

TEST_CASE("an operation that is dropped after an error ends this exchange and nothing else") {
    const everyone all;
    const auto talk = all.talk();
    ledger book;
    talk->reserve(book, 64);
    if (talk->size() == 1) return;
    bucket<float> one(*talk, 1000, 1);
    if (talk->rank() == 0) {
        talk->start_reduce_scatter(one.request()).reset();  // the others never start theirs
        CHECK(code_of([&] { talk->start_reduce_scatter(one.request()); }) == code::state);
    }
    std::int64_t number = 1;
    talk->all_reduce({&number, 1}, comm::combine::sum);
    CHECK(number == talk->size());
}
