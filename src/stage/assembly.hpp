// Where this rank's contribution to a bucket is built up, and in which type. Two ways to hold it: sums whole (stages 0
// and 1: in the gradients' memory, over a window), or in a small ring of staging buckets (stages 2 and 3: for one
// micro-step). A contribution to a 16-bit bucket is kept in its short form, as it was handed over and as it travels,
// until something is added that 16 bits cannot hold. Not here: who hands over what, and when a bucket leaves (reducer).
#pragma once
#include <deque>
#include <vector>

#include "stage/storage.hpp"

namespace zero::stage {

constexpr int ring_size = 2;

class assembly {
public:
    enum class holds { whole_sums, ring };

    assembly(const context& all, storage& memory, holds how);

    void begin(bool one_micro_step);            // nothing is built yet; ring: at every micro-step, else at every window
    bool is_open(int bucket) const { return place_of(bucket).open; }
    bool has_room() const { return how_ == holds::whole_sums || !free_.empty(); }
    void open(int bucket);                      // takes a staging bucket; the ring grows when none is free
    void close(int bucket);                     // has left: the staging bucket is free again

    // Of an open bucket.
    std::byte* base(int bucket) const;
    dtype form(int bucket) const { return place_of(bucket).form; }  // the bucket's own 16-bit type, or the sum type
    bool is_short(int bucket) const { return is_16bit(form(bucket)); }
    std::byte* at(int tensor) const;
    void clear(int tensor);
    void widen(int bucket);                     // from the short form to the sum type, in place

private:
    struct place {
        buffer* staging = nullptr;              // ring only
        bool open = false;
        dtype form = dtype::f32;
        std::int64_t short_at = -1;             // where the short form begins, in bytes; -1: there is no room for it
    };
    place& place_of(int bucket) { return places_[static_cast<std::size_t>(bucket)]; }
    const place& place_of(int bucket) const { return places_[static_cast<std::size_t>(bucket)]; }
    std::int64_t room_for_short(int bucket) const;
    void clear_gaps(int bucket);

    const context& all_;
    storage& memory_;
    holds how_;
    bool short_forms_ = true;                   // this time
    std::vector<place> places_;
    std::deque<buffer> ring_;
    std::vector<buffer*> free_;
};

}  // namespace zero::stage
