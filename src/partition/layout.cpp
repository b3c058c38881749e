// How tensors become buckets and slices. Three steps: sort the tensors into spaces, fill buckets, put the buckets in
// the order in which a backward pass completes them.
#include "partition/layout.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/error.hpp"

namespace zero::partition {

namespace {

std::int64_t sum(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    const bool overflow = __builtin_add_overflow(a, b, &result);
    require(!overflow, code::argument,
            "the tensors have more than 2^63-1 elements together: register fewer or smaller ones");
    return result;
}

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
    const std::int64_t rest = value % unit;
    return rest == 0 ? value : sum(value, unit - rest);
}

std::size_t at(int index) noexcept {
    return static_cast<std::size_t>(index);
}

// Tensors of one space may share a bucket.
struct space {
    dtype type;
    int group;
    bool library_owned, trainable, whole_values;
    auto key() const noexcept { return std::tuple(type, group, library_owned, trainable, whole_values); }
    bool operator<(const space& other) const noexcept { return key() < other.key(); }
};

// Stage 3: small tensors stay whole while their sum, taken in registration order, stays within the cap. A tensor that
// would break the cap is cut; smaller ones after it may still fit.
std::vector<bool> whole_tensors(std::span<const item> items, const rules& how) {
    std::vector<bool> whole(items.size(), true);
    if (!how.shard_values) return whole;
    std::int64_t left = how.persistence_total;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const std::int64_t count = items[i].count;
        whole[i] = count <= how.persistence_threshold && count <= left;
        if (whole[i]) left -= count;
        if (count == 0) whole[i] = true;  // nothing to cut
    }
    return whole;
}

// Fills the buckets of one space. The size of a bucket is counted in elements of tensors, without the gaps before
// aligned starts, so that a caller who chose 16 tensors per bucket gets 16.
class filler {
public:
    filler(const space& kind, const rules& how, std::vector<bucket>& out, std::vector<seat>& seats)
        : kind_(kind), how_(how), out_(out), seats_(seats) {}

    void place(int tensor, std::int64_t count) {
        if (open_ < 0 || is_full(count)) start();
        bucket& now = out_[at(open_)];
        const std::int64_t offset = round_up(now.used, alignment(kind_.type));
        seats_[at(tensor)] = seat{open_, offset};
        now.tensors.push_back(tensor);
        if (count == 0) return;  // a seat, but no room: `used` stays the end of the last element
        now.used = sum(offset, count);
        now.elements += count;
    }

private:
    bool is_full(std::int64_t count) const {
        const bucket& now = out_[at(open_)];
        if (count == 0 || now.elements == 0) return false;
        return !kind_.whole_values || count > how_.bucket_elements - now.elements;
    }

    void start() {
        bucket fresh;
        fresh.type = kind_.type;
        fresh.group = kind_.group;
        fresh.library_owned = kind_.library_owned;
        fresh.trainable = kind_.trainable;
        fresh.whole_values = kind_.whole_values;
        open_ = static_cast<int>(out_.size());
        out_.push_back(std::move(fresh));
    }

    const space& kind_;
    const rules& how_;
    std::vector<bucket>& out_;
    std::vector<seat>& seats_;
    int open_ = -1;
};

void cut(bucket& one, int ranks) {
    one.padded = round_up(one.used, ranks * alignment(one.type));
    one.slice = one.padded / ranks;
}

// A backward pass runs from the last registered tensor to the first. Buckets travel in the order of their last
// registered tensor (the first in the bucket): a rule that every rank evaluates alike.
void order_as_backward(std::vector<bucket>& buckets, std::vector<seat>& seats) {
    std::sort(buckets.begin(), buckets.end(),
              [](const bucket& a, const bucket& b) { return a.tensors.front() > b.tensors.front(); });
    for (std::size_t b = 0; b < buckets.size(); ++b) {
        for (const int tensor : buckets[b].tensors) seats[at(tensor)].bucket = static_cast<int>(b);
    }
}

void check(const topology& where, int rank_or_slot) {
    require(rank_or_slot >= 0 && rank_or_slot < where.ranks, code::argument, "rank {} is not one of 0..{}",
            rank_or_slot, where.ranks - 1);
}

