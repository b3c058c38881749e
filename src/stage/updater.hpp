// The optimizer's pass over everything this rank holds states for. Not here: the element updates (optimizer/), and what
// must have travelled before or travels after (the stages).
#pragma once
#include <memory>
#include <vector>

#include "core/postponed.hpp"
#include "offload/device_update.hpp"
#include "offload/host_update.hpp"
#include "optimizer/optimizer.hpp"
#include "stage/storage.hpp"

namespace zero::stage {

// What one update needs to know, equal on all ranks.
struct update_numbers {
    std::vector<optimizer::hyper> groups;  // by group, at the rate of this update
    std::vector<char> frozen;              // by group
    double clip_factor = 1;
    std::vector<char> applied;             // by bucket: has been updated while it was summed; empty: none
    std::int64_t step = 1;                 // number of this update, from 1
};

// Elements of the longest parts that an update on a device passes on (offload/): of buckets whose states are offloaded, and of those
// whose values are, but not their states. 0: none.
struct passing {
    std::int64_t states = 0, values = 0;
};
passing passing_parts(const partition::layout& space, const config::settings& how);

class updater {
public:
    updater(const context& all, storage& memory, optimizer::kind which) : all_(all), memory_(memory), which_(which) {}
    void take_staging();  // for what is offloaded; nothing else
    void run(const update_numbers& numbers);
    // One range of a bucket, by one thread, with a gradient from elsewhere.
    void run_range(int bucket, partition::range part, const std::byte* gradient, const update_numbers& numbers);
    bool takes_ranges() const { return which_ != optimizer::kind::lamb && !on_host_ && all_.work.on_host(); }
    bool keeps_gradient() const noexcept { return which_ != optimizer::kind::lamb; }

private:
    bool trains(int bucket, const update_numbers& numbers) const;  // and has not been applied
    optimizer::update_range range_of(int bucket, const stretch& part) const;
    enum class whose { others, own };  // values: those that another rank of the node writes, or that this one does
    std::vector<stretch> of(whose values, int bucket, const stretch& whole) const;
    template <typename Each>
    void each_range(const update_numbers& numbers, const Each& each) const;
    void run_on_device(const update_numbers& numbers);
    // Ranges on a device that are treated alike; which of them are offloaded is known by their bucket.
    struct ranges {
        std::vector<optimizer::update_range> together, values_pass;
        std::vector<offload::host_update::part> states_pass;
        std::vector<std::size_t> tags_of_values, tags_of_states;
        void add(const storage& memory, int bucket, const optimizer::update_range& range, std::size_t tag);
    };
    void pass_on(const ranges& all, offload::changes what, const compute::note& ready, const offload::action& act);
    void run_bucket(int bucket, whose values, const update_numbers& numbers);
    void let_values_be_written();

    // LAMB (updater.cpp says why in batches).
    struct lamb_batch;
    void run_lamb(const update_numbers& numbers);
    void update_batch(lamb_batch batch, const update_numbers& numbers);
    void take_directions(lamb_batch& batch, const update_numbers& numbers);
    void sum_over_ranks(lamb_batch& batch, const postponed& directions);
    void apply_directions(const lamb_batch& batch, const update_numbers& numbers);

    const context& all_;
    storage& memory_;
    optimizer::kind which_;
    std::unique_ptr<offload::host_update> on_host_;
    std::unique_ptr<offload::device_update> on_device_;  // of values in host memory
};

}  // namespace zero::stage
