// The ranks of one node, through memory that all of them see: an owner reads every contribution where it lies and sums them
// in rank order in one pass, a gather copies from where the parts lie, or through a few pieces of shared memory, and small
// reductions are flags. Texts and broadcasts go over the plain communicator underneath. Every wait moves the sums on, as in
// mpi.cpp.
#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <new>
#include <utility>

#include "comm/checks.hpp"
#include "comm/exact_tile.hpp"
#include "comm/node_flags.hpp"
#include "comm/node_shared.hpp"
#include "core/error.hpp"
#include "tensor/stream_copy.hpp"
#include "tensor/vector.hpp"

namespace zero::comm {

namespace {

constexpr int pieces = 4;            // of private parts, on their way through shared memory
constexpr std::int64_t passing_tile = 16384;  // where more streams of memory follow each tile, and each begins slowly
constexpr std::int64_t tile = 4096;  // elements summed in one go: whole atoms of the norm, and in the nearest caches

class node_shared final : public node_level {
public:
    node_shared(std::unique_ptr<communicator> plain, std::shared_ptr<node_memory> memory,
                std::shared_ptr<const node_memory::stretch> board)
        : plain_(std::move(plain)),
          memory_(std::move(memory)),
          rank_(plain_->rank()),
          ranks_(plain_->size()),
          board_(std::move(board)) {
        mine_ = new (&flags(rank_)) node_flags;  // until then it reads as zeros, which mean the same
        node_shared::meanwhile({});
    }

    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return ranks_; }
    const partition::topology& nodes() const noexcept override { return plain_->nodes(); }
    node_memory* shared() const noexcept override { return memory_.get(); }
    bool on_one_node() override { return true; }
    traffic sent() const noexcept override { return plain_->sent(); }
    bool start_helper() override { return helped_ = true; }  // it needs no MPI

    std::unique_ptr<operation> start_reduce_scatter(reduce_scatter_request what) override;
    std::unique_ptr<operation> start_all_gather(all_gather_request what) override;
    void all_reduce(std::span<std::int64_t> values, combine how) override;
    std::unique_ptr<operation> start_reduce_in_portions(reduce_scatter_request what, portions how) override;
    void refuse_broken(bool thoroughly) const override {
        refuse_given_up();
        if (thoroughly) refuse_dead(false);
    }
    void look_around() override {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_look_ < std::chrono::milliseconds(500)) return;
        last_look_ = now;
        try {
            refuse_dead(false);
            seen_dead_ = false;
        } catch (const error&) {
            if (std::exchange(seen_dead_, true)) throw;  // not at first sight: what it sent before may still arrive
        }
    }
    void farewell() noexcept override { mine_->left.publish(1); }
    void meanwhile(std::function<bool()> work) override {
        meanwhile_ = std::move(work);
        plain_->meanwhile([this] {
            const bool moved = move_all();
            if (!moved) look_around();
            return moved;
        });
    }
    void fence() override { meet(); }
    void broadcast(void* data, std::int64_t bytes, int root) override { plain_->broadcast(data, bytes, root); }
    std::vector<std::string> gather(const std::string& mine, int root) override { return plain_->gather(mine, root); }
    std::string broadcast(const std::string& text, int root) override { return plain_->broadcast(text, root); }

    void reserve(ledger& book, std::int64_t largest_slice_bytes) override;
    std::int64_t scratch_bytes(std::int64_t largest_slice_bytes) const noexcept override {
        return static_cast<std::int64_t>(sizeof(node_flags)) + pieces * piece_bytes(largest_slice_bytes);
    }

