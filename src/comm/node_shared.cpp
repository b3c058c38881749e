// The ranks of one node, through memory that all of them see: an owner reads every contribution where it lies and sums them
// in rank order in one pass, a gather copies from where the parts lie, and small reductions are flags. Texts and broadcasts
// go over the plain communicator underneath, and so do gathers from private memory where the system does not let one
// process read another. Every wait moves the sums on, as in mpi.cpp.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <new>
#include <utility>

#include "comm/checks.hpp"
#include "comm/foreign_memory.hpp"
#include "comm/node_flags.hpp"
#include "comm/node_shared.hpp"
#include "core/error.hpp"
#include "tensor/vector.hpp"

namespace zero::comm {

namespace {

constexpr std::int64_t tile = 4096;  // elements summed in one go: whole atoms of the norm, and in the nearest caches

class node_shared final : public communicator {
public:
    node_shared(std::unique_ptr<communicator> plain, std::shared_ptr<node_memory> memory,
                std::shared_ptr<const node_memory::stretch> board)
        : plain_(std::move(plain)),
          memory_(std::move(memory)),
          rank_(plain_->rank()),
          ranks_(plain_->size()),
          board_(std::move(board)) {
        mine_ = new (&flags(rank_)) node_flags;  // until then it reads as zeros, which mean the same
        mine_->process = ::getpid();
        mine_->token = token_ = memory_->where().token + static_cast<std::uint64_t>(rank_);
        mine_->token_address = reinterpret_cast<std::uintptr_t>(&token_);
        sources_.resize(static_cast<std::size_t>(ranks_));
        types_.resize(static_cast<std::size_t>(ranks_));
        plain_->meanwhile([this] { return advance(); });
        try_foreign_memory();
    }

    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return ranks_; }
    const partition::topology& nodes() const noexcept override { return plain_->nodes(); }
    node_memory* shared() const noexcept override { return memory_.get(); }
    bool on_one_node() override { return true; }
    const traffic& sent() const noexcept override { return plain_->sent(); }

    std::unique_ptr<operation> start_reduce_scatter(reduce_scatter_request what) override;
    std::unique_ptr<operation> start_all_gather(all_gather_request what) override;
    void all_reduce(std::span<std::int64_t> values, combine how) override;
    void fence() override { meet(); }
    void broadcast(void* data, std::int64_t bytes, int root) override { plain_->broadcast(data, bytes, root); }
    std::vector<std::string> gather(const std::string& mine, int root) override { return plain_->gather(mine, root); }
    std::string broadcast(const std::string& text, int root) override { return plain_->broadcast(text, root); }

    void reserve(ledger& book, std::int64_t) override {
        counted_ = buffer(book, purpose::communication, sizeof(node_flags), reinterpret_cast<std::byte*>(mine_), board_);
    }
    std::int64_t scratch_bytes(std::int64_t) const noexcept override { return sizeof(node_flags); }

    // One reduce-scatter on its way.
    struct reduction {
        reduce_scatter_request what;
        std::uint64_t number = 0;  // counted from 0, the same on all ranks
        std::exception_ptr error;
        bool done = false;
    };
    bool advance();
    bool progress(const reduction& one) { return advance(), one.done; }
    void finish(reduction& one);
    void give_up() noexcept;
    bool progress(const all_gather_request& what, std::uint64_t number);
    void finish(const all_gather_request& what, std::uint64_t number);

private:
    node_flags& flags(int rank) const noexcept { return *(reinterpret_cast<node_flags*>(board_->data) + rank); }
    std::uint64_t least(node_flags::counter node_flags::*which) const noexcept;
    bool post();
    bool sum_next();
    void sum(const reduction& one);
    bool retire();
    void meet();
    void try_foreign_memory();
    void refuse_given_up() const;
    void copy_part(int rank, const all_gather_request& what, std::uint64_t number);
    template <typename Done>
    void wait(const Done& done);

