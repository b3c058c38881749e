// Gradients on their way: hand-overs are added into a bucket; a bucket whose tensors have all come travels, in the
// fixed bucket order on every rank, and leaves its reduced slice with the owner. Not here: where and in which type a
// bucket is built up (assembly.hpp), what the stages do with the slices.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "core/exact_sum.hpp"
#include "stage/assembly.hpp"

namespace zero::stage {

// What the norm and overflow test of an update are made of: this rank's owned elements.
struct totals {
    exact_sum squares;             // of the reduced, divided gradient
    bool finite = true;
};

class reducer {
public:
    reducer(const context& all, storage& memory, assembly::holds how);

    // `active[b]`: the bucket takes part in this window (its group is not frozen). `counted[b]`: its squares count here.
    void begin_window(std::vector<char> active, std::vector<char> counted, std::int64_t micro_steps, double divisor);

    void* buffer_for(int tensor);                         // zero_gradient
    bool has_pending(int tensor) const;                   // zero_gradient was called and not handed over
    void add(int tensor, double factor, const void* gradient);  // null: the buffer of buffer_for
    bool has_late() const noexcept { return !late_.empty(); }
    bool handed(int tensor) const;                        // in this micro-step
    bool handed_in_window(int tensor) const;

    // Ends the micro-step. At a boundary every owned slice is complete and divided when this returns.
    // `late_anywhere`: some rank has additions to a bucket that had left; agreed by the caller.
    void finish(bool boundary, double divisor, bool late_anywhere);
    totals norm() const;                                  // after a boundary
    totals measure() const;                               // again, from the slices as they are now

private:
    struct passenger {             // per tensor
        int handed = 0;            // in this micro-step
        int expected = 0;          // hand-overs in the first micro-step; 0: not known yet
        bool touched = false;      // its place in the bucket holds a sum
        bool direct = false;       // the caller builds the gradient in that place right now
        bool ever = false;         // handed over in this window
        buffer handoff;            // where the caller builds it otherwise
        bool handoff_open = false;
    };
    struct carriage {                 // per bucket
        bool active = true, counted = true;
        bool left = false, divided = false;
        bool narrow = true;        // all that it holds was handed over once, as it is: 16 bits hold it
        std::unique_ptr<comm::operation> travel;
    };

    carriage& coach_of(int bucket) { return coaches_[static_cast<std::size_t>(bucket)]; }
    const carriage& coach_of(int bucket) const { return coaches_[static_cast<std::size_t>(bucket)]; }
    passenger& passenger_of(int tensor) { return passengers_[static_cast<std::size_t>(tensor)]; }
    bool travels(int bucket) const;                       // takes part and has elements
    bool last_micro_step() const noexcept { return micro_step_ + 1 >= micro_steps_; }

    void begin_micro_step();
    void add_here(int tensor, double factor, const void* gradient);
    void accumulate(int tensor, std::byte* place, double factor, const void* gradient, bool assign) const;
    bool somebody_builds_in(int bucket) const;
    void add_late(int tensor, double factor, const void* gradient);
    void board(int bucket);
    bool complete(int bucket);
    void depart_complete();
    void depart(int bucket, bool fuse);
    void wait_for_oldest();
    void poll();
    void travel_late(bool boundary, double divisor);
    void divide(int bucket, double divisor);
    dtype travel_type(int bucket) const;
    std::byte* own_target(int bucket) const;

    const context& all_;
    storage& memory_;
    assembly::holds how_;
    assembly desk_;
    std::vector<passenger> passengers_;
    std::vector<carriage> coaches_;
    std::deque<int> under_way_;
    std::map<int, buffer> late_;
    std::int64_t micro_steps_ = 1, micro_step_ = 0;
    double divisor_ = 1;           // of a full window
    int next_ = 0;                 // the bucket that leaves next
    bool learned_ = false;         // the first micro-step is over
    bool ever_late_ = false;
    totals totals_;
};

}  // namespace zero::stage
