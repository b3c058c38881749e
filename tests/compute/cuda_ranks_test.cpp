// Ranks that keep their tensors on devices (comm/device_ranks) against the same ranks over host memory: the bits of every sum, every
// gather, with direct messages inside a node, between nodes of two ranks, and where several ranks share one device.
#include <mpi.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <thread>
#include <vector>

#include "both.hpp"
#include "comm/device_ranks.hpp"
#include "emulation/control.hpp"
#include "support/world.hpp"

using namespace zero;
using both_processors::numbers;
using test::world_rank;
using test::world_size;

namespace {

struct place_of_test {
    bool shared_device;
    int node_size;  // 0: one node
};

struct everyone {
    explicit everyone(const place_of_test& where) {
        const MPI_Comm world = MPI_COMM_WORLD;
        host = comm::make(&world, {where.node_size, 0});
        work = compute::make_cuda(where.shared_device ? 0 : world_rank(), book);
        device = comm::over_devices(comm::make(&world, {where.node_size, 0}), *work, reason);
    }
    ledger book;
    std::string reason;
    std::unique_ptr<comm::communicator> host, device;
    std::unique_ptr<compute::processor> work;
    ~everyone() {
        work->wait();
        device.reset();  // before what it works with
    }
};

// Elements of a sum type, rounded from doubles.
std::vector<std::byte> elements(dtype type, const std::vector<double>& values) {
    std::vector<std::byte> made(values.size() * static_cast<std::size_t>(size_of(type)));
    vector::convert(type, made.data(), dtype::f64, values.data(), static_cast<std::int64_t>(values.size()));
    return made;
}

buffer on_device(everyone& all, const std::vector<std::byte>& bytes) {
    buffer memory = all.work->take(all.book, purpose::communication, static_cast<std::int64_t>(bytes.size()));
    all.work->copy(memory.data(), bytes.data(), memory.bytes());
    return memory;
}

std::vector<std::byte> from_device(everyone& all, const buffer& memory) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(memory.bytes()));
    all.work->copy(bytes.data(), memory.data(), memory.bytes());
    return bytes;
}

std::vector<place_of_test> places() {
    std::vector<place_of_test> all{{false, 0}, {true, 0}};
    if (world_size() % 2 == 0) all.push_back({false, 2});
    if (world_size() > 1) all.push_back({false, 1});
    return all;
}

}  // namespace

TEST_CASE("sums of device memory have the bits of sums of host memory") {
    for (const auto& where : places()) {
        everyone all(where);
        constexpr std::int64_t largest = 300'000;
        const auto forecast = std::pair(all.device->scratch_bytes(largest * 8), all.device->device_scratch_bytes(largest * 8));
        const std::int64_t before = all.book.bytes(place::host), before_device = all.book.bytes(place::device);
        all.device->reserve(all.book, largest * 8);
        all.host->reserve(all.book, largest * 8);
        INFO("shared " << where.shared_device << ", node size " << where.node_size);
        CHECK(all.book.bytes(place::host) - before - all.host->scratch_bytes(largest * 8) == forecast.first);
        CHECK(all.book.bytes(place::device) - before_device == forecast.second);
        unsigned seed = static_cast<unsigned>(world_rank()) + 1;
        for (const std::int64_t slice : {std::int64_t{0}, std::int64_t{16}, std::int64_t{4096}, largest})
            for (const dtype sum : {dtype::f32, dtype::f64})
                for (const int mode : {0, 1, 2})  // all wide, all narrow, every rank as it likes
                    for (const bool add : {false, true}) {
                        const dtype travel = mode == 1 || (mode == 2 && (world_rank() + slice / 16) % 2 == 1) ? dtype::bf16 : sum;
                        INFO("slice " << slice << ", " << name(sum) << " as " << name(travel) << ", add " << add);
                        seed += 17;
                        auto source = elements(sum, numbers(slice * world_size(), seed, false));
                        if (travel != sum) {  // as the stage does with what a lossy type would do to the contributions of others
                            crew alone(1);
                            compute::make_host(alone)->round_through(travel, sum, source.data(), slice * world_size());
                        }
                        auto target = elements(sum, numbers(slice, seed + 5, false));
                        const buffer source_there = on_device(all, source), target_there = on_device(all, target);
                        const auto request = [&](void* from, void* to) {
                            comm::reduce_scatter_request what;
                            what.source = from;
                            what.target = to;
                            what.sum_type = sum;
                            what.travel_type = travel;
                            if (mode > 0) what.short_type = dtype::bf16;
                            what.slice = slice;
                            what.add = add;
                            return what;
                        };
                        std::int64_t known = 0;
                        auto there = request(source_there.data(), target_there.data());
                        there.finished = [&](int, std::int64_t, std::int64_t count, void*) { known += count; };
                        const std::int64_t sent_before = all.device->sent().reduce_bytes;
                        zero_emulation::reset_counters();
                        auto going = all.device->start_reduce_scatter(std::move(there));
                        all.host->start_reduce_scatter(request(source.data(), target.data()))->finish();
                        going->finish();
                        CHECK(known == slice);
                        if (!where.shared_device) {  // every contribution in the type of its rank
                            const std::int64_t sent = all.device->sent().reduce_bytes - sent_before, direct = zero_emulation::count().sent_bytes;
                            const std::int64_t thin = (world_size() - 1) * slice * size_of(travel);
                            if (where.node_size == 0) CHECK((sent == 0 && direct == thin));
                            if (where.node_size == 1) CHECK((sent == thin && direct == 0));
                        }
                        CHECK(from_device(all, target_there) == target);
                    }
    }
}

