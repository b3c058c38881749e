// What all stages share. See stage.hpp.
#include "stage/stage.hpp"

#include "core/error.hpp"

namespace zero::stage {

// A lone rank owns everything: its sums never wait for others, so they are kept whole in every stage.
sharded::sharded(const context& all, const coverage& what, assembly::holds gradients_are)
    : all_(all),
      memory_(all_, what),
      updater_(all_, memory_, all.how.optimizer),
      copies_(all_, memory_),
      gradients_are_(all.alone() ? assembly::holds::whole_sums : gradients_are) {}

void sharded::take_values() {
    memory_.take_values();
    moves_ = std::make_unique<values>(all_, memory_);
}

void sharded::take_rest(const std::vector<std::string>& optimizer_states, const std::vector<std::string>& user_states) {
    memory_.take_rest(optimizer_states, user_states);
    updater_.take_staging();
    gradients_ = std::make_unique<reducer>(all_, memory_, gradients_are_);
}

void sharded::values_changed(bool copies_open_anywhere) {
    if (copies_open_anywhere) copies_.refresh_open();
    copies_.drop_idle();
}

void* sharded::whole(int tensor) const {
    return is_whole(tensor) || memory_.exists_once(all_.space.where(tensor).bucket) ? memory_.value(tensor, 0) : nullptr;
}

std::vector<char> sharded::sum_and_update(double divisor, const update_numbers& numbers) {
    return gradients_->finish_applied(divisor, [&](int bucket, partition::range part, const std::byte* gradient) {
        updater_.run_range(bucket, part, gradient, numbers);
    });
}

void sharded::publish_trained() {
    for (int b = 0; b < all_.buckets(); ++b)
        if (memory_.trainable(b)) moves_->send_out(b);
    if (memory_.values_of_node() != nullptr) all_.ranks.fence();
}

std::unique_ptr<sharded> make(const context& all) {
    switch (all.how.stage) {
        case 0: return make_stage0(all);
        case 1: return make_stage1(all);
        case 2: return make_stage2(all);
        case 3: return make_stage3(all);
        default: fail(code::config, "zero_optimization.stage is {}: it must be 0, 1, 2 or 3", all.how.stage);
    }
}

std::vector<std::string> optimizer_states(const config::settings& how) {
    return optimizer::state_names(how.optimizer, how.numbers.momentum);
}

partition::rules layout_rules(const config::settings& how, const partition::topology& where) {
    partition::rules rules;
    rules.where = where;
    // Without contiguous buckets every tensor travels alone.
    rules.bucket_elements = how.contiguous_gradients ? how.reduce_bucket_size : 1;
    rules.shard_values = how.stage == 3;
    rules.persistence_threshold = how.persistence_threshold;
    rules.persistence_total = how.persistence_total;
    return rules;
}

}  // namespace zero::stage
