// The options as typed numbers, checked against each other: what engine, stages and checkpoints read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "optimizer/loss_scale.hpp"
#include "optimizer/optimizer.hpp"
#include "schedule/schedule.hpp"

namespace zero::config {

struct settings {
    // zero_optimization
    int stage = 0;
    bool contiguous_gradients = true, overlap_comm = false;
    std::int64_t reduce_bucket_size = 500'000'000, allgather_bucket_size = 500'000'000, sub_group_size = 1'000'000'000;
    std::int64_t prefetch_bucket_size = 50'000'000, persistence_threshold = 100'000, persistence_total = INT64_MAX;
    std::int64_t max_live_parameters = 1'000'000'000, max_reuse_distance = 1'000'000'000;
    bool sanity_checks = false, ignore_unused_parameters = true;
    bool offload_optimizer = false, offload_optimizer_pinned = true;   // device "cpu"
    double offload_ratio = 1;           // of the states that are offloaded; the rest stays on the device
    bool offload_param = false, offload_param_pinned = true;
    // optimizer
    optimizer::kind optimizer = optimizer::kind::adam;
    optimizer::hyper numbers;                 // of group 0 / the optimizer section, at the base lr
    schedule lr_schedule;
    optimizer::loss_scale_rules loss_scaling;
    double gradient_clipping = 0;
    bool reproducible = false;                // sums do not depend on the number of ranks
    bool gradient_sum = false;                // libzero.gradient_reduction == "sum"
    std::int64_t accumulation_steps = 1;      // A
    std::int64_t micro_batch = 0, train_batch = 0;  // 0: not given
    std::string communication_type;           // "", "fp32", "bf16", "fp16"
    // libzero
    std::string device = "auto";              // host, cuda
    int node_size = 0;
    bool node_shared = true;
    std::string overlap_thread = "auto";  // on, off
    std::string bind = "auto";            // cores, none
    std::int64_t largest_count = 0;
    int threads = 0;                          // 0: as OMP_NUM_THREADS says, else 1
    bool broadcast_initial = true, stale_check = true;
    bool check_grad_overflow = true;          // false: gradients are not looked at before they are applied
    int log_level = -1;                       // -1: not set
    // checkpoint
    std::string checkpoint_load = "strict";   // strict, weights, partial
    std::int64_t ranks_per_file = 1, keep_last = 0, keep_every = 0;
    bool end_window = false;                  // libzero.end_window: the next step ends the accumulation window
    std::vector<std::string> notices;         // what "auto" became, overridden keys: log once, at info
};

// Throws code::config naming the keys that contradict each other (batch sizes against `ranks`, stage against offload).
// "auto" values that need the tensors are resolved with `largest` (elements of the largest tensor; 0 before commit).
// `has_f16`: an fp16 tensor is registered, which is what fp16.enabled "auto" asks.
settings resolve(const options& from, int ranks, std::int64_t largest, bool has_f16 = false);

// The numbers of one group: the optimizer section, overridden by "groups.<group>.*".
struct group_settings {
    optimizer::hyper numbers;
    bool frozen = false, model_replicated = false;
    double lr_ratio = 1;                      // own lr / optimizer.params.lr, kept under a schedule
};
group_settings resolve_group(const options& from, int group);

}  // namespace zero::config