TEST_CASE("gathers of device memory bring every rank's bytes") {
    for (const auto& where : places()) {
        everyone all(where);
        all.device->reserve(all.book, 1 << 20);
        INFO("shared " << where.shared_device << ", node size " << where.node_size);
        for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{64}, std::int64_t{100'003}, std::int64_t{3} << 20}) {
            const auto mine = [&](int rank) { return rank % 3 == 2 ? bytes / 2 : bytes; };
            std::vector<std::vector<std::byte>> expected;
            std::vector<buffer> landed;
            for (int rank = 0; rank < world_size(); ++rank) {
                std::vector<std::byte> one(static_cast<std::size_t>(mine(rank)));
                for (std::size_t i = 0; i < one.size(); ++i) one[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rank) * 31);
                landed.push_back(all.work->take(all.book, purpose::communication, mine(rank)));
                expected.push_back(std::move(one));
            }
            for (const bool in_place : {false, true}) {
                const auto me = static_cast<std::size_t>(world_rank());
                const buffer own = on_device(all, expected[me]);
                if (in_place) all.work->copy(landed[me].data(), expected[me].data(), mine(world_rank()));
                comm::all_gather_request what;
                for (const auto& place : landed) what.landings.push_back({place.data(), place.bytes()});
                what.own = in_place ? landed[me].data() : own.data();
                what.own_bytes = mine(world_rank());
                auto going = all.device->start_all_gather(std::move(what));
                while (!going->progress()) std::this_thread::yield();
                going->finish();
                for (std::size_t rank = 0; rank < landed.size(); ++rank) CHECK(from_device(all, landed[rank]) == expected[rank]);
            }
        }
    }
}

TEST_CASE("reductions and gathers may be started in another order on another rank") {
    for (const auto& where : places()) {
        everyone all(where);
        const std::int64_t slice = 50'000;
        all.device->reserve(all.book, slice * 4);
        const auto source = elements(dtype::f32, std::vector<double>(static_cast<std::size_t>(slice * world_size()), 1));
        const buffer there = on_device(all, source), target = all.work->take(all.book, purpose::communication, slice * 4);
        std::vector<buffer> landed;
        for (int rank = 0; rank < world_size(); ++rank) landed.push_back(all.work->take(all.book, purpose::communication, slice));
        const auto reduce = [&] {
            comm::reduce_scatter_request what;
            what.source = there.data();
            what.target = target.data();
            what.slice = slice;
            return all.device->start_reduce_scatter(std::move(what));
        };
        const auto gather = [&] {
            comm::all_gather_request what;
            for (const auto& place : landed) what.landings.push_back({place.data(), place.bytes()});
            what.own = landed[static_cast<std::size_t>(world_rank())].data();
            what.own_bytes = slice;
            return all.device->start_all_gather(std::move(what));
        };
        std::unique_ptr<comm::operation> first, second;
        if (world_rank() % 2 == 0) {
            first = reduce();
            second = gather();
            second->finish();
            first->finish();
        } else {
            second = gather();
            second->finish();
            first = reduce();
            first->finish();
        }
        CHECK(from_device(all, target) == elements(dtype::f32, std::vector<double>(static_cast<std::size_t>(slice), world_size())));
    }
}

TEST_CASE("what messages between devices bring lands in memory that NCCL knows, or, where that is refused, in other memory") {
    for (const auto& where : places())
        for (const int failing : {0, 1, 2, 3, 4}) {  // calls: of memory for the sums, of its registration, of memory of the caller ...
            everyone all(where);
            const bool direct = !where.shared_device && where.node_size != 1 && world_size() > 1;
            INFO("shared " << where.shared_device << ", node size " << where.node_size << ", call " << failing);
            zero_emulation::reset_counters();
            const std::int64_t before = all.book.bytes(place::device);
            if (direct) zero_emulation::fail_nccl_call(failing);
            all.device->reserve(all.book, 4096);
            const std::int64_t scratch = all.book.bytes(place::device) - before;
            CHECK(scratch == all.device->device_scratch_bytes(4096));
            std::vector<buffer> landed;
            landed.push_back(all.device->take_landing(*all.work, all.book, purpose::parameters, 64 * world_size()));
            zero_emulation::fail_nccl_call(0);
            CHECK(all.book.bytes(place::device) - before - scratch == 64 * world_size());
            CHECK(zero_emulation::count().nccl_registrations == (!direct ? 0 : failing == 0 ? 2 : 1));
            const std::vector<std::byte> mine(64, static_cast<std::byte>(world_rank() + 1));
            all.work->copy(landed[0].data() + 64 * world_rank(), mine.data(), 64);
            comm::all_gather_request what;
            for (int rank = 0; rank < world_size(); ++rank) what.landings.push_back({landed[0].data() + 64 * rank, 64});
            what.own = what.landings[static_cast<std::size_t>(world_rank())].data;
            what.own_bytes = 64;
            all.device->start_all_gather(std::move(what))->finish();
            const auto found = from_device(all, landed[0]);
            for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(found[i] == static_cast<std::byte>(i / 64 + 1));
            if (failing % 2 == 0) continue;
            all.work->wait();
            all.device.reset();  // before the memory, too
        }
    CHECK(zero_emulation::leaks() == "");
}
