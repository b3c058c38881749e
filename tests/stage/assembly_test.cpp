// Where contributions are built up: the short form of 16-bit buckets, its place beside the own sums, and widening in place.
#include "stage/assembly.hpp"

#include <mpi.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "tensor/vector.hpp"

using namespace zero;

namespace {

const std::vector<std::int64_t> sizes{5, 0, 33, 1, 5000, 513};

// Everything that a stage works with, for tensors of one type that share a bucket.
struct world {
    explicit world(dtype type, bool whole_gradients) : log(0) {
        const MPI_Comm comm = MPI_COMM_WORLD;
        ranks = comm::make(&comm, {});
        agree = std::make_unique<agreement>(*ranks);
        std::vector<partition::item> items;
        for (const std::int64_t n : sizes) {
            tensors.add("", type, {&n, 1}, nullptr, 0);
            items.push_back({n, type, 0, true, true});
        }
        partition::rules rules;
        rules.where = ranks->nodes();
        space = partition::layout(items, rules);
        all = std::make_unique<stage::context>(stage::context{tensors, space, *ranks, book, *agree, log, how, alone, *work});
        memory = std::make_unique<stage::storage>(*all, stage::coverage{whole_gradients, false});
        memory->take_values();
        memory->take_rest({}, {});
    }
    ledger book;
    zero::log log;
    registry tensors;
    partition::layout space;
    config::settings how;
    crew alone{1};
    std::unique_ptr<compute::processor> work = compute::make_host(alone);
    std::unique_ptr<comm::communicator> ranks;
    std::unique_ptr<agreement> agree;
    std::unique_ptr<stage::context> all;
    std::unique_ptr<stage::storage> memory;
};

float value_of(int tensor, std::int64_t i) {
    return static_cast<float>((tensor * 31 + i) % 200) - 100;  // exact in bf16 and fp16
}

void write(const world& w, stage::assembly& place) {
    for (int t = 0; t < w.tensors.count(); ++t) {
        std::vector<float> values;
        for (std::int64_t i = 0; i < sizes[static_cast<std::size_t>(t)]; ++i) values.push_back(value_of(t, i));
        vector::convert(place.form(0), place.at(t), dtype::f32, values.data(), static_cast<std::int64_t>(values.size()));
    }
}

bool holds_values_and_zeros(const world& w, const stage::assembly& place) {
    const auto& b = w.space.buckets()[0];
    std::vector<float> found(static_cast<std::size_t>(b.padded)), wanted(found.size(), 0.0F);
    vector::convert(dtype::f32, found.data(), place.form(0), place.base(0), b.padded);
    for (int t = 0; t < w.tensors.count(); ++t)
        for (std::int64_t i = 0; i < sizes[static_cast<std::size_t>(t)]; ++i)
            wanted[static_cast<std::size_t>(w.space.where(t).offset + i)] = value_of(t, i);
    return std::memcmp(found.data(), wanted.data(), found.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("16-bit contributions keep their short form until they are widened") {
    for (const dtype type : {dtype::bf16, dtype::f16}) {
        for (const bool ring : {false, true}) {
            world w(type, !ring);
            const auto how = ring ? stage::assembly::holds::ring : stage::assembly::holds::whole_sums;
            stage::assembly place(*w.all, *w.memory, how);
            place.begin(true);
            if (!ring) std::memset(w.memory->gradients(0), 0x7f, static_cast<std::size_t>(w.space.buckets()[0].padded) * 4);
            place.open(0);
            const int size = w.ranks->size(), rank = w.ranks->rank();
            const bool middle = size % 2 == 1 && rank == size / 2;  // its own sums leave no half free in one piece
            CHECK(place.is_short(0) == (size > 1 && (ring || !middle)));
            write(w, place);
            CHECK(holds_values_and_zeros(w, place));
            if (!place.is_short(0)) continue;
            if (!ring) {  // what arrives in the own slice does not touch what is still to be sent
                const auto own = w.all->own_slice(0);
                std::memset(w.memory->gradient_at(0, own.first), 0x55, static_cast<std::size_t>(own.count) * 4);
                CHECK(holds_values_and_zeros(w, place));
            }
            place.widen(0);
            CHECK(place.form(0) == dtype::f32);
            CHECK(holds_values_and_zeros(w, place));
        }
    }
}

TEST_CASE("sums of several micro-steps and wide types are built up in the sum type") {
    for (const dtype type : {dtype::bf16, dtype::f32, dtype::f64}) {
        world w(type, true);
        stage::assembly place(*w.all, *w.memory, stage::assembly::holds::whole_sums);
        place.begin(type != dtype::bf16);
        place.open(0);
        CHECK(place.form(0) == sum_type(type));
        write(w, place);
        CHECK(holds_values_and_zeros(w, place));
    }
}
