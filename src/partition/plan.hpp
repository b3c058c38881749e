// The planner: how many bytes a context takes, from the layout alone. The stages allocate exactly these amounts, so the
// forecast equals the ledger. Formulas: design of ZeRO (Rajbhandari et al., 2020, section 5) with fp32 sums.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ledger.hpp"
#include "partition/layout.hpp"

namespace zero::partition {

constexpr std::int64_t running_bytes = 16;  // per owned trainable element: two doubles

struct plan_rules {
    int stage = 0;
    int optimizer_states = 2;     // vectors per trainable element in the sum type
    int user_states = 0;
    std::int64_t ring = 2;        // staging buckets of stages 2 and 3
    std::int64_t exchange_bytes = 0;  // what the communicator's chunks take (comm::communicator::scratch_bytes)
    // Of values that live on a device: what lies in host memory all the same.
    double states_offloaded = 0;      // this part of them, in whole buckets
    bool slices_offloaded = false;
    std::int64_t offload_bytes = 0;   // of device memory for that
    std::int64_t host_bytes = 0;      // of host memory for that and for what travels through it
    std::int64_t publish_bytes = 0;   // staging for values that live in the caller's arrays
    bool running_sums = false;    // exact sums are kept over the micro-steps of a window (running_bytes)
    bool node_memory = false;     // the ranks of each node share memory
    int copies_of_save = 0;       // in host memory while a save or load is under way: of what the rank owns ...
    std::int64_t attached_bytes = 0;  // ... and of attached arrays, each from the beginning of a page
};

// Whether a bucket's values exist once for all ranks of a node: where these share memory, but for stage 0, in which every rank
// updates everything, for arrays of the caller, and for stage 3 on several nodes, whose slices lie all over them. Then each
// rank accounts for its share of the node: its slice and those of its peers on the other nodes.
bool exists_once(const bucket& one, const topology& ranks, int stage, bool node_memory) noexcept;

// By bucket: whether its states (and masters) are offloaded, when that part of all of them is. Spread over the order of the buckets, so
// that what the host and the device update grows alike.
std::vector<bool> offloaded_buckets(const layout& space, double part);

struct forecast {
    using by_purpose = std::array<std::int64_t, static_cast<std::size_t>(purpose::count_)>;
    by_purpose bytes{};                          // where values live
    by_purpose offloaded{};                      // of host memory beside that
    std::int64_t total() const noexcept;
    static std::int64_t model_states(const by_purpose& of) noexcept;  // parameters + gradients + master + states
    std::int64_t model_states() const noexcept { return model_states(bytes); }
    std::int64_t largest_gather = 0;             // stage 3: bytes of the largest bucket of whole values
    std::int64_t copies_of_save = 0;             // at most: padding is not saved
    struct amount {
        std::int64_t bytes = 0, peak = 0;        // peak: one tensor gathered at a time
    };
    amount at(place where, place values_live) const noexcept {
        amount all;
        if (where == values_live) all = {total(), total() + largest_gather};
        if (where != place::host) return all;
        if (where != values_live)
            for (const std::int64_t of : offloaded) all.bytes = all.peak += of;
        all.peak += copies_of_save;
        return all;
    }
};

forecast plan(const layout& space, const plan_rules& how);

}  // namespace zero::partition
