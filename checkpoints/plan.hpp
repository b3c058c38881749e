// Who writes what where: pure arithmetic over the ranges that the ranks own. Each rank turns its own state into streams
// (runs of equal dtype, group and kind); from all ranks' streams every rank derives the same files and extents.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "crew.hpp"
#include "manifest.hpp"
#include "part.hpp"
#include "state.hpp"

namespace zero::checkpoint {

struct stream_piece {
    int tensor = 0, vector = 0;  // places in contents; tensor -1: attachment number `vector`
    std::int64_t first = 0, count = 0;
    const void* data = nullptr;  // on the owner
};

struct stream {
    std::string dataset;
    dtype type = dtype::f32;
    std::int64_t count = 0;
    std::vector<stream_piece> pieces;
};

// What one rank brings: its streams, and (data rank 0 of each model) what its tensors are.
struct contribution {
    std::vector<stream> streams;
    std::vector<tensor_entry> tensors;
    std::vector<attachment_entry> attachments;
};

contribution contribution_of(const contents& state, const crew& ranks);
std::string pack(const contribution& what);
contribution unpack(const std::string& text);

// All ranks' contributions, by rank number, as files, extents, tensors and attachments; offsets, sums and bytes are
// still 0. `ranks_per_file` consecutive data ranks share a file.
struct plan {
    manifest skeleton;
    std::vector<int> file_of_rank;
    std::vector<int> first_extent_of_rank;  // size()+1 entries: a rank's extents, in the order of its streams
};
plan make_plan(std::span<const contribution> all, int data_size, int ranks_per_file, const std::string& uuid);

std::vector<part_dataset> datasets_of(const plan& what, int file);

}  // namespace zero::checkpoint
