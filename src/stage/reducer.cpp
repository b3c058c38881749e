// Hand-overs, departures and arrivals of gradients. See reducer.hpp.
#include "stage/reducer.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"
#include "tensor/vector.hpp"

namespace zero::stage {

namespace {

// What a lossy wire type would do to the peers' contributions is done to the own one too, so that the sum does not
// depend on who owns the slice.
void round_through(dtype narrow, dtype sum, std::byte* data, std::int64_t count) {
    std::array<std::byte, 4096> tile;
    const std::int64_t step = static_cast<std::int64_t>(tile.size()) / size_of(narrow);
    for (std::int64_t first = 0; first < count; first += step) {
        const std::int64_t n = std::min(step, count - first);
        std::byte* place = data + first * size_of(sum);
        vector::convert(narrow, tile.data(), sum, place, n);
        vector::convert(sum, place, narrow, tile.data(), n);
    }
}

void clear(std::byte* from, const std::byte* to) {
    if (to > from) std::memset(from, 0, static_cast<std::size_t>(to - from));
}

}  // namespace

reducer::reducer(const context& all, storage& memory, assembly::holds how)
    : all_(all), memory_(memory), how_(how), desk_(all, memory, how) {
    passengers_.resize(static_cast<std::size_t>(all.tensors.count()));
    coaches_.resize(static_cast<std::size_t>(all.buckets()));
}

bool reducer::travels(int bucket) const {
    const auto& b = all_.bucket(bucket);
    return b.trainable && b.padded > 0 && coach_of(bucket).active;
}

void reducer::begin_window(std::vector<char> active, std::vector<char> counted, std::int64_t micro_steps, double divisor) {
    for (int b = 0; b < all_.buckets(); ++b) {
        coach_of(b).active = active[static_cast<std::size_t>(b)] != 0;
        coach_of(b).counted = counted[static_cast<std::size_t>(b)] != 0;
        coach_of(b).divided = false;
        coach_of(b).narrow = true;
    }
    for (auto& p : passengers_) p.touched = p.ever = false;
    micro_steps_ = micro_steps;
    micro_step_ = 0;
    divisor_ = divisor;
    totals_ = {};
    if (how_ == assembly::holds::whole_sums) desk_.begin(micro_steps == 1);
    begin_micro_step();
}

void reducer::begin_micro_step() {
    next_ = 0;
    for (auto& c : coaches_) c.left = false;
    for (auto& p : passengers_) {
        p.handed = 0;
        p.direct = p.handoff_open = false;
        if (how_ == assembly::holds::ring) p.touched = false;
    }
    if (how_ == assembly::holds::whole_sums) return;
    for (auto& c : coaches_) c.narrow = true;
    desk_.begin(true);
}

std::byte* reducer::own_target(int bucket) const {
    return memory_.gradient_at(bucket, all_.own_slice(bucket).first);
}

bool reducer::handed(int tensor) const { return passengers_[static_cast<std::size_t>(tensor)].handed > 0; }
bool reducer::handed_in_window(int tensor) const { return passengers_[static_cast<std::size_t>(tensor)].ever; }

bool reducer::has_pending(int tensor) const {
    const auto& p = passengers_[static_cast<std::size_t>(tensor)];
    return p.direct || p.handoff_open;
}

void reducer::board(int bucket) {
    if (!desk_.is_open(bucket) && !desk_.has_room() && !under_way_.empty()) wait_for_oldest();
    desk_.open(bucket);
}

void* reducer::buffer_for(int tensor) {
    auto& p = passenger_of(tensor);
    const auto& t = all_.tensors.at(tensor);
    const int bucket = all_.space.where(tensor).bucket;
    if (t.count == 0) return nullptr;
    if (p.handoff_open) return p.handoff.data();
    if (p.direct) return desk_.at(tensor);
    if (!p.touched && !coach_of(bucket).left) {
        board(bucket);
        if (desk_.form(bucket) == t.type) {
            desk_.clear(tensor);
            p.direct = true;
            return desk_.at(tensor);
        }
    }
    if (!p.handoff) p.handoff = buffer(all_.book, purpose::handoff, t.bytes());
    else clear(p.handoff.data(), p.handoff.data() + t.bytes());
    p.handoff_open = true;
    return p.handoff.data();
}

void reducer::accumulate(int tensor, std::byte* place, double factor, const void* gradient, bool assign) const {
    const auto& t = all_.tensors.at(tensor);
    vector::accumulate(sum_type(t.type), place, t.type, gradient, factor, t.count, assign);
}

bool reducer::somebody_builds_in(int bucket) const {
    const auto& ids = all_.bucket(bucket).tensors;
    return std::any_of(ids.begin(), ids.end(), [&](int id) { return passengers_[static_cast<std::size_t>(id)].direct; });
}

// Into the bucket, which is open. `gradient` may be the tensor's own place.
void reducer::add_here(int tensor, double factor, const void* gradient) {
    auto& p = passenger_of(tensor);
    const auto& t = all_.tensors.at(tensor);
    const int bucket = all_.space.where(tensor).bucket;
    const bool in_place = gradient == desk_.at(tensor), first = in_place || !p.touched;
    if (first && factor == 0) {  // reads nothing
        desk_.clear(tensor);
    } else if (first && factor == 1) {
        if (in_place) return;
        if (desk_.is_short(bucket)) vector::convert(t.type, desk_.at(tensor), t.type, gradient, t.count);
        else accumulate(tensor, desk_.at(tensor), 1, gradient, true);
    } else if (factor != 0) {
        coach_of(bucket).narrow = false;
        if (desk_.is_short(bucket)) desk_.widen(bucket);
        if (in_place) gradient = nullptr;  // widened with the bucket
        std::byte* place = desk_.at(tensor);
        if (gradient != nullptr) accumulate(tensor, place, factor, gradient, first);
        else vector::accumulate(desk_.form(bucket), place, desk_.form(bucket), place, factor, t.count, true);
    }
}

void reducer::add(int tensor, double factor, const void* gradient) {
    auto& p = passenger_of(tensor);
    const auto& t = all_.tensors.at(tensor);
    const int bucket = all_.space.where(tensor).bucket;
    auto& coach = coach_of(bucket);
    if (t.count > 0 && coach.active) {
        const bool own_buffer = gradient == nullptr, built_here = own_buffer && p.direct;
        if (own_buffer) gradient = built_here ? desk_.at(tensor) : p.handoff.data();
        const bool place_in_use = p.direct && !built_here;
        if (built_here) p.direct = false;
        const bool as_it_is = factor == 0 || (factor == 1 && (built_here || !p.touched));
        const auto blocked = [&] {  // its place is being written by the caller, or the bucket would have to move
            return place_in_use || (desk_.is_open(bucket) && desk_.is_short(bucket) && !as_it_is && somebody_builds_in(bucket));
        };
        if (coach.left || blocked()) {
            if (factor != 0) add_late(tensor, factor, gradient);
        } else {
            board(bucket);
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

void reducer::add_late(int tensor, double factor, const void* gradient) {
    const auto& t = all_.tensors.at(tensor);
    const auto& seat = all_.space.where(tensor);
    const std::int64_t width = size_of(sum_type(t.type));
    auto& memory = late_[seat.bucket];
    if (!memory) memory = buffer(all_.book, purpose::communication, all_.bucket(seat.bucket).padded * width);
    accumulate(tensor, memory.data() + seat.offset * width, factor, gradient, false);
    all_.logger.once(log_level::info, fmt::format("tensor '{}' was handed over again after its bucket had left: the bucket goes twice", t.name));
}

bool reducer::complete(int bucket) {
    for (int id : all_.bucket(bucket).tensors) {
        if (all_.tensors.at(id).count == 0) continue;
        const auto& p = passenger_of(id);
        if (p.direct || p.handoff_open || p.handed < std::max(1, p.expected)) return false;
    }
    return true;
}

// Buckets leave in their fixed order only: another rank may fill them in another one.
void reducer::depart_complete() {
    const bool may_leave = how_ == assembly::holds::ring || (learned_ && all_.how.overlap_comm && last_micro_step());
    if (!may_leave) return;
    for (; next_ < all_.buckets(); ++next_) {
        if (!travels(next_)) continue;
        if (!complete(next_)) return;
        board(next_);
        depart(next_, last_micro_step() && learned_ && !ever_late_);
    }
}

dtype reducer::travel_type(int bucket) const {
    const auto& b = all_.bucket(bucket);
    const auto& wanted = all_.how.communication_type;
    if (wanted == "bf16") return dtype::bf16;
    if (wanted == "fp16") return dtype::f16;
    if (wanted == "fp32") return sum_type(b.type);
    return is_16bit(b.type) && coach_of(bucket).narrow ? b.type : sum_type(b.type);
}

void reducer::depart(int bucket, bool fuse) {
    const auto& b = all_.bucket(bucket);
    const dtype sum = sum_type(b.type);
    auto& coach = coach_of(bucket);
    for (int id : b.tensors) {  // what nobody handed over counts as zero
        auto& p = passenger_of(id);
        if (!p.touched || p.direct) desk_.clear(id);
        p.direct = false;
    }
    const dtype wire = travel_type(bucket);
    if (!all_.how.communication_type.empty() && wire != sum) round_through(wire, sum, desk_.base(bucket), b.padded);

    comm::reduce_scatter_request request;
    request.source = desk_.base(bucket);
    request.sum_type = sum;
    request.travel_type = wire;
    request.short_source = desk_.is_short(bucket);
    request.short_type = is_16bit(b.type) ? b.type : dtype::f32;  // other ranks may have nothing but whole 16-bit gradients
    request.slice = b.slice;
    request.target = own_target(bucket);
    request.add = how_ == assembly::holds::ring && micro_step_ > 0;
    coach.divided = fuse;
    if (fuse) {
        request.finished = [this, bucket, sum](std::int64_t first, std::int64_t count) {
            exact_sum aside;
            auto& squares = coach_of(bucket).counted ? totals_.squares : aside;
            totals_.finite &= vector::divide_and_norm(sum, own_target(bucket) + first * size_of(sum), divisor_, count, squares);
        };
    }
    coach.travel = all_.ranks.start_reduce_scatter(std::move(request));
    coach.left = true;
    under_way_.push_back(bucket);
}

void reducer::wait_for_oldest() {
    auto& coach = coach_of(under_way_.front());
    coach.travel->finish();
    coach.travel.reset();
    desk_.close(under_way_.front());
    under_way_.pop_front();
}

void reducer::poll() {
    while (!under_way_.empty() && coach_of(under_way_.front()).travel->progress()) wait_for_oldest();
}

void reducer::divide(int bucket, double divisor) {
    const auto& b = all_.bucket(bucket);
    exact_sum aside;
    auto& coach = coach_of(bucket);
    auto& squares = coach.counted ? totals_.squares : aside;
    totals_.finite &= vector::divide_and_norm(sum_type(b.type), own_target(bucket), divisor, b.slice, squares);
    coach.divided = true;
}

void reducer::finish(bool boundary, double divisor, bool late_anywhere) {
    if (boundary) divisor_ = divisor;
    ever_late_ = ever_late_ || late_anywhere;
    if (how_ == assembly::holds::ring || boundary) {
        for (; next_ < all_.buckets(); ++next_) {
            if (!travels(next_)) continue;
            board(next_);
            depart(next_, boundary && !late_anywhere);
        }
        while (!under_way_.empty()) wait_for_oldest();
        if (late_anywhere) travel_late(boundary, divisor);
        for (int b = 0; boundary && b < all_.buckets(); ++b)
            if (travels(b) && !coach_of(b).divided) divide(b, divisor);
    }
    if (!learned_)
        for (auto& p : passengers_) p.expected = p.handed;
    learned_ = true;
    ++micro_step_;
    begin_micro_step();
}

// Some rank added to a bucket that had left: those buckets go once more, on all ranks, and their sums are added.
void reducer::travel_late(bool boundary, double divisor) {
    std::vector<std::int64_t> again(static_cast<std::size_t>(all_.buckets()), 0);
    for (const auto& [bucket, memory] : late_) again[static_cast<std::size_t>(bucket)] = 1;
    all_.ranks.all_reduce(again, comm::combine::maximum);
    for (int b = 0; b < all_.buckets(); ++b) {
        if (again[static_cast<std::size_t>(b)] == 0) continue;
        const auto& bucket = all_.bucket(b);
        const dtype sum = sum_type(bucket.type);
        auto& memory = late_[b];
        if (!memory) memory = buffer(all_.book, purpose::communication, bucket.padded * size_of(sum));
        // A slice that was divided on its way gets the quotient of what comes late.
        if (boundary && coach_of(b).divided) {
            auto* data = memory.data();
            exact_sum ignored;
            vector::divide_and_norm(sum, data, divisor, bucket.padded, ignored);
        }
        comm::reduce_scatter_request request;
        request.source = memory.data();
        request.sum_type = request.travel_type = sum;
        request.slice = bucket.slice;
        request.target = own_target(b);
        request.add = true;
        all_.ranks.start_reduce_scatter(std::move(request))->finish();
    }
    late_.clear();
    if (!boundary) return;
    bool remeasure = false;
    for (int b = 0; b < all_.buckets(); ++b) remeasure |= travels(b) && coach_of(b).divided;
    if (!remeasure) return;
    totals_ = {};  // what was measured before the late parts came
    for (int b = 0; b < all_.buckets(); ++b)
        if (travels(b) && coach_of(b).divided) divide(b, 1);
}

totals reducer::norm() const { return totals_; }

totals reducer::measure() const {
    totals now;
    for (int b = 0; b < all_.buckets(); ++b) {
        if (!travels(b)) continue;
        exact_sum aside;
        const auto& bucket = all_.bucket(b);
        now.finite &= vector::divide_and_norm(sum_type(bucket.type), own_target(b), 1, bucket.slice,
                                              coach_of(b).counted ? now.squares : aside);
    }
    return now;
}

}  // namespace zero::stage