    // One reduce-scatter on its way.
    struct reduction {
        reduce_scatter_request what;
        portions how;              // without `place`: all at once, to the request's target
        std::int64_t summed = 0;   // elements of each block
        std::uint64_t number = 0;  // counted from 0, the same on all ranks
        std::exception_ptr error;
        bool done = false;
    };
    bool advance();
    bool progress(const reduction& one);
    void finish(reduction& one);
    void give_up() noexcept override;
    // One gather on its way, in rounds: one piece of every part in each.
    struct gathering {
        all_gather_request what;
        std::uint64_t first = 0, rounds = 0;    // the number of its first round, the same on all ranks
        std::uint64_t offered = 0, taken = 0;   // rounds
        std::int64_t piece = 0;                 // bytes; a part that all ranks see is one piece
        bool beyond_caches = false;             // all of it together
    };
    bool progress(gathering& one);
    void finish(gathering& one);

private:
    node_flags& flags(int rank) const noexcept { return *(reinterpret_cast<node_flags*>(board_->data) + rank); }
    std::uint64_t least(node_flags::counter node_flags::*which) const noexcept;
    bool move_all() { return advance() | (meanwhile_ && meanwhile_()); }
    std::unique_ptr<operation> start(std::shared_ptr<reduction> one);
    bool post();
    bool sum_next();
    bool sum_portion(reduction& one);
    void sum(const reduction& one, std::int64_t slot, std::int64_t first, std::int64_t count, std::byte* target);
    bool retire();
    void meet();
    void refuse_given_up() const;
    void refuse_dead(bool also_left = true) const;
    std::int64_t piece_bytes(std::int64_t largest_slice_bytes) const noexcept;
    bool offer_piece(gathering& one);
    bool take_pieces(gathering& one);
    template <typename Done>
    void wait(const Done& done);

    std::unique_ptr<communicator> plain_;
    std::function<bool()> meanwhile_;
    std::shared_ptr<node_memory> memory_;
    int rank_, ranks_;
    std::shared_ptr<const node_memory::stretch> board_;
    node_flags* mine_ = nullptr;
    buffer counted_, staging_;
    std::int64_t piece_ = 0;
    std::uint64_t rounds_ = 0, started_ = 0, posted_ = 0, summed_ = 0, retired_ = 0, gather_rounds_ = 0, copied_ = 0;
    std::deque<std::shared_ptr<reduction>> queue_;  // number retired_ first
    bool busy_ = false;                             // `finished` must not come back in here
    bool broken_ = false, helped_ = false, seen_dead_ = false;
    std::chrono::steady_clock::time_point last_look_ = std::chrono::steady_clock::now();
};

std::uint64_t node_shared::least(node_flags::counter node_flags::*which) const noexcept {
    std::uint64_t all = UINT64_MAX;
    for (int rank = 0; rank < ranks_; ++rank) all = std::min(all, (flags(rank).*which).read());
    return all;
}

template <typename Done>
void node_shared::wait(const Done& done) {
    node_patience idle;
    while (!done()) {
        if (move_all()) {
            idle.reset();
        } else if (idle.rest()) {
            try {
                refuse_dead();
            } catch (const error&) {
                if (!done()) throw;  // else it did its part, and has gone since
            }
        }
    }
}

// --- small reductions ---

void node_shared::meet() {
    mine_->rounds.publish(++rounds_);
    wait([this] { return least(&node_flags::rounds) >= rounds_; });
}

// Numbers of a round are overwritten two rounds later: then everyone has entered the round between, and so has read them.
void node_shared::all_reduce(std::span<std::int64_t> values, combine how) {
    for (std::size_t first = 0; first < values.size(); first += node_flags::capacity) {
        const auto part = values.subspan(first, std::min<std::size_t>(node_flags::capacity, values.size() - first));
        const std::size_t parity = (rounds_ + 1) % 2;
        std::copy(part.begin(), part.end(), mine_->numbers[parity].begin());
        meet();
        for (int rank = 0; rank < ranks_; ++rank) {
            if (rank == rank_) continue;
            const auto& theirs = flags(rank).numbers[parity];
            for (std::size_t i = 0; i < part.size(); ++i) part[i] = how == combine::sum ? part[i] + theirs[i] : std::max(part[i], theirs[i]);
        }
    }
}

void node_shared::refuse_given_up() const {
    for (int rank = 0; rank < ranks_; ++rank) {
        if (flags(rank).given_up.read() == 0) continue;
        refuse_dead();  // which may be why
        fail(code::state, "rank {} has given up an earlier operation: finalize this context on all ranks", rank);
    }
}

