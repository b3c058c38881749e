// The reduce-scatter over MPI (exchange.hpp). Counts are in units of two bytes, the smallest element that travels: so
// the receiver reads a sender's element type off the length of its message.
#include "comm/exchange.hpp"

#include <algorithm>
#include <cstring>

#include "comm/checks.hpp"
#include "comm/exact_tile.hpp"
#include "comm/nested_sum.hpp"
#include "core/error.hpp"
#include "tensor/vector.hpp"

namespace zero::comm {

namespace {

constexpr std::int64_t unit = 2;                     // bytes of MPI_UINT16_T
constexpr std::int64_t largest_chunk = 1024 * 1024;  // bytes of the sum type from one peer: fewer turns, still in cache
constexpr std::int64_t tile = 4096;                  // elements summed in one go: whole atoms of the norm
constexpr std::int64_t conversion = 1 << 15;         // elements that are worth another thread
constexpr std::int64_t smallest_chunk = 8 * 1024;    // below this the cost per message rules
constexpr std::int64_t scratch_aim = 12 * 1024 * 1024;  // many ranks: smaller chunks rather than more memory

const std::byte* bytes_at(const void* base, std::int64_t offset) {
    return static_cast<const std::byte*>(base) + offset;
}
std::byte* bytes_at(void* base, std::int64_t offset) {
    return static_cast<std::byte*>(base) + offset;
}

// A lane holds a wide row of every peer for what comes in and a half row for what goes out in a shorter type.
constexpr std::int64_t row_bytes_per_peer(std::int64_t chunk, std::size_t lanes) {
    return static_cast<std::int64_t>(lanes) * (chunk + chunk / 2);
}

}  // namespace

exchange::exchange(MPI_Comm comm, const partition::topology& nodes, std::int64_t largest_count, communicator::traffic& sent)
    : comm_(comm), nodes_(nodes), ranks_(nodes.ranks), largest_count_(largest_count), sent_(sent) {
    check(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    sources_.resize(static_cast<std::size_t>(ranks_));
    types_.resize(static_cast<std::size_t>(ranks_));
}

std::int64_t exchange::chunk_bytes(std::int64_t largest_slice_bytes) const noexcept {
    if (ranks_ == 1 || largest_slice_bytes <= 0) return 0;
    const std::int64_t fits = scratch_aim / row_bytes_per_peer(1024, lanes) * 1024 / (ranks_ - 1);
    const std::int64_t most = std::clamp(fits / 64 * 64, smallest_chunk, largest_chunk);
    return std::min(most, (largest_slice_bytes + 127) / 128 * 128);  // half a row is still aligned to 64
}

std::int64_t exchange::scratch_bytes(std::int64_t largest_slice_bytes) const noexcept {
    return row_bytes_per_peer(chunk_bytes(largest_slice_bytes), lanes) * (ranks_ - 1);
}

void exchange::reserve(ledger& book, std::int64_t largest_slice_bytes) {
    require(queue_.empty(), code::internal, "the chunks of the exchange cannot change while reductions are under way");
    scratch_ = buffer();
    chunk_bytes_ = 0;
    scratch_ = buffer(book, purpose::communication, scratch_bytes(largest_slice_bytes));
    chunk_bytes_ = chunk_bytes(largest_slice_bytes);
}

// Peers are counted without the own rank: peer p is rank p, or p + 1 from the own rank on.
std::byte* exchange::receive_place(std::size_t which, int peer) const noexcept {
    return scratch_.data() + (static_cast<std::int64_t>(which) * (ranks_ - 1) + peer) * chunk_bytes_;
}

std::byte* exchange::send_place(std::size_t which, int peer) const noexcept {
    const std::int64_t behind_receives = static_cast<std::int64_t>(lanes) * (ranks_ - 1) * chunk_bytes_;
    return scratch_.data() + behind_receives +
           (static_cast<std::int64_t>(which) * (ranks_ - 1) + peer) * (chunk_bytes_ / 2);
}

std::shared_ptr<exchange::reduction> exchange::start(reduce_scatter_request what) {
    if (broken_) std::rethrow_exception(broken_);
    const std::int64_t wide = size_of(what.sum_type);
    check_reduction(what);
    require(what.slice == 0 || ranks_ == 1 || chunk_bytes_ > 0, code::internal,
            "reserve() comes before the first reduction");
    if (is_16bit(what.travel_type)) what.short_type = what.travel_type;
    auto one = std::make_shared<reduction>();
    // Whole atoms of the norm per chunk, whatever the limit on counts is: `finished` must see the same ranges.
    const std::int64_t each = (ranks_ == 1 ? largest_chunk : chunk_bytes_) / wide;
    one->what = std::move(what);
    one->tag = tag_of(kind::reduce, sequence_++);
    one->parts = {one->what.slice, each};
    if (!one->done()) queue_.push_back(one);
    progress();
    return one;
}

bool exchange::progress() noexcept {
    if (queue_.empty() || busy_) return false;
    busy_ = true;
    bool moved = false;
    try {
        while (advance()) moved = true;
    } catch (...) {
        fail_all(std::current_exception());
        moved = true;
    }
    busy_ = false;
    return moved;
}

bool exchange::advance() {
    bool moved = post_receives();  // first, so that what comes in finds its place
    moved |= post_sends();
    moved |= sum_next();
    moved |= retire_sends();
    while (!queue_.empty() && queue_.front()->done()) queue_.pop_front();
    return moved;
}

bool exchange::post_receives() {
    bool moved = false;
    for (auto& one : queue_) {
        while (one->received < one->parts.number()) {
            lane& at = receiving_[next_receive_];
            if (at.of) return moved;
            at.of = one;
            at.chunk = one->received++;
            receive_chunk(next_receive_, *one);
            next_receive_ = (next_receive_ + 1) % lanes;
            moved = true;
        }
    }
    return moved;
}

bool exchange::post_sends() {
    bool moved = false;
    for (auto& one : queue_) {
        while (one->sent < one->parts.number()) {
            lane& at = sending_[next_send_];
            if (at.of) return moved;
            at.of = one;
            at.chunk = one->sent++;
            send_chunk(next_send_, *one);
            next_send_ = (next_send_ + 1) % lanes;
            moved = true;
        }
    }
    return moved;
}

bool exchange::sum_next() {
    lane& at = receiving_[next_sum_];
    if (!at.of || !at.requests.test()) return false;
    const std::shared_ptr<reduction> one = at.of;
    sum_chunk(next_sum_, *one);
    ++one->summed;
    at.of.reset();
    next_sum_ = (next_sum_ + 1) % lanes;
    return true;
}

bool exchange::retire_sends() {
    lane& at = sending_[next_delivery_];
    if (!at.of || !at.requests.test()) return false;
    ++at.of->delivered;
    at.of.reset();
    next_delivery_ = (next_delivery_ + 1) % lanes;
    return true;
}

// The messages of one chunk are cut by elements, so that sender and receiver agree on their number whatever type
// travels.
chunks exchange::messages(const reduction& one, std::int64_t chunk) const noexcept {
    return {one.parts.count(chunk), largest_count_ * unit / size_of(one.what.sum_type)};
}

void exchange::receive_chunk(std::size_t which, reduction& one) {
    lane& at = receiving_[which];
    const std::int64_t wide = size_of(one.what.sum_type);
    const chunks cut = messages(one, at.chunk);
    for (int peer = 0; peer < ranks_ - 1; ++peer) {
        const int from = peer < rank_ ? peer : peer + 1;
        for (std::int64_t k = 0; k < cut.number(); ++k) {
            check(MPI_Irecv(receive_place(which, peer) + cut.first(k) * wide,
                            static_cast<int>(cut.count(k) * wide / unit), MPI_UINT16_T, from, one.tag, comm_,
                            at.requests.add()),
                  "MPI_Irecv");
        }
    }
}

void exchange::send_chunk(std::size_t which, reduction& one) {
    lane& at = sending_[which];
    const reduce_scatter_request& what = one.what;
    const std::int64_t first = one.parts.first(at.chunk), count = one.parts.count(at.chunk);
    const std::int64_t width = size_of(what.travel_type);
    const chunks cut = messages(one, at.chunk);
    for (int step = 1; step < ranks_; ++step) {
        const int owner = (rank_ + step) % ranks_;  // everyone starts with another owner
        const std::int64_t from = partition::slot_of_rank(nodes_, owner) * what.slice + first;
        const void* data = bytes_at(what.source, from * size_of(source_type(what)));
        if (what.travel_type != source_type(what)) {
            std::byte* shorter = send_place(which, step - 1);
            share(threads_, count, conversion, [&](int, std::int64_t begin, std::int64_t length) {
                vector::convert(what.travel_type, shorter + begin * width, source_type(what), bytes_at(data, begin * size_of(source_type(what))),
                                length);
            });
            data = shorter;
        }
        for (std::int64_t k = 0; k < cut.number(); ++k) {
            check(MPI_Isend(bytes_at(data, cut.first(k) * width), static_cast<int>(cut.count(k) * width / unit),
                            MPI_UINT16_T, owner, one.tag, comm_, at.requests.add()),
                  "MPI_Isend");
        }
        sent_.reduce_bytes += count * width;
        if (nodes_.node_of(owner) != nodes_.node_of(rank_)) sent_.off_node_bytes += count * width;
    }
}

void exchange::sum_chunk(std::size_t which, reduction& one) {
    const reduce_scatter_request& what = one.what;
    const std::int64_t wide = size_of(what.sum_type), at = receiving_[which].chunk;
    const std::int64_t first = one.parts.first(at), count = one.parts.count(at);
    // What goes wrong here is this rank's own affair: the others still get what they wait for, and finish() throws.
    try {
        for (int peer = 0; peer < ranks_ - 1; ++peer) {
            const auto from = static_cast<std::size_t>(peer < rank_ ? peer : peer + 1);
            sources_[from] = receive_place(which, peer);
            types_[from] = arrived(which, peer, one);
        }
        const std::int64_t own = partition::slot_of_rank(nodes_, rank_) * what.slice + first;
        sources_[static_cast<std::size_t>(rank_)] = bytes_at(what.source, own * size_of(source_type(what)));
        types_[static_cast<std::size_t>(rank_)] = source_type(what);
        share(threads_, count, tile, [&](int member, std::int64_t begin, std::int64_t length) {
            std::vector<const void*> sources(sources_.size());
            // Tile by tile, so that `finished` finds the sum in the nearest cache.
            for (std::int64_t done = begin; done < begin + length; done += tile) {
                const std::int64_t n = std::min(tile, begin + length - done);
                for (std::size_t k = 0; k < sources.size(); ++k) sources[k] = bytes_at(sources_[k], done * size_of(types_[k]));
                bool final = true;
                std::byte* sums = bytes_at(what.target, (first + done) * wide);
                if (what.exact)
                    final = sum_exactly(what, first + done, sources.data(), types_.data(), ranks_, n);
                else
                    nested_sum(nodes_, what.sum_type, sums, what.add, sources.data(), types_.data(), n);
                if (final && what.finished && !one.error) what.finished(member, first + done, n, sums);
            }
        });
    } catch (...) {
        if (!one.error) one.error = std::current_exception();
    }
}

dtype exchange::arrived(std::size_t which, int peer, const reduction& one) const {
    const lane& at = receiving_[which];
    const chunks cut = messages(one, at.chunk);
    const std::int64_t wide = size_of(one.what.sum_type);
    const MPI_Status& status = at.requests.statuses()[static_cast<std::size_t>(peer * cut.number())];
    int units = 0;
    check(MPI_Get_count(&status, MPI_UINT16_T, &units), "MPI_Get_count");
    const std::int64_t width = units * unit / cut.count(0);
    if (width == wide) return one.what.sum_type;
    std::byte* place = receive_place(which, peer);
    for (std::int64_t k = 1; k < cut.number(); ++k) {  // several messages left gaps
        std::memmove(place + cut.first(k) * width, place + cut.first(k) * wide,
                     static_cast<std::size_t>(cut.count(k) * width));
    }
    if (width == size_of(dtype::f32)) return dtype::f32;
    require(width == unit && is_16bit(one.what.short_type), code::internal,
            "rank {} sent {} bytes per element of a sum in {}: say in which 16-bit type that may be (short_type)",
            status.MPI_SOURCE, width, name(one.what.sum_type));
    return one.what.short_type;
}

void exchange::fail_all(std::exception_ptr why) noexcept {
    broken_ = why;
    for (auto& one : queue_) {
        if (!one->error) one->error = why;
        one->summed = one->delivered = one->parts.number();
    }
    for (std::size_t which = 0; which < lanes; ++which) {
        receiving_[which].requests.drop();
        sending_[which].requests.drop();
        receiving_[which].of.reset();
        sending_[which].of.reset();
    }
    queue_.clear();
}

void exchange::abandon(const char* why) noexcept {
    fail_all(std::make_exception_ptr(error(code::state, why)));
}

}  // namespace zero::comm
