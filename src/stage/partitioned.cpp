// Stages 1, 2 and 3: optimizer states and masters are slices, every rank updates its own, and the stages differ in what
// else is a slice.
//              parameters  gradients   gradients travel                            values after the update
//   1 (P_os)     whole       whole     once per window: sums of micro-steps        all-gather
//   2 (P_os+g)   whole       slice     every micro-step, bucket by bucket          all-gather
//   3 (P_os+g+p) slice       slice     every micro-step, bucket by bucket          stay; gathered on demand (gathered.hpp)
// Tensors of stage 3 up to the persistence threshold stay whole and are treated as in stage 2. Values that the ranks of a node keep
// once for all (storage::exists_once) need a fence in place of the all-gather, and no copy to be gathered.
#include "stage/stage.hpp"

namespace zero::stage {

namespace {

class partitioned final : public sharded {
public:
    partitioned(const context& all, bool whole_gradients)
        : sharded(all, {whole_gradients || all.alone(), false},
                  whole_gradients ? assembly::holds::whole_sums : assembly::holds::ring) {}

    void update(const update_numbers& numbers) override {
        updater_.run(numbers);
        publish_trained();
    }

    void publish() override {
        for (int b = 0; b < all_.buckets(); ++b) moves_->round_masters(b);
        publish_trained();
    }

    void follow(const std::set<std::string>&) override {}  // only values are whole, and publish sees to them
};

}  // namespace

std::unique_ptr<sharded> make_stage1(const context& all) { return std::make_unique<partitioned>(all, true); }
std::unique_ptr<sharded> make_stage2(const context& all) { return std::make_unique<partitioned>(all, false); }
std::unique_ptr<sharded> make_stage3(const context& all) { return std::make_unique<partitioned>(all, false); }

}  // namespace zero::stage
