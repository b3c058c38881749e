// Gradients on their way: hand-overs are added into a bucket; a bucket whose tensors have all come travels, in the
// fixed bucket order on every rank, and leaves its reduced slice with the owner. Not here: where and in which type a
// bucket is built up (assembly.hpp), what the stages do with the slices.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "stage/assembly.hpp"
#include "stage/running_sums.hpp"

namespace zero::stage {

using compute::totals;  // of this rank's owned elements: the reduced, divided gradient

class reducer {
public:
    reducer(const context& all, storage& memory, assembly::holds how);
    ~reducer();
    reducer(const reducer&) = delete;
    reducer& operator=(const reducer&) = delete;

    // `active[b]`: the bucket takes part in this window (its group is not frozen). `counted[b]`: its squares count here.
    void begin_window(std::vector<char> active, std::vector<char> counted, std::int64_t micro_steps, double divisor);

    void* buffer_for(int tensor);                         // zero_gradient
    bool has_pending(int tensor) const;                   // zero_gradient was called and not handed over
    void add(int tensor, double factor, const void* gradient);  // null: the buffer of buffer_for
    bool has_late() const noexcept { return !late_.empty(); }
    bool handed_in_window(int tensor) const;

    // Ends the micro-step. At a boundary every owned slice is complete and divided when this returns.
    // `late_anywhere`: some rank has additions to a bucket that had left; agreed by the caller.
    void finish(bool boundary, double divisor, bool late_anywhere);
    // A boundary without additions that come late. Those buckets that are still here are applied while they are summed, by several
    // threads, and not kept: which ones, by bucket. `part`: elements of the bucket, of the own slice.
    using apply = std::function<void(int bucket, partition::range part, const std::byte* gradient)>;
    std::vector<char> finish_applied(double divisor, const apply& each);
    totals norm() const;                                  // after a boundary; nothing without check_grad_overflow
    totals measure() const;                               // again, from the slices as they are now

private:
    struct tensor_state {
        int handed = 0;            // in this micro-step
        int expected = 0;          // hand-overs in the first micro-step; 0: not known yet
        bool touched = false;      // its place in the bucket holds a sum
        bool direct = false;       // the caller builds the gradient in that place right now
        bool ever = false;         // handed over in this window
        buffer handoff;            // where the caller builds it otherwise
        bool handoff_open = false;
    };
    struct bucket_state {
        bool active = true, counted = true;
        bool left = false, divided = false;
        std::size_t complete_before = 0;  // in its list of tensors
        bool narrow = true;        // all that it holds was handed over once, as it is: 16 bits hold it
        std::unique_ptr<comm::operation> travel;
    };

    bucket_state& of_bucket(int bucket) { return buckets_[static_cast<std::size_t>(bucket)]; }
    const bucket_state& of_bucket(int bucket) const { return buckets_[static_cast<std::size_t>(bucket)]; }
    tensor_state& of_tensor(int tensor) { return tensors_[static_cast<std::size_t>(tensor)]; }
    bool travels(int bucket) const;                       // takes part and has elements
    bool every_micro_step() const noexcept { return how_ == assembly::holds::ring || all_.how.reproducible; }  // buckets travel
    running_sums* running(int bucket) { return running_.empty() ? nullptr : &running_[static_cast<std::size_t>(bucket)]; }
    void find_first_to_stay();
    bool last_micro_step() const noexcept { return micro_step_ + 1 >= micro_steps_; }

    void begin_micro_step();
    void add_here(int tensor, double factor, const void* gradient);
    void accumulate(int tensor, std::byte* place, double factor, const void* gradient, bool assign) const;
    bool somebody_builds_in(int bucket) const;
    void add_late(int tensor, double factor, const void* gradient);
    bool must_wait_for_room(int bucket) const;
    void wait_a_while_for_room();
    void open_bucket(int bucket);
    bool complete(int bucket);
    void depart_complete();
    void depart(int bucket, bool fuse, const apply* each = nullptr);
    void wait_for_oldest();
    std::vector<char> finish_sums(bool fuse, const apply* each = nullptr);
    void end_micro_step();
    void poll();
    const buffer& late_sums(int bucket);
    void travel_late(bool boundary, double divisor);
    void divide_and_measure(int bucket, std::int64_t first, std::int64_t count, double divisor, totals& into) const;
    void divide(int bucket, double divisor);
    void measure_slice(int bucket, double divisor, totals& into) const;
    void collect_measures();
    dtype travel_type(int bucket) const;
    std::byte* own_target(int bucket) const;

    const context& all_;
    storage& memory_;
    assembly::holds how_;
    assembly assembly_;
    std::vector<tensor_state> tensors_;
    std::vector<bucket_state> buckets_;
    std::deque<int> under_way_;
    std::map<int, buffer> late_;
    std::deque<running_sums> running_;  // of each bucket, or none at all
    std::int64_t micro_steps_ = 1, micro_step_ = 0;
    double divisor_ = 1;           // of a full window
    int next_ = 0;                 // the bucket that leaves next
    int first_to_stay_ = 0;        // in the last micro-step of a window, from here on buckets wait for its end
    bool learned_ = false;         // the first micro-step is over
    bool ever_late_ = false;
    bool ever_uneven_ = false;     // a rank fell so far behind that waiting for it was given up
    totals totals_;
    std::vector<totals> by_member_;  // of the crew: what enters totals_ when all sums are there
};

}  // namespace zero::stage
