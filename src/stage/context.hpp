// What every part of a stage works with. The engine owns all of it and outlives the stage.
#pragma once
#include "comm/communicator.hpp"
#include "compute/processor.hpp"
#include "config/settings.hpp"
#include "core/agreement.hpp"
#include "core/crew.hpp"
#include "core/ledger.hpp"
#include "core/log.hpp"
#include "partition/plan.hpp"
#include "tensor/registry.hpp"

namespace zero::stage {

struct context {
    const registry& tensors;
    const partition::layout& space;
    comm::communicator& ranks;
    ledger& book;
    agreement& agree;
    zero::log& logger;
    const config::settings& how;
    crew& threads;
    compute::processor& work;       // on values and gradients, where they lie

    bool alone() const noexcept { return ranks.size() == 1; }
    // Where contributions lie, so that other ranks read them in place; null: in memory of this rank alone.
    node_memory* read_by_others() const noexcept { return alone() ? nullptr : ranks.shared(); }
    bool exists_once(const partition::bucket& b) const noexcept {
        return partition::exists_once(b, space.ranks(), how.stage, ranks.shared() != nullptr);
    }
    int buckets() const noexcept { return static_cast<int>(space.buckets().size()); }
    const partition::bucket& bucket(int index) const { return space.buckets()[static_cast<std::size_t>(index)]; }
    partition::range own_slice(int index) const { return space.slice_of(index, ranks.rank()); }
    // Of what exists once per node: the slices of this rank and its peers on the other nodes, which lie in a row.
    partition::range share_of_node(int index) const {
        const std::int64_t elements_each = bucket(index).padded / space.ranks().per_node();
        return {space.ranks().local_of(ranks.rank()) * elements_each, elements_each};
    }
};

}  // namespace zero::stage
