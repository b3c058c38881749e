// Whole values on demand, for tensors whose values live in slices (stage 3): counted gathers, prefetch in the order
// recorded in the first step, copies kept while the record says that they are wanted again soon. Every decision is taken
// on data that is equal on all ranks. Where the node holds the values once, a gather is a look at them: nothing travels, and
// no rank needs another. Not here: tensors that are whole anyway.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "device/private_view.hpp"
#include "device/spares.hpp"
#include "stage/storage.hpp"

namespace zero::stage {

class gathered {
public:
    gathered(const context& all, storage& memory)
        : all_(all), memory_(memory), spares_([this](std::int64_t bytes) { return all_.work.take(all_.book, purpose::gathered, bytes); }) {}

    // True: gathers are looks, prepare() and finish() are all there is to them, and both are local.
    bool only_looks() const { return memory_.values_of_node() != nullptr; }

    // A gather in parts. prepare() is local and runs inside an agreement: it checks the live cap, makes room for all tensors
    // of the call, plans prefetches behind the last of them, and says what this rank lacks. With the agreed answer (largest
    // `lacking`, smallest `ahead` of all ranks) begin() transfers each tensor, look_ahead() starts the planned prefetches
    // once per call, and finish() waits for a tensor and counts one gather.
    struct wish {
        bool lacking = true;    // the values are neither here, unchanged, nor on their way
        std::int64_t ahead = 0; // entries of the record that this rank has room to prefetch
    };
    wish prepare(std::span<const int> tensors);
    wish prepare_ahead(int tensor);               // for prefetch: `ahead` is 1 where there is room
    void give_up();                               // takes back what prepare() made room for and no transfer began to fill
    void begin(int tensor, const wish& agreed);   // starts the transfer (several may be started before the first is finished)
    void look_ahead(std::span<const int> tensors, const wish& agreed);
    void* finish(int tensor);
    void prefetch(int tensor, const wish& agreed);  // begin without counting a gather
    void release(int tensor);                   // code::state when it is not gathered
    int holders(int tensor) const;              // gathers without their release
    bool is_open(int tensor) const { return holders(tensor) > 0; }
    bool any_open() const noexcept { return open_ > 0; }
    void refresh_open();                        // values have changed under copies that somebody holds (collective)
    void end_of_step();                         // closes the record, drops what nobody holds
    void drop_idle();
    std::int64_t live_elements() const noexcept { return live_; }

private:
    struct copy {
        buffer memory;
        void* look = nullptr;                   // instead of memory, where gathers are looks
        int holders = 0;
        bool ready = false;
        std::uint64_t digest = 0;               // of the values as they arrived, for copies that may be kept
        std::unique_ptr<comm::operation> travel;
    };
    void hold(copy& one);
    void* look(int tensor, bool whole_pages);   // at the node's values as they are now
    void make_room(int tensor);
    void drop(int tensor);
    void transfer(int tensor);
    void follow_record(int tensor);
    void keep_below_cap(std::span<const int> tensors);
    bool lacks(int tensor) const;
    std::int64_t room_ahead(std::size_t behind);          // the next `behind` entries are gathered by this very call
    bool stays_by_record(std::size_t position) const;     // the copy of that entry is kept until then anyway
    std::int64_t distance_to_next_use(int tensor) const;  // elements gathered in between; -1: not in the record again
    std::int64_t count(int tensor) const;       // elements that a copy makes live

    const context& all_;
    storage& memory_;
    spares spares_;
    std::unique_ptr<private_view> view_;
    std::map<int, copy> copies_;
    int open_ = 0;                              // copies that somebody holds
    std::vector<int> record_;                   // order of gathers in the first step
    bool recorded_ = false;
    std::size_t cursor_ = 0;                    // the record's entry that the next gather should be
    std::size_t ahead_ = 0;                     // entries before this one have been prefetched or passed
    std::vector<int> planned_;                  // prefetches made room for, not yet agreed
    std::int64_t live_ = 0;
};

}  // namespace zero::stage
