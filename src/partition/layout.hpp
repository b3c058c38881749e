// The flat space as pure arithmetic: tensors -> buckets -> slices. No MPI, no memory, no values.
// Words: a *bucket* is a run of tensors of one kind that is padded and cut into P equal *slices*; a *piece* is the part
// of a tensor that lies in a range of a bucket. Everything is counted in elements.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/dtype.hpp"

namespace zero::partition {

struct topology {
    int ranks = 1;
    int nodes = 1;  // all of ranks/nodes ranks; unequal nodes are described as 1 node (one flat level)

    int per_node() const noexcept { return ranks / nodes; }
    int node_of(int rank) const noexcept { return rank / per_node(); }
    int local_of(int rank) const noexcept { return rank % per_node(); }
};
// Rank (node m, local l), ranks numbered node by node, owns slice l*M + m: what stays of a slice after a reduction inside
// the node is contiguous for the exchange between nodes.
int slot_of_rank(const topology& where, int rank);
int rank_of_slot(const topology& where, int slot);

struct item {               // one registered tensor, in registration order
    std::int64_t count = 0; // elements, may be 0
    dtype type = dtype::f32;
    int group = 0;
    bool library_owned = true;
    bool trainable = true;  // false: frozen at commit
};

struct rules {
    topology where;
    std::int64_t bucket_elements = 500'000'000;
    bool shard_values = false;                // stage 3: tensors above the persistence threshold are a bucket each
    std::int64_t persistence_threshold = 0;   // stage 3: tensors of at most this many elements stay whole ...
    std::int64_t persistence_total = INT64_MAX;  // ... while their sum, in registration order, stays within this
};

struct seat {               // where a tensor sits
    int bucket = -1;
    std::int64_t offset = 0;
};

struct bucket {
    dtype type = dtype::f32;
    int group = 0;
    bool library_owned = true;
    bool trainable = true;
    bool whole_values = true;      // false: stage 3, values live in slices
    std::vector<int> tensors;      // registration order reversed
    std::int64_t used = 0;         // end of the last tensor (alignment gaps included)
    std::int64_t elements = 0;     // sum of the tensors' counts (without gaps)
    std::int64_t padded = 0;       // multiple of ranks * alignment(type)
    std::int64_t slice = 0;        // padded / ranks
};

struct range {
    std::int64_t first = 0, count = 0;
};

struct piece {                // elements first .. first+count-1 of `tensor` stand at `offset` of the bucket
    int tensor = -1;
    std::int64_t first = 0, count = 0, offset = 0;
};

constexpr std::int64_t alignment(dtype type) noexcept { return 64 / size_of(type); }  // elements in 64 bytes

class layout {
public:
    layout() = default;
    layout(std::span<const item> items, const rules& how);

    std::span<const bucket> buckets() const noexcept { return buckets_; }  // in the order in which they travel
    const seat& where(int tensor) const { return seats_.at(static_cast<std::size_t>(tensor)); }
    const topology& ranks() const noexcept { return topology_; }

    range slice_of(int bucket, int rank) const;                    // that rank's elements of the bucket
    std::vector<piece> pieces(int bucket, range part) const;       // in bucket order, no empty ones
    range owned(int tensor, int rank) const;                       // that rank's elements of the tensor (count may be 0)
    std::int64_t owned_elements(int rank) const;                   // over all tensors, without padding
    std::int64_t elements() const noexcept;                        // over all tensors

private:
    topology topology_;
    std::vector<item> items_;
    std::vector<bucket> buckets_;
    std::vector<seat> seats_;
};

}  // namespace zero::partition