// One that has said farewell is missed only by those who wait for its flags: what it sent may still be on its way.
void node_shared::refuse_dead(bool also_left) const {
    for (int rank = 0; rank < ranks_; ++rank)
        require(memory_->lives(rank) || (!also_left && flags(rank).left.read() != 0), code::mpi,
                "rank {} has ended without zero_finalize: end this program too, and look there for the cause", rank);
}

// --- reductions ---

bool node_shared::advance() {
    if (queue_.empty() || busy_) return false;
    busy_ = true;
    bool moved = false;
    try {
        for (bool again = true; again; moved |= again) again = post() | sum_next() | retire();
    } catch (...) {
        for (auto& one : queue_) {
            one->error = std::current_exception();
            one->done = true;
        }
        give_up();
        moved = true;
    }
    busy_ = false;
    return moved;
}

bool node_shared::post() {
    const std::uint64_t free = retired_ + node_flags::slots;  // all ranks have read what is before `retired_`
    if (posted_ >= started_ || posted_ >= free) return false;
    for (; posted_ < std::min(started_, free); ++posted_) {
        const reduction& one = *queue_[posted_ - retired_];
        mine_->contribution[posted_ % node_flags::slots] = {memory_->offset_of(one.what.source), source_type(one.what)};
    }
    mine_->contributions.publish(posted_);
    return true;
}

bool node_shared::sum_next() {
    if (summed_ >= posted_ || least(&node_flags::contributions) <= summed_) return false;
    reduction& one = *queue_[summed_ - retired_];
    if (!sum_portion(one)) return false;
    if (one.summed == one.what.slice) mine_->sums.publish(++summed_);
    return true;
}

// Contributions may be overwritten when every rank has summed them.
bool node_shared::retire() {
    const std::uint64_t all = std::min(summed_, least(&node_flags::sums));
    if (retired_ >= all) return false;
    for (; retired_ < all; ++retired_) {
        queue_.front()->done = true;
        queue_.pop_front();
    }
    return true;
}

bool node_shared::sum_portion(reduction& one) {
    const auto& what = one.what;
    if (!one.how.place) {
        sum(one, rank_, 0, what.slice, static_cast<std::byte*>(what.target));
        one.summed = what.slice;
        return true;
    }
    const std::int64_t first = one.summed, count = std::min(one.how.elements, what.slice - first);
    std::byte* to = one.how.place(first, count);
    if (to == nullptr) return false;
    for (int block = 0; block < one.how.blocks; ++block)
        sum(one, rank_ * one.how.blocks + block, first, count, to + block * count * size_of(what.sum_type));
    one.summed += count;
    one.how.ready(first, count);
    return true;
}

// Elements first .. first+count-1 of that slot of all contributions.
void node_shared::sum(const reduction& one, std::int64_t slot, std::int64_t first, std::int64_t count, std::byte* target) {
    const auto& what = one.what;
    const auto ranks = static_cast<std::size_t>(ranks_);
    std::vector<const std::byte*> starts(ranks);
    std::vector<dtype> types(ranks);
    for (int rank = 0; rank < ranks_; ++rank) {
        const auto& offer = flags(rank).contribution[one.number % node_flags::slots];
        types[static_cast<std::size_t>(rank)] = offer.type;
        starts[static_cast<std::size_t>(rank)] = memory_->at(offer.offset) + (slot * what.slice + first) * size_of(offer.type);
    }
    const bool passing = what.passing && what.finished && !what.add && !what.exact;
    const std::int64_t step = passing ? passing_tile : tile;
    share(threads_, count, step, [&](int member, std::int64_t begin, std::int64_t length) {
        std::vector<const void*> sources(ranks);
        alignas(64) std::byte room[passing_tile * 8];
        for (std::int64_t at = begin; at < begin + length; at += step) {
            const std::int64_t n = std::min(step, begin + length - at);
            for (std::size_t k = 0; k < ranks; ++k) sources[k] = starts[k] + at * size_of(types[k]);
            bool final = true;
            std::byte* sums = passing ? room : target + at * size_of(what.sum_type);
            if (what.exact) final = sum_exactly(what, first + at, sources.data(), types.data(), ranks_, n);
            else vector::ordered_sum(what.sum_type, sums, what.add, sources.data(), types.data(), ranks_, n);
            if (final && what.finished) what.finished(member, first + at, n, sums);
        }
    });
}

