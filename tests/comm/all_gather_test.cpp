// The all-gather: any landings, any root, what travels.
#include <catch2/catch.hpp>
#include <cstring>

#include "comm/ranks.hpp"
#include "support/pmpi_count.hpp"

using namespace zero;
using namespace ranks;

namespace {

struct gather {
    const comm::communicator& over;
    std::vector<std::int64_t> bytes;
    std::vector<std::string> own, landed;

    gather(const comm::communicator& all, std::vector<std::int64_t> sizes) : over(all), bytes(std::move(sizes)) {
        for (int rank = 0; rank < all.size(); ++rank) {
            const auto length = static_cast<std::size_t>(bytes[static_cast<std::size_t>(rank)]);
            std::string text(length, '\0');
            for (std::size_t i = 0; i < length; ++i)
                text[i] = static_cast<char>('a' + (i * 7 + static_cast<std::size_t>(rank) * 3) % 26);
            own.push_back(text);
            landed.emplace_back(length, '-');
        }
    }
    comm::all_gather_request request(int root, bool in_place) {
        comm::all_gather_request what;
        const auto me = static_cast<std::size_t>(over.rank());
        const bool receives = root < 0 || root == over.rank();
        what.root = root;
        what.own_bytes = bytes[me];
        for (std::size_t rank = 0; rank < bytes.size(); ++rank) {
            what.landings.push_back({receives ? landed[rank].data() : nullptr, bytes[rank]});
        }
        what.own = own[me].data();
        if (in_place && receives) {
            landed[me] = own[me];
            what.own = what.landings[me].data;
        }
        return what;
    }
};

std::vector<std::int64_t> sizes(int ranks, unsigned seed, int most) {
    std::mt19937_64 random(seed);
    std::vector<std::int64_t> result;
    for (int rank = 0; rank < ranks; ++rank) {
        result.push_back(random() % 4 == 0 ? 0 : static_cast<std::int64_t>(random() % static_cast<unsigned>(most)));
    }
    return result;
}

}  // namespace

TEST_CASE("every rank's bytes land where they should") {
    const everyone all;
    const std::int64_t largest_count = GENERATE(0, 7);
    ledger book;
    const auto talk = all.talk({0, largest_count});
    talk->reserve(book, 10'000);  // smaller than the parts: several pieces
    for (unsigned seed = 0; seed < 6; ++seed) {
        for (int root = -1; root < talk->size(); ++root) {
            gather one(*talk, sizes(talk->size(), seed, largest_count == 0 ? 100'000 : 300));
            const bool in_place = seed % 2 == 0;
            talk->start_all_gather(one.request(root, in_place))->finish();
            if (root < 0 || root == talk->rank()) CHECK(one.landed == one.own);
        }
    }
}

TEST_CASE("several gathers at once, finished in any order", "[mpi]") {
    const everyone all;
    const auto talk = all.talk();
    std::vector<std::unique_ptr<gather>> each;
    std::vector<std::unique_ptr<comm::operation>> going;
    for (unsigned seed = 0; seed < 5; ++seed) {
        each.push_back(std::make_unique<gather>(*talk, sizes(talk->size(), seed + 40, 50'000)));
        going.push_back(talk->start_all_gather(each.back()->request(-1, false)));
    }
    if (talk->rank() % 2 == 0) {
        for (auto& one : going)
            while (!one->progress()) {
            }
    } else {
        for (std::size_t i = going.size(); i-- > 0;) going[i]->finish();
    }
    for (const auto& one : each) CHECK(one->landed == one->own);
}

TEST_CASE("a gather sends its own bytes once to each receiver; nothing is sent for nothing", "[mpi]") {
    const everyone all;
    const auto talk = all.talk();
    const int root = GENERATE(-1, 0);
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(talk->size()), 1000);
    bytes[0] = 0;
    gather one(*talk, bytes);
    pmpi_count_reset();
    talk->start_all_gather(one.request(root, true))->finish();
    const pmpi_counts counts = pmpi_count_get();
    const std::int64_t receivers = root < 0 ? talk->size() - 1 : (talk->rank() == root ? 0 : 1);
    CHECK(counts.send_bytes == bytes[static_cast<std::size_t>(talk->rank())] * receivers);
    CHECK(talk->sent().gather_bytes == counts.send_bytes);
    CHECK(counts.sends == (talk->rank() == 0 ? 0 : receivers));
    CHECK(counts.collectives == 0);
    CHECK(counts.world_uses == 0);
}

TEST_CASE("a lowered largest count is kept", "[mpi]") {
    const everyone all;
    const auto talk = all.talk({0, 7});
    gather one(*talk, std::vector<std::int64_t>(static_cast<std::size_t>(talk->size()), 100));
    pmpi_count_reset();
    talk->start_all_gather(one.request(-1, false))->finish();
    CHECK(pmpi_count_get().largest_count <= 7);
    CHECK(pmpi_count_get().sends == 15 * (talk->size() - 1));
    CHECK(one.landed == one.own);
}

TEST_CASE("landings that do not fit are refused") {
    const everyone all;
    const auto talk = all.talk();
    gather one(*talk, std::vector<std::int64_t>(static_cast<std::size_t>(talk->size()), 4));
    auto short_of_one = one.request(-1, false);
    short_of_one.landings.pop_back();
    CHECK(code_of([&] { talk->start_all_gather(short_of_one); }) == code::internal);
    auto other_length = one.request(-1, false);
    other_length.own_bytes = 3;
    CHECK(code_of([&] { talk->start_all_gather(other_length); }) == code::internal);
}
