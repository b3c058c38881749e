// Stage 0: plain data parallelism. Parameters, gradients and states are whole on every rank.
//   gradients: reduce-scatter now, all-gather before the update (together an all-reduce)
//   update:    everything, on every rank; values that the ranks of a node keep once are written by each for its share
//   values:    are equal everywhere already
#include "stage/stage.hpp"

namespace zero::stage {

namespace {

class replicated final : public sharded {
public:
    explicit replicated(const context& all) : sharded(all, {true, true}, assembly::holds::whole_sums) {}

    void update(const update_numbers& numbers) override {
        follow({"gradient"});
        updater_.run(numbers);
        if (memory_.values_of_node() != nullptr) all_.ranks.fence();
    }

    void publish() override { follow({"value"}); }

    // The owner's slice of each written vector becomes everybody's.
    void follow(const std::set<std::string>& written) override {
        for (int b = 0; b < all_.buckets(); ++b) {
            if (!memory_.trainable(b)) continue;
            const dtype sum = sum_type(all_.bucket(b).type);
            if (written.count("gradient") != 0) moves_->gather_vector(b, memory_.gradients(b), sum);
            if (written.count("value") != 0) {
                if (memory_.has_master(b)) moves_->gather_vector(b, memory_.master_at(b, 0), sum);
                moves_->round_masters(b);
                moves_->publish(b);
            }
            for (std::size_t s = 0; s < memory_.state_names().size(); ++s)
                if (written.count(memory_.state_names()[s]) != 0) moves_->gather_vector(b, memory_.state_at(b, s, 0), sum);
        }
    }
};

}  // namespace

std::unique_ptr<sharded> make_stage0(const context& all) { return std::make_unique<replicated>(all); }

}  // namespace zero::stage