bool node_shared::progress(const reduction& one) {
    if (!advance() && !one.done) {
        refuse_given_up();
        look_around();
    }
    return one.done;
}

void node_shared::finish(reduction& one) {
    wait([&] {
        if (!one.done) refuse_given_up();
        return one.done;
    });
    if (one.error) std::rethrow_exception(std::exchange(one.error, nullptr));
}

void node_shared::give_up() noexcept {
    broken_ = true;
    mine_->given_up.publish(1);
    queue_.clear();
    posted_ = summed_ = retired_ = started_;
}

class reduce_through_memory : public operation {
public:
    reduce_through_memory(node_shared& over, std::shared_ptr<node_shared::reduction> one) : over_(over), one_(std::move(one)) {}
    ~reduce_through_memory() override {
        if (!one_->done) over_.give_up();
    }
    bool progress() override { return over_.progress(*one_); }
    void finish() override { over_.finish(*one_); }

private:
    node_shared& over_;
    std::shared_ptr<node_shared::reduction> one_;
};

std::unique_ptr<operation> node_shared::start_reduce_scatter(reduce_scatter_request what) {
    auto one = std::make_shared<reduction>();
    one->what = std::move(what);
    return start(std::move(one));
}

std::unique_ptr<operation> node_shared::start_reduce_in_portions(reduce_scatter_request what, portions how) {
    what.add = false;
    what.finished = {};
    auto one = std::make_shared<reduction>();
    one->what = std::move(what);
    one->how = std::move(how);
    return start(std::move(one));
}

std::unique_ptr<operation> node_shared::start(std::shared_ptr<reduction> one) {
    check_reduction(one->what);
    require(!broken_, code::state, "an earlier reduction was given up: finalize this context");
    require(one->what.slice == 0 || memory_->offset_of(one->what.source) >= 0, code::internal, "a contribution lies outside of the node's memory");
    if (one->what.slice == 0) {
        one->done = true;
    } else {
        one->number = started_++;
        queue_.push_back(one);
        if (helped_) post();
        else advance();
    }
    return std::make_unique<reduce_through_memory>(*this, std::move(one));
}

// --- gathers ---

std::int64_t node_shared::piece_bytes(std::int64_t largest_slice_bytes) const noexcept {
    constexpr std::int64_t smallest = 4096, largest = 256 * 1024, of_all_ranks = 4 << 20;
    const std::int64_t most = std::clamp(of_all_ranks / pieces / ranks_ / 64 * 64, smallest, largest);
    return std::clamp((largest_slice_bytes + 63) / 64 * 64, smallest, most);
}

void node_shared::reserve(ledger& book, std::int64_t largest_slice_bytes) {
    staging_ = buffer();
    counted_ = buffer(book, purpose::communication, sizeof(node_flags), reinterpret_cast<std::byte*>(mine_), board_);
    piece_ = piece_bytes(largest_slice_bytes);
    staging_ = memory_->own_buffer(book, purpose::communication, pieces * piece_);
}

// The next piece of the own part becomes readable; its place is free when all ranks have taken what lay there before.
bool node_shared::offer_piece(gathering& one) {
    const std::uint64_t round = one.first + one.offered;
    const std::uint64_t places = one.what.visible ? node_flags::slots : pieces;
    if (one.offered == one.rounds || least(&node_flags::copies) + places <= round) return false;
    const std::int64_t done = static_cast<std::int64_t>(one.offered) * one.piece;
    const std::int64_t bytes = std::min(one.piece, one.what.own_bytes - done);
    if (bytes > 0) {
        const std::byte* from = static_cast<const std::byte*>(one.what.own) + done;
        if (!one.what.visible) {
            std::byte* place = staging_.data() + static_cast<std::int64_t>(round % pieces) * piece_;
            copy_either_way(place, from, bytes, one.beyond_caches);
            from = place;
        }
        mine_->part[round % node_flags::slots] = memory_->offset_of(from);
        require(mine_->part[round % node_flags::slots] >= 0, code::internal, "a part lies outside of the node's memory");
    }
    mine_->parts.publish(round + 1);
    ++one.offered;
    return true;
}

