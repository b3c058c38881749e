// Hand-overs, departures and arrivals of gradients. See reducer.hpp.
#include "stage/reducer.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/postponed.hpp"

namespace zero::stage {

reducer::reducer(const context& all, storage& memory, assembly::holds how)
    : all_(all), memory_(memory), how_(how), assembly_(all, memory, how) {
    tensors_.resize(static_cast<std::size_t>(all.tensors.count()));
    buckets_.resize(static_cast<std::size_t>(all.buckets()));
    for (int b = 0; keeps_running_sums(all.how) && b < all.buckets(); ++b)
        running_.emplace_back(all.book, all.bucket(b).trainable ? all.bucket(b).slice : 0);
}

reducer::~reducer() { all_.work.forget(by_member_); }

bool reducer::travels(int bucket) const {
    const auto& b = all_.bucket(bucket);
    return b.trainable && b.padded > 0 && of_bucket(bucket).active;
}

void reducer::begin_window(std::vector<char> active, std::vector<char> counted, std::int64_t micro_steps, double divisor) {
    for (int b = 0; b < all_.buckets(); ++b) {
        of_bucket(b).active = active[static_cast<std::size_t>(b)] != 0;
        of_bucket(b).counted = counted[static_cast<std::size_t>(b)] != 0;
        of_bucket(b).divided = false;
        of_bucket(b).narrow = true;
    }
    for (auto& p : tensors_) p.touched = p.ever = false;
    micro_steps_ = micro_steps;
    micro_step_ = 0;
    divisor_ = divisor;
    totals_ = {};
    all_.work.forget(by_member_);  // of a window that failed
    by_member_.assign(static_cast<std::size_t>(all_.threads.members()), {});
    if (!every_micro_step()) assembly_.begin(micro_steps == 1);
    find_first_to_stay();
    begin_micro_step();
}

// A bucket that is still here may be applied by the step while it is summed, which moves less memory. Those of a ring that nothing
// comes after stay for that; where sums are to overlap with the caller's work, only the last.
void reducer::find_first_to_stay() {
    first_to_stay_ = all_.buckets();
    if (all_.how.check_grad_overflow || how_ != assembly::holds::ring) return;
    const int most = all_.how.overlap_comm ? 1 : ring_size;
    for (int b = all_.buckets() - 1, staying = 0; b >= 0 && staying < most; --b) {
        if (!travels(b)) continue;
        first_to_stay_ = b;
        ++staying;
    }
}

void reducer::begin_micro_step() {
    next_ = 0;
    for (auto& c : buckets_) {
        c.left = false;
        c.complete_before = 0;
    }
    for (auto& p : tensors_) {
        p.handed = 0;
        p.direct = p.handoff_open = false;
        if (every_micro_step()) p.touched = false;
    }
    if (!every_micro_step()) return;
    for (auto& c : buckets_) c.narrow = true;
    assembly_.begin(true);
}

std::byte* reducer::own_target(int bucket) const {
    return memory_.gradient_at(bucket, all_.own_slice(bucket).first);
}

bool reducer::handed_in_window(int tensor) const { return tensors_[static_cast<std::size_t>(tensor)].ever; }

bool reducer::has_pending(int tensor) const {
    const auto& p = tensors_[static_cast<std::size_t>(tensor)];
    return p.direct || p.handoff_open;
}

bool reducer::must_wait_for_room(int bucket) const {
    return !assembly_.is_open(bucket) && !assembly_.has_room() && !under_way_.empty();
}

void reducer::open_bucket(int bucket) {
    if (must_wait_for_room(bucket)) wait_a_while_for_room();
    assembly_.open(bucket);
}

// A hand-over is local: another rank may have nothing for the oldest bucket and be on its way into a collective call, where
// it waits for this rank. So after a while, which no two ranks that keep step need, one more staging bucket is taken.
void reducer::wait_a_while_for_room() {
    const auto end = std::chrono::steady_clock::now() + (ever_uneven_ ? std::chrono::milliseconds(10) : std::chrono::milliseconds(500));
    do {
        poll();
        if (assembly_.has_room()) return;
        std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < end);
    ever_uneven_ = true;
}

void* reducer::buffer_for(int tensor) {
    auto& p = of_tensor(tensor);
    const auto& t = all_.tensors.at(tensor);
    const int bucket = all_.space.where(tensor).bucket;
    if (t.count == 0) return nullptr;
    if (p.handoff_open) return p.handoff.data();
    if (p.direct) return assembly_.at(tensor);
    of_bucket(bucket).complete_before = 0;
    if (!p.touched && !of_bucket(bucket).left) {
        open_bucket(bucket);
        if (assembly_.form(bucket) == t.type) {
            assembly_.clear(tensor);
            p.direct = true;
            return assembly_.at(tensor);
        }
    }
    if (!p.handoff) p.handoff = all_.work.take(all_.book, purpose::handoff, t.bytes());
    else all_.work.clear(p.handoff.data(), t.bytes());
    p.handoff_open = true;
    return p.handoff.data();
}

void reducer::accumulate(int tensor, std::byte* place, double factor, const void* gradient, bool assign) const {
    const auto& t = all_.tensors.at(tensor);
    all_.work.accumulate(sum_type(t.type), place, t.type, gradient, factor, t.count, assign);
}

bool reducer::somebody_builds_in(int bucket) const {
    const auto& ids = all_.bucket(bucket).tensors;
    return std::any_of(ids.begin(), ids.end(), [&](int id) { return tensors_[static_cast<std::size_t>(id)].direct; });
}

// Into the bucket, which is open. `gradient` may be the tensor's own place.
void reducer::add_here(int tensor, double factor, const void* gradient) {
    auto& p = of_tensor(tensor);
    const auto& t = all_.tensors.at(tensor);
    const int bucket = all_.space.where(tensor).bucket;
    const bool in_place = gradient == assembly_.at(tensor), first = in_place || !p.touched;
    if (first && factor == 0) {  // reads nothing
        assembly_.clear(tensor);
    } else if (first && factor == 1) {
        if (in_place) return;
        if (assembly_.is_short(bucket)) all_.work.convert(t.type, assembly_.at(tensor), t.type, gradient, t.count);
        else accumulate(tensor, assembly_.at(tensor), 1, gradient, true);
    } else if (factor != 0) {
        of_bucket(bucket).narrow = false;
        if (assembly_.is_short(bucket)) assembly_.widen(bucket);
        std::byte* place = assembly_.at(tensor);
        if (in_place) all_.work.accumulate(assembly_.form(bucket), place, assembly_.form(bucket), place, factor, t.count, true);
        else accumulate(tensor, place, factor, gradient, first);
    }
}

void reducer::add(int tensor, double factor, const void* gradient) {
    auto& p = of_tensor(tensor);
    const auto& t = all_.tensors.at(tensor);
    const int bucket = all_.space.where(tensor).bucket;
    auto& state = of_bucket(bucket);
    if (t.count > 0 && state.active) {
        const bool own_buffer = gradient == nullptr, built_here = own_buffer && p.direct;
        if (own_buffer) gradient = built_here ? assembly_.at(tensor) : p.handoff.data();
        const bool place_in_use = p.direct && !built_here;
        if (built_here) p.direct = false;
        const bool as_it_is = factor == 0 || (factor == 1 && (built_here || !p.touched));
        const auto blocked = [&] {  // its place is being written by the caller, or the bucket would have to move
            return place_in_use || (assembly_.is_open(bucket) && assembly_.is_short(bucket) && !as_it_is && somebody_builds_in(bucket));
        };
        if (state.left || blocked()) {
            require(factor == 0 || !all_.how.reproducible, code::state,
                    "libzero.reproducible: '{}' was handed over again when its bucket had left, or while its buffer of zero_gradient is "
                    "being filled, and what comes late is rounded by itself: add up the parts and hand them over once per micro-step", t.name);
            if (factor != 0) add_late(tensor, factor, gradient);
        } else {
            open_bucket(bucket);
            add_here(tensor, factor, gradient);
            p.touched = true;
        }
        if (own_buffer) p.handoff_open = false;
    }
    ++p.handed;
    p.ever = true;
    depart_complete();
    poll();
}

const buffer& reducer::late_sums(int bucket) {
    const auto& b = all_.bucket(bucket);
    auto& memory = late_[bucket];
    if (!memory) memory = visible_buffer(all_, b.padded * size_of(sum_type(b.type)));
    return memory;
}

void reducer::add_late(int tensor, double factor, const void* gradient) {
    const auto& t = all_.tensors.at(tensor);
    const auto& seat = all_.space.where(tensor);
    std::byte* place = late_sums(seat.bucket).data() + seat.offset * size_of(sum_type(t.type));
    accumulate(tensor, place, factor, gradient, false);
    all_.logger.once(log_level::info, formatted("tensor '{}' was handed over again after its bucket had left: the bucket goes twice", t.name));
}

// Looked through from where the last look ended, for this is asked at every hand-over.
bool reducer::complete(int bucket) {
    const auto& ids = all_.bucket(bucket).tensors;
    for (auto& at = of_bucket(bucket).complete_before; at < ids.size(); ++at) {
        const auto& p = of_tensor(ids[at]);
        if (all_.tensors.at(ids[at]).count == 0) continue;
        if (p.direct || p.handoff_open || p.handed < std::max(1, p.expected)) return false;
    }
    return true;
}

// Buckets leave in their fixed order only: another rank may fill them in another one.
void reducer::depart_complete() {
    const bool may_leave = how_ == assembly::holds::ring ||
                           (learned_ && all_.how.overlap_comm && (every_micro_step() || last_micro_step()));
    if (!may_leave) return;
    for (; next_ < all_.buckets(); ++next_) {
        if (!travels(next_)) continue;
        if (!complete(next_) || (last_micro_step() && next_ >= first_to_stay_)) return;
        open_bucket(next_);
        depart(next_, last_micro_step() && learned_ && !ever_late_);
    }
}

dtype reducer::travel_type(int bucket) const {
    const auto& b = all_.bucket(bucket);
    const auto& wanted = all_.how.communication_type;
    if (wanted == "bf16") return dtype::bf16;
    if (wanted == "fp16") return dtype::f16;
    if (wanted == "fp32") return sum_type(b.type);
    return is_16bit(b.type) && of_bucket(bucket).narrow ? b.type : sum_type(b.type);
}

void reducer::depart(int bucket, bool fuse, const apply* each) {
    const auto& b = all_.bucket(bucket);
    const dtype sum = sum_type(b.type);
    auto& state = of_bucket(bucket);
    for (int id : b.tensors) {  // what nobody handed over counts as zero
        auto& p = of_tensor(id);
        if (!p.touched || p.direct) assembly_.clear(id);
        p.direct = false;
    }
    const dtype wire = travel_type(bucket);
    // What a lossy wire type would do to the peers' contributions is done to the own one too, so that the sum does not
    // depend on who owns the slice.
    if (!all_.how.communication_type.empty() && wire != sum) all_.work.round_through(wire, sum, assembly_.base(bucket), b.padded);

    comm::reduce_scatter_request request;
    request.source = assembly_.base(bucket);
    request.sum_type = sum;
    request.travel_type = wire;
    request.short_source = assembly_.is_short(bucket);
    request.short_type = is_16bit(b.type) ? b.type : dtype::f32;  // other ranks may have nothing but whole 16-bit gradients
    request.slice = b.slice;
    request.target = own_target(bucket);
    request.add = every_micro_step() && micro_step_ > 0;
    request.exact = all_.how.reproducible;
    if (running(bucket) != nullptr) request.running = &running(bucket)->sums();
    state.divided = fuse;
    if (fuse) {
        request.passing = each != nullptr;
        request.finished = [this, bucket, each, sum](int member, std::int64_t first, std::int64_t count, void* sums) {
            if (each == nullptr) return divide_and_measure(bucket, first, count, divisor_, by_member_[static_cast<std::size_t>(member)]);
            all_.work.divide(sum, sums, divisor_, count);
            (*each)(bucket, {all_.own_slice(bucket).first + first, count}, static_cast<const std::byte*>(sums));
        };
    }
    state.travel = all_.ranks.start_reduce_scatter(std::move(request));
    state.left = true;
    under_way_.push_back(bucket);
}

void reducer::wait_for_oldest() {
    auto& state = of_bucket(under_way_.front());
    state.travel->finish();
    state.travel.reset();
    assembly_.close(under_way_.front());
    under_way_.pop_front();
}

void reducer::poll() {
    while (!under_way_.empty() && of_bucket(under_way_.front()).travel->progress()) wait_for_oldest();
}

// Elements of the own slice, from `first` on.
void reducer::divide_and_measure(int bucket, std::int64_t first, std::int64_t count, double divisor, totals& into) const {
    const dtype sum = sum_type(all_.bucket(bucket).type);
    std::byte* data = own_target(bucket) + first * size_of(sum);
    if (all_.how.check_grad_overflow) all_.work.divide_and_norm(sum, data, divisor, count, of_bucket(bucket).counted, into);
    else all_.work.divide(sum, data, divisor, count);
}

// The own slice, by all threads: squares are summed exactly, so it does not matter by whom.
void reducer::measure_slice(int bucket, double divisor, totals& into) const {
    constexpr std::int64_t grain = 1 << 16;
    std::vector<totals> parts(static_cast<std::size_t>(all_.threads.members()));
    const compute::held until_then(all_.work, parts);
    all_.work.share(all_.bucket(bucket).slice, grain, [&](int member, std::int64_t first, std::int64_t count) {
        divide_and_measure(bucket, first, count, divisor, parts[static_cast<std::size_t>(member)]);
    });
    all_.work.wait();
    for (const auto& part : parts) into.add(part);
}

void reducer::divide(int bucket, double divisor) {
    if (running(bucket) != nullptr) {
        const auto& b = all_.bucket(bucket);
        running(bucket)->sums().round(sum_type(b.type), own_target(bucket), 0, b.slice);
    }
    measure_slice(bucket, divisor, totals_);
    of_bucket(bucket).divided = true;
}

void reducer::collect_measures() {
    all_.work.wait();
    for (auto& part : by_member_) totals_.add(std::exchange(part, {}));
}

std::vector<char> reducer::finish_sums(bool fuse, const apply* each) {
    std::vector<char> applied(buckets_.size(), 0);
    for (; next_ < all_.buckets(); ++next_) {
        if (!travels(next_)) continue;
        if (must_wait_for_room(next_)) wait_for_oldest();  // here all ranks send everything: it ends
        open_bucket(next_);
        applied[static_cast<std::size_t>(next_)] = each != nullptr;
        depart(next_, fuse, each);
    }
    while (!under_way_.empty()) wait_for_oldest();
    collect_measures();
    for (auto& sums : running_) sums.book_further();
    return applied;
}

void reducer::finish(bool boundary, double divisor, bool late_anywhere) {
    if (boundary) divisor_ = divisor;
    ever_late_ = ever_late_ || late_anywhere;
    if (every_micro_step() || boundary) {
        postponed sums;
        sums.attempt([&] { finish_sums(boundary && !late_anywhere); });
        if (!late_anywhere) sums.rethrow();
        if (sums.failure()) all_.ranks.give_up();
        if (late_anywhere) {
            all_.agree.settle({"zero_step (gradients before the late ones)", 62, 0}, [&] { sums.rethrow(); });
            travel_late(boundary, divisor);
        }
        for (int b = 0; boundary && b < all_.buckets(); ++b)
            if (travels(b) && !of_bucket(b).divided) divide(b, divisor);
    }
    end_micro_step();
}

std::vector<char> reducer::finish_applied(double divisor, const apply& each) {
    divisor_ = divisor;
    auto applied = finish_sums(true, &each);
    for (int b = 0; b < all_.buckets(); ++b)
        if (travels(b) && !of_bucket(b).divided) divide(b, divisor);
    end_micro_step();
    return applied;
}

void reducer::end_micro_step() {
    if (!learned_)
        for (auto& p : tensors_) p.expected = p.handed;
    learned_ = true;
    ++micro_step_;
    begin_micro_step();
}

// Some rank added to a bucket that had left: those buckets go once more, on all ranks, and their sums are added.
void reducer::travel_late(bool boundary, double divisor) {
    std::vector<std::int64_t> again(static_cast<std::size_t>(all_.buckets()), 0);
    for (const auto& [bucket, memory] : late_) again[static_cast<std::size_t>(bucket)] = 1;
    all_.ranks.all_reduce(again, comm::combine::maximum);
    all_.agree.settle({"zero_step (memory for late gradients)", 60, 0}, [&] {
        for (int b = 0; b < all_.buckets(); ++b)
            if (again[static_cast<std::size_t>(b)] != 0) late_sums(b);
    });
    for (int b = 0; b < all_.buckets(); ++b) {
        if (again[static_cast<std::size_t>(b)] == 0) continue;
        const auto& bucket = all_.bucket(b);
        const dtype sum = sum_type(bucket.type);
        const auto& memory = late_sums(b);
        std::byte* own = memory.data() + all_.own_slice(b).first * size_of(sum);
        comm::reduce_scatter_request request;
        request.source = memory.data();
        request.sum_type = request.travel_type = sum;
        request.slice = bucket.slice;
        request.target = own;
        all_.ranks.start_reduce_scatter(std::move(request))->finish();
        // Whether a slice was divided on its way is the owner's affair: it then gets the quotient of what comes late.
        totals ignored;
        const compute::held until_then(all_.work, {&ignored, 1});
        if (boundary && of_bucket(b).divided) all_.work.divide_and_norm(sum, own, divisor, bucket.slice, false, ignored);
        all_.work.accumulate(sum, own_target(b), sum, own, 1, bucket.slice, false);
        all_.work.wait();
    }
    late_.clear();
    if (!boundary) return;
    bool remeasure = false;
    for (int b = 0; b < all_.buckets(); ++b) remeasure |= travels(b) && of_bucket(b).divided;
    if (!remeasure) return;
    totals_ = {};  // what was measured before the late parts came
    for (int b = 0; b < all_.buckets(); ++b)
        if (travels(b) && of_bucket(b).divided) divide(b, 1);
}

totals reducer::norm() const { return totals_; }

totals reducer::measure() const {
    totals now;
    for (int b = 0; b < all_.buckets(); ++b)
        if (travels(b)) measure_slice(b, 1, now);
    return now;
}

}  // namespace zero::stage