range overlap(range a, range b) noexcept {
    const std::int64_t first = std::max(a.first, b.first);
    const std::int64_t end = std::min(a.first + a.count, b.first + b.count);
    return {first, std::max<std::int64_t>(0, end - first)};
}

}  // namespace

int slot_of_rank(const topology& where, int rank) {
    check(where, rank);
    const int per_node = where.ranks / where.nodes;
    return rank % per_node * where.nodes + rank / per_node;
}

int rank_of_slot(const topology& where, int slot) {
    check(where, slot);
    const int per_node = where.ranks / where.nodes;
    return slot % where.nodes * per_node + slot / where.nodes;
}

layout::layout(std::span<const item> items, const rules& how)
    : topology_(how.where), items_(items.begin(), items.end()) {
    const int ranks = topology_.ranks, nodes = topology_.nodes;
    require(ranks >= 1 && nodes >= 1 && ranks % nodes == 0, code::argument,
            "{} ranks cannot be spread evenly over {} nodes: describe unequal nodes as one", ranks, nodes);
    require(how.bucket_elements >= 1, code::argument, "a bucket of {} elements holds nothing: give at least 1",
            how.bucket_elements);

    const std::vector<bool> whole = whole_tensors(items, how);
    std::map<space, std::vector<int>> spaces;
    std::int64_t all = 0;
    for (std::size_t i = items.size(); i-- > 0;) {
        const item& one = items[i];
        require(one.count >= 0, code::argument, "tensor {} has {} elements: a count cannot be negative", i, one.count);
        all = sum(all, one.count);
        spaces[space{one.type, one.group, one.library_owned, one.trainable, whole[i]}].push_back(static_cast<int>(i));
    }
    seats_.resize(items.size());
    for (const auto& [kind, tensors] : spaces) {
        filler fill(kind, how, buckets_, seats_);
        for (const int tensor : tensors) fill.place(tensor, items[at(tensor)].count);
    }
    for (bucket& one : buckets_) cut(one, ranks);
    order_as_backward(buckets_, seats_);
}

range layout::slice_of(int bucket, int rank) const {
    const std::int64_t slice = buckets_.at(at(bucket)).slice;
    return {slot_of_rank(topology_, rank) * slice, slice};
}

std::vector<piece> layout::pieces(int bucket, range part) const {
    const std::vector<int>& tensors = buckets_.at(at(bucket)).tensors;
    const auto end_of = [this](int tensor) { return seats_[at(tensor)].offset + items_[at(tensor)].count; };
    const std::int64_t end = part.first + part.count;
    // Ends ascend within a bucket, so the first tensor that reaches into the range is found by halving.
    auto next =
        std::partition_point(tensors.begin(), tensors.end(), [&](int tensor) { return end_of(tensor) <= part.first; });
    std::vector<piece> found;
    for (; next != tensors.end() && seats_[at(*next)].offset < end; ++next) {
        const std::int64_t offset = seats_[at(*next)].offset;
        const range common = overlap(part, {offset, items_[at(*next)].count});
        if (common.count > 0) found.push_back({*next, common.first - offset, common.count, common.first});
    }
    return found;
}

range layout::owned(int tensor, int rank) const {
    const seat& place = where(tensor);
    const std::int64_t count = items_[at(tensor)].count;
    const range slice = slice_of(place.bucket, rank);
    // Clamped, so that ranks without elements answer 0 or count: the ranges of all slots lie one after the other.
    const std::int64_t first = std::clamp<std::int64_t>(slice.first - place.offset, 0, count);
    const std::int64_t end = std::clamp<std::int64_t>(slice.first + slice.count - place.offset, 0, count);
    return {first, end - first};
}

std::int64_t layout::owned_elements(int rank) const {
    std::int64_t sum_of_counts = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) sum_of_counts += owned(static_cast<int>(i), rank).count;
    return sum_of_counts;
}

std::int64_t layout::elements() const noexcept {
    std::int64_t sum_of_counts = 0;
    for (const bucket& one : buckets_) sum_of_counts += one.elements;
    return sum_of_counts;
}

}  // namespace zero::partition