bool node_shared::take_pieces(gathering& one) {
    const std::uint64_t round = one.first + one.taken;
    if (one.taken == one.rounds || least(&node_flags::parts) <= round) return false;
    const std::int64_t done = static_cast<std::int64_t>(one.taken) * one.piece;
    for (int step = 0; step < ranks_; ++step) {
        const int rank = (rank_ + step) % ranks_;  // everyone starts elsewhere
        const auto& to = one.what.landings[static_cast<std::size_t>(rank)];
        const std::int64_t bytes = std::min(one.piece, to.bytes - done);
        if ((one.what.root >= 0 && one.what.root != rank_) || bytes <= 0) continue;
        const std::byte* from = rank == rank_ ? static_cast<const std::byte*>(one.what.own) + done : memory_->at(flags(rank).part[round % node_flags::slots]);
        std::byte* place = static_cast<std::byte*>(to.data) + done;
        if (place != from) copy_either_way(place, from, bytes, one.beyond_caches);
    }
    mine_->copies.publish(round + 1);
    ++one.taken;
    ++copied_;
    return true;
}

// Gathers are taken one after the other, for the counters cannot skip a round. One is over when all ranks have taken it:
// before that, what they read may not be given back.
bool node_shared::progress(gathering& one) {
    advance();
    if (copied_ < one.first) return false;
    for (bool moved = true; moved;) moved = offer_piece(one) | take_pieces(one);
    const bool done = one.taken == one.rounds && least(&node_flags::copies) >= one.first + one.rounds;
    if (!done) {
        refuse_given_up();
        look_around();
    }
    return done;
}

void node_shared::finish(gathering& one) {
    require(copied_ >= one.first, code::internal, "gathers of one node are finished in the order of their starts");
    wait([&] { return progress(one); });
}

class gather_through_memory : public operation {
public:
    gather_through_memory(node_shared& over, node_shared::gathering one) : over_(over), one_(std::move(one)) { over_.progress(one_); }
    bool progress() override { return over_.progress(one_); }
    void finish() override { over_.finish(one_); }

private:
    node_shared& over_;
    node_shared::gathering one_;
};

std::unique_ptr<operation> node_shared::start_all_gather(all_gather_request what) {
    check_gather(what, rank_, ranks_);
    gathering one;
    std::int64_t most = 0, all = 0;
    for (const landing& each : what.landings) {
        if (what.once) break;  // on one node it is there already
        most = std::max(most, each.bytes);
        all += each.bytes;
    }
    one.beyond_caches = all >= longer_than_caches;
    require(what.visible || most == 0 || piece_ > 0, code::internal, "reserve() comes before the first gather");
    one.what = std::move(what);
    one.piece = one.what.visible ? most : piece_;
    one.first = gather_rounds_;
    one.rounds = most == 0 ? 0 : static_cast<std::uint64_t>((most + one.piece - 1) / one.piece);
    gather_rounds_ += one.rounds;
    return std::make_unique<gather_through_memory>(*this, std::move(one));
}

}  // namespace

std::int64_t board_bytes(int ranks) noexcept { return static_cast<std::int64_t>(sizeof(node_flags)) * ranks; }

std::unique_ptr<node_level> make_node_shared(std::unique_ptr<communicator> plain, std::shared_ptr<node_memory> memory,
                                             std::shared_ptr<const node_memory::stretch> board) {
    return std::make_unique<node_shared>(std::move(plain), std::move(memory), std::move(board));
}

}  // namespace zero::comm
