// The ZeRO schedules (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020,
// sections 5 and 7): what is whole and what is a slice, and what travels when. replicated.cpp and partitioned.cpp say only that; the
// mechanics are storage, reducer, updater, values and gathered. Not here: checks of the caller's order (engine/).
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "stage/gathered.hpp"
#include "stage/reducer.hpp"
#include "stage/updater.hpp"
#include "stage/values.hpp"

namespace zero::stage {

// What differs between the stages; everything else is shared.
class sharded {
public:
    virtual ~sharded() = default;

    // Memory, in two calls (see storage.hpp).
    void take_values();
    void take_rest(const std::vector<std::string>& optimizer_states, const std::vector<std::string>& user_states);

    // The schedule. The gradient comes in by gradients().add and gradients().finish.
    bool updates_while_summing() const { return (all_.how.stage > 0 || all_.alone()) && updater_.takes_ranges(); }
    std::vector<char> sum_and_update(double divisor, const update_numbers& numbers);  // then update does the rest: all but these buckets
    virtual void update(const update_numbers& numbers) = 0;  // the optimizer, then values everywhere
    virtual void publish() = 0;                              // owned values -> values everywhere, no update
    // Owned parts of these vectors were written by hand: whatever this stage holds whole follows. Collective; the set is agreed.
    virtual void follow(const std::set<std::string>& written) = 0;
    // Values have changed: copies of whole values are renewed where somebody holds them, and dropped elsewhere. Collective.
    void values_changed(bool copies_open_anywhere);
    // The whole values of a tensor, in every rank's or in the node's memory; null when only slices are held.
    void* whole(int tensor) const;
    bool is_whole(int tensor) const { return all_.bucket(all_.space.where(tensor).bucket).whole_values; }
    // A gather gives a copy or a look, in which a rank may scribble by itself; else the array.
    bool gathers_apart(int tensor) const { return !is_whole(tensor) || memory_.exists_once(all_.space.where(tensor).bucket); }

    storage& memory() noexcept { return memory_; }
    const storage& memory() const noexcept { return memory_; }
    reducer& gradients() noexcept { return *gradients_; }
    values& moves() noexcept { return *moves_; }
    gathered& copies() noexcept { return copies_; }
    updater& optimizer() noexcept { return updater_; }

protected:
    sharded(const context& all, const coverage& what, assembly::holds gradients_are);
    void publish_trained();                                  // every bucket that an optimizer or a caller may have changed

    context all_;
    storage memory_;
    updater updater_;
    gathered copies_;
    std::unique_ptr<reducer> gradients_;
    std::unique_ptr<values> moves_;

private:
    assembly::holds gradients_are_;
};

std::unique_ptr<sharded> make_stage0(const context& all);  // replicated.cpp
std::unique_ptr<sharded> make_stage1(const context& all);  // partitioned.cpp
std::unique_ptr<sharded> make_stage2(const context& all);
std::unique_ptr<sharded> make_stage3(const context& all);
std::unique_ptr<sharded> make(const context& all);         // by how.stage

// Vectors that the optimizer keeps and what the planner must know, from the settings.
std::vector<std::string> optimizer_states(const config::settings& how);
partition::rules layout_rules(const config::settings& how, const partition::topology& where);

}  // namespace zero::stage