    std::unique_ptr<communicator> plain_;
    std::shared_ptr<node_memory> memory_;
    int rank_, ranks_;
    std::shared_ptr<const node_memory::stretch> board_;
    node_flags* mine_ = nullptr;
    buffer counted_;
    std::uint64_t rounds_ = 0, started_ = 0, posted_ = 0, summed_ = 0, retired_ = 0, gathers_ = 0, copied_ = 0;
    std::deque<std::shared_ptr<reduction>> queue_;  // number retired_ first
    std::vector<const void*> sources_;
    std::vector<dtype> types_;
    bool busy_ = false;                             // `finished` must not come back in here
    bool broken_ = false;
    std::uint64_t token_ = 0;
    bool reads_foreign_ = false;                    // all ranks may read each other's private memory
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
        if (advance()) {
            idle.reset();
        } else if (idle.rest()) {
            for (int rank = 0; rank < ranks_; ++rank)
                require(memory_->lives(rank), code::mpi, "rank {} has ended without zero_finalize: end this program too, and look there for the cause", rank);
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

// Whether the system lets the ranks read each other is tried once, on the right neighbour, and agreed.
void node_shared::try_foreign_memory() {
    meet();
    const node_flags& neighbour = flags((rank_ + 1) % ranks_);
    std::uint64_t seen = 0;
    std::int64_t refused = read_foreign(neighbour.process, neighbour.token_address, &seen, sizeof seen) && seen == neighbour.token ? 0 : 1;
    all_reduce({&refused, 1}, combine::maximum);
    reads_foreign_ = refused == 0;
}

void node_shared::refuse_given_up() const {
    for (int rank = 0; rank < ranks_; ++rank)
        require(flags(rank).given_up.read() == 0, code::state, "rank {} has given up an earlier operation: finalize this context on all ranks", rank);
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
        mine_->contribution[posted_ % node_flags::slots] = {memory_->offset_of(one.what.source), 0, source_type(one.what)};
    }
    mine_->contributions.publish(posted_);
    return true;
}

bool node_shared::sum_next() {
    if (summed_ >= posted_ || least(&node_flags::contributions) <= summed_) return false;
    sum(*queue_[summed_ - retired_]);
    mine_->sums.publish(++summed_);
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

void node_shared::sum(const reduction& one) {
    const auto& what = one.what;
    for (std::int64_t first = 0; first < what.slice; first += tile) {
        const std::int64_t count = std::min(tile, what.slice - first), at = rank_ * what.slice + first;
        for (int rank = 0; rank < ranks_; ++rank) {
            const auto& offer = flags(rank).contribution[one.number % node_flags::slots];
            const auto k = static_cast<std::size_t>(rank);
            types_[k] = offer.type;
            sources_[k] = memory_->at(offer.offset) + at * size_of(offer.type);
        }
        std::byte* target = static_cast<std::byte*>(what.target) + first * size_of(what.sum_type);
        vector::ordered_sum(what.sum_type, target, what.add, sources_.data(), types_.data(), ranks_, count);
        if (what.finished) what.finished(first, count);
    }
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
    check_reduction(what);
    require(!broken_, code::state, "an earlier reduction was given up: finalize this context");
    require(what.slice == 0 || memory_->offset_of(what.source) >= 0, code::internal, "a contribution lies outside of the node's memory");
    auto one = std::make_shared<reduction>();
    one->what = std::move(what);
    if (one->what.slice == 0) {
        one->done = true;
    } else {
        one->number = started_++;
        queue_.push_back(one);
        advance();
    }
    return std::make_unique<reduce_through_memory>(*this, std::move(one));
}

// --- gathers ---

void node_shared::copy_part(int rank, const all_gather_request& what, std::uint64_t number) {
    const auto& to = what.landings[static_cast<std::size_t>(rank)];
    if ((what.root >= 0 && what.root != rank_) || to.bytes == 0) return;
    const auto& part = flags(rank).part[number % node_flags::slots];
    if (rank != rank_ && !what.visible) {
        if (read_foreign(flags(rank).process, part.address, to.data, to.bytes)) return;
        give_up();
        fail(code::mpi, "rank {} cannot be read any more: it has ended, or the system forbids it now; set libzero.node_shared to false", rank);
    }
    const void* from = rank == rank_ ? what.own : memory_->at(part.offset);
    if (to.data != from) std::memcpy(to.data, from, static_cast<std::size_t>(to.bytes));
}

// Copies when all parts are there. Gathers are taken in order, for the counter of copies cannot skip one.
bool node_shared::progress(const all_gather_request& what, std::uint64_t number) {
    advance();
    if (copied_ == number && least(&node_flags::parts) > number) {
        for (int step = 0; step < ranks_; ++step) copy_part((rank_ + step) % ranks_, what, number);  // everyone starts elsewhere
        mine_->copies.publish(++copied_);
    }
    const bool done = copied_ > number && least(&node_flags::copies) > number;
    if (!done) refuse_given_up();
    return done;
}

void node_shared::finish(const all_gather_request& what, std::uint64_t number) {
    require(copied_ >= number, code::internal, "gathers through the node's memory are finished in the order of their starts");
    wait([&] { return progress(what, number); });
}

class gather_through_memory : public operation {
public:
    gather_through_memory(node_shared& over, all_gather_request what, std::uint64_t number)
        : over_(over), what_(std::move(what)), number_(number) {}
    bool progress() override { return over_.progress(what_, number_); }
    void finish() override { over_.finish(what_, number_); }

private:
    node_shared& over_;
    all_gather_request what_;
    std::uint64_t number_;
};

std::unique_ptr<operation> node_shared::start_all_gather(all_gather_request what) {
    if (!what.visible && !reads_foreign_) return plain_->start_all_gather(std::move(what));
    check_gather(what, rank_, ranks_);
    const std::int64_t offset = what.visible && what.own_bytes > 0 ? memory_->offset_of(what.own) : 0;
    require(offset >= 0, code::internal, "a part lies outside of the node's memory");
    const std::uint64_t number = gathers_++;
    wait([&] { return least(&node_flags::copies) + node_flags::slots > number; });
    mine_->part[number % node_flags::slots] = {offset, reinterpret_cast<std::uintptr_t>(what.own), dtype::f32};
    mine_->parts.publish(number + 1);
    return std::make_unique<gather_through_memory>(*this, std::move(what), number);
}

}  // namespace

std::int64_t board_bytes(int ranks) noexcept { return static_cast<std::int64_t>(sizeof(node_flags)) * ranks; }

std::unique_ptr<communicator> make_node_shared(std::unique_ptr<communicator> plain, std::shared_ptr<node_memory> memory,
                                               std::shared_ptr<const node_memory::stretch> board) {
    return std::make_unique<node_shared>(std::move(plain), std::move(memory), std::move(board));
}

}  // namespace zero::comm
