// Lanes of locked memory through which pieces of transfers pass one after the other. See staged.hpp.
#include "comm/staged.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "comm/checks.hpp"
#include "comm/chunks.hpp"
#include "core/error.hpp"

namespace zero::comm {

namespace {

constexpr std::int64_t largest_row = 4 << 20;    // bytes that one lane holds of one rank: a copy at the link's full rate
constexpr std::int64_t lane_aim = 64 << 20;      // many ranks: smaller rows rather than more memory

}  // namespace

// A reduction or a gather. Both are cut along every rank's part into pieces of as many elements (or bytes).
struct staged::transfer {
    bool reduces = false;
    reduce_scatter_request sum;
    all_gather_request gather;
    std::int64_t length = 0;    // of the longest part: elements, or bytes
    std::int64_t filled = 0, arrived = 0;
    std::unique_ptr<compute::note> ready;  // what the device must have done before its memory is read
    std::exception_ptr error;
    bool done() const noexcept { return error != nullptr || arrived == length; }
};

// Host memory: for a reduction a row of each rank, then one for the sum; for a gather a row of each rank.
struct staged::lane {
    enum class state { free, coming_down, travelling, going_up };
    state now = state::free;
    std::shared_ptr<transfer> of;
    std::int64_t first = 0, count = 0;
    std::byte* memory = nullptr;
    std::unique_ptr<compute::note> copied;
    std::unique_ptr<operation> travel;
    // What the piece of a gather holds of a part of so many bytes.
    std::int64_t bytes_of(std::int64_t whole) const noexcept { return std::clamp<std::int64_t>(whole - first, 0, count); }
};

namespace {

class staged_operation final : public operation {
public:
    staged_operation(staged& by, std::shared_ptr<staged::transfer> what) : by_(by), what_(std::move(what)) {}
    bool progress() override;
    void finish() override;

private:
    staged& by_;
    std::shared_ptr<staged::transfer> what_;
    bool over_ = false;
};

}  // namespace

staged::staged(kind what, communicator& host, compute::processor& work, std::unique_ptr<compute::processor> copies)
    : kind_(what), host_(host), copies_(std::move(copies)), work_(work) {
    for (auto& one : lanes_) one = std::make_unique<lane>();
}

staged::~staged() {
    try {
        copies_->wait();
    } catch (...) {  // it is over anyway
    }
}

std::int64_t staged::row_bytes(std::int64_t largest_slice_bytes) const noexcept {
    return fair_row(largest_slice_bytes, largest_row, lane_aim, host_.size() + 1);
}

std::int64_t staged::scratch_bytes(std::int64_t largest_slice_bytes) const noexcept {
    const std::int64_t row = row_bytes(largest_slice_bytes);
    return row * (host_.size() + 1) * static_cast<std::int64_t>(lanes) + (kind_ == kind::reductions ? host_.scratch_bytes(row) : 0);
}

void staged::reserve(ledger& book, std::int64_t largest_slice_bytes) {
    row_ = row_bytes(largest_slice_bytes);
    const std::int64_t each = row_ * (host_.size() + 1);
    memory_ = copies_->take(book, purpose::communication, each * static_cast<std::int64_t>(lanes), memory_kind::pinned);
    for (std::size_t k = 0; k < lanes; ++k) lanes_[k]->memory = memory_.data() + static_cast<std::int64_t>(k) * each;
    if (kind_ == kind::reductions) host_.reserve(book, row_);
}

std::unique_ptr<operation> staged::start_reduce_scatter(reduce_scatter_request what) {
    check_reduction(what);
    require(!what.exact && !what.short_source, code::internal, "staged: sums of device memory are neither exact nor short");
    auto one = std::make_shared<transfer>();
    one->reduces = true;
    one->length = what.slice;
    one->sum = std::move(what);
    return queue(std::move(one));
}

std::unique_ptr<operation> staged::start_all_gather(all_gather_request what) {
    check_gather(what, host_.rank(), host_.size());
    auto one = std::make_shared<transfer>();
    for (const landing& l : what.landings) one->length = std::max(one->length, l.bytes);
    one->gather = std::move(what);
    return queue(std::move(one));
}

std::unique_ptr<operation> staged::queue(std::shared_ptr<transfer> one) {
    if (broken_) std::rethrow_exception(broken_);
    one->ready = work_.take_note();
    auto handle = std::make_unique<staged_operation>(*this, one);
    if (!one->done()) queue_.push_back(std::move(one));
    return handle;
}

// Starts the copies down of the next piece.
void staged::fill(lane& next) {
    const auto found = std::find_if(queue_.begin(), queue_.end(), [](const auto& t) { return t->filled < t->length; });
    if (found == queue_.end()) return;
    auto& one = **found;
    // Copies to memory that could not be locked wait in the call for what precedes them: messages to a rank that may wait for this one.
    if (!memory_.locked() && !one.ready->passed()) return;
    if (one.filled == 0) copies_->follow(*one.ready);
    next.of = *found;
    next.first = one.filled;
    const std::int64_t width = one.reduces ? size_of(one.sum.sum_type) : 1;
    next.count = std::min(one.length - one.filled, row_ / width);
    one.filled += next.count;
    if (one.reduces) {
        const auto* source = static_cast<const std::byte*>(one.sum.source);
        for (int slot = 0; slot < host_.size(); ++slot)
            copies_->start_copy(next.memory + slot * next.count * width, source + (slot * one.sum.slice + next.first) * width, next.count * width);
    } else {
        copies_->start_copy(next.memory + host_.rank() * next.count, static_cast<const std::byte*>(one.gather.own) + next.first,
                            next.bytes_of(one.gather.own_bytes));
    }
    next.copied = copies_->take_note();
    next.now = lane::state::coming_down;
    filling_ = (filling_ + 1) % lanes;
}

// True when it came a step further.
bool staged::move(lane& one) {
    auto& what = *one.of;
    const std::int64_t width = what.reduces ? size_of(what.sum.sum_type) : 1;
    std::byte* sum = one.memory + host_.size() * one.count * width;
    if (one.now == lane::state::coming_down) {
        if (!one.copied->passed()) return false;
        if (what.reduces) {
            reduce_scatter_request piece;
            piece.source = one.memory;
            piece.sum_type = what.sum.sum_type;
            piece.travel_type = what.sum.travel_type;
            piece.short_type = what.sum.short_type;
            piece.slice = one.count;
            piece.target = sum;
            one.travel = host_.start_reduce_scatter(std::move(piece));
        } else {
            all_gather_request piece;
            for (int rank = 0; rank < host_.size(); ++rank) {
                const landing& whole = what.gather.landings[static_cast<std::size_t>(rank)];
                piece.landings.push_back({one.memory + rank * one.count, one.bytes_of(whole.bytes)});
            }
            const landing& mine = piece.landings[static_cast<std::size_t>(host_.rank())];
            piece.own = mine.data;
            piece.own_bytes = mine.bytes;
            piece.root = what.gather.root;
            one.travel = host_.start_all_gather(std::move(piece));
        }
        one.now = lane::state::travelling;
        return true;
    }
    if (one.now == lane::state::travelling) {
        if (!one.travel->progress()) return false;
        one.travel->finish();
        one.travel.reset();
        if (what.reduces) {
            std::byte* target = static_cast<std::byte*>(what.sum.target) + one.first * width;
            if (!what.sum.add) {
                copies_->start_copy(target, sum, one.count * width);
            } else {  // the rows of the contributions on the device have been read: the sum passes through that of this rank
                std::byte* aside = static_cast<std::byte*>(const_cast<void*>(what.sum.source)) + one.first * width;
                copies_->start_copy(aside, sum, one.count * width);
                copies_->accumulate(what.sum.sum_type, target, what.sum.sum_type, aside, 1, one.count, false);
            }
        } else if (what.gather.root < 0 || what.gather.root == host_.rank()) {
            for (int rank = 0; rank < host_.size(); ++rank) {
                const landing& whole = what.gather.landings[static_cast<std::size_t>(rank)];
                const std::int64_t bytes = one.bytes_of(whole.bytes);
                std::byte* to = static_cast<std::byte*>(whole.data) + one.first;
                if (rank != host_.rank()) copies_->start_copy(to, one.memory + rank * one.count, bytes);
                else if (whole.data != what.gather.own) copies_->start_copy(to, static_cast<const std::byte*>(what.gather.own) + one.first, bytes);
            }
        }
        one.copied = copies_->take_note();
        one.now = lane::state::going_up;
        return true;
    }
    if (&one != lanes_[emptying_].get() || !one.copied->passed()) return false;  // they end as they began
    what.arrived += one.count;
    one.of.reset();
    one.now = lane::state::free;
    emptying_ = (emptying_ + 1) % lanes;
    while (!queue_.empty() && queue_.front()->done()) queue_.pop_front();
    return true;
}

// Lanes are filled and emptied in turn, so messages start in the same order on all ranks.
bool staged::advance() {
    if (broken_) std::rethrow_exception(broken_);
    bool moved = false;
    try {
        if (lanes_[filling_]->now == lane::state::free) {
            const std::size_t before = filling_;
            fill(*lanes_[filling_]);
            moved = before != filling_;
        }
        for (std::size_t k = 0; k < lanes; ++k) {
            lane& one = *lanes_[(emptying_ + k) % lanes];
            if (one.now == lane::state::free) break;
            const bool mine = move(one);
            moved |= mine;
            if (one.now == lane::state::coming_down) break;  // the next one's messages come after this one's
        }
    } catch (...) {
        broken_ = std::current_exception();
        for (auto& one : queue_) one->error = broken_;
        queue_.clear();
        throw;
    }
    return moved;
}

namespace {

bool staged_operation::progress() {
    while (!what_->done() && by_.advance()) {}
    return what_->done();
}

void staged_operation::finish() {
    while (!progress()) std::this_thread::yield();
    if (what_->error) std::rethrow_exception(what_->error);
    if (std::exchange(over_, true) || !what_->reduces) return;
    if (what_->sum.finished && what_->sum.slice > 0) what_->sum.finished(0, 0, what_->sum.slice, what_->sum.target);
}

}  // namespace

}  // namespace zero::comm
