// Whole values on demand, for tensors whose values live in slices (stage 3): counted gathers, prefetch in the order
// recorded in the first step, copies kept while the record says that they are wanted again soon. Every decision is taken
// on data that is equal on all ranks. Not here: tensors that are whole anyway.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "stage/storage.hpp"

namespace zero::stage {

class gathered {
public:
    gathered(const context& all, storage& memory) : all_(all), memory_(memory) {}

    // A gather in two halves. prepare() is local and runs inside an agreement: it checks the live cap, makes room and
    // says what this rank lacks. The agreed answer (largest `lacking`, smallest `ahead` of all ranks) goes to finish(),
    // which transfers what is needed, counts one gather and starts the prefetches.
    struct wish {
        bool lacking = true;    // the values are neither here, unchanged, nor on their way
        std::int64_t ahead = 0; // entries of the record that this rank has room to prefetch
    };
    wish prepare(int tensor);
    void begin(int tensor, const wish& agreed);   // starts the transfer (several may be started before the first is finished)
    void* finish(int tensor, const wish& agreed);
    void prefetch(int tensor, const wish& agreed);  // begin without counting a gather
    void release(int tensor);                   // code::state when it is not gathered
    bool is_open(int tensor) const;             // gathered and not released
    bool any_open() const;
    void refresh_open();                        // values have changed under copies that somebody holds (collective)
    void end_of_step();                         // closes the record, drops what nobody holds
    void drop_idle();
    std::int64_t live_elements() const noexcept { return live_; }

private:
    struct copy {
        buffer memory;
        int holders = 0;
        bool ready = false;
        std::uint64_t digest = 0;               // of the values as they arrived, for copies that may be kept
        std::unique_ptr<comm::operation> travel;
    };
    void make_room(int tensor);
    void drop(int tensor);
    void transfer(int tensor);
    void follow_record(int tensor);
    std::int64_t room_ahead();
    bool stays_by_record(std::size_t position) const;     // the copy of that entry is kept until then anyway
    std::int64_t distance_to_next_use(int tensor) const;  // elements gathered in between; -1: not in the record again
    std::int64_t count(int tensor) const { return all_.tensors.at(tensor).count; }

    const context& all_;
    storage& memory_;
    std::map<int, copy> copies_;
    std::vector<int> record_;                   // order of gathers in the first step
    bool recorded_ = false;
    std::size_t cursor_ = 0;                    // the record's entry that the next gather should be
    std::size_t ahead_ = 0;                     // entries before this one have been prefetched or passed
    std::vector<int> planned_;                  // prefetches made room for, not yet agreed
    std::int64_t live_ = 0;
};

}  // namespace zero::stage
