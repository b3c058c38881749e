// MANIFEST.json: the commit record. What is in the checkpoint, where its bytes lie, and what they must sum up to.
// Not here: reading the data (reader.hpp) and the index for other programs (index.hpp).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "state.hpp"

namespace zero::checkpoint {

constexpr std::int64_t format_version = 1;
constexpr const char* manifest_name = "MANIFEST.json";
constexpr const char* index_name = "index.h5";
constexpr std::int64_t most_manifest_bytes = std::int64_t{1} << 31;

// The first line of the file, with a checksum of its own: enough to choose a checkpoint without reading all of it.
struct head {
    std::string uuid, tag, time;
    std::int64_t sequence = 0, step = 0, bytes = 0;  // bytes: of data, over all parts
    int ranks = 1, model_ranks = 1, stage = 0;
};

struct file_entry {
    std::string name;
    std::int64_t bytes = 0;
    std::uint32_t frame = 0;     // CRC-32C of everything outside the extents: HDF5's own bytes, identity, block sums
    std::int64_t identity = 0;   // offset of the identity text
    std::int64_t integrity = 0;  // offset of the table of block sums
    std::int64_t blocks = 0;     // its length, 4 bytes each
};

// A contiguous run of one rank's elements in a file.
struct extent {
    int file = 0;
    std::string dataset;
    dtype type = dtype::f32;
    std::int64_t first = 0;  // where in the dataset, in elements
    std::int64_t count = 0;
    std::int64_t offset = 0;  // where in the file, in bytes
    std::int64_t block = 0;   // its first entry in the table of block sums
    std::int64_t bytes() const noexcept { return count * size_of(type); }
};

struct piece {
    int extent = 0;
    std::int64_t offset = 0;            // in the extent, in elements
    std::int64_t first = 0, count = 0;  // of the flattened tensor
};

struct vector_entry {
    std::string state;  // "value" or the name of a state
    dtype type = dtype::f32;
    std::vector<piece> pieces;  // sorted; cover the tensor without overlap
};

struct tensor_entry {
    std::string name;
    dtype type = dtype::f32;
    std::vector<std::int64_t> dims;
    std::int64_t count = 1;
    int group = 0, model = 0;
    bool frozen = false;
    std::vector<vector_entry> vectors;
};

struct attachment_entry {
    std::string name;
    dtype type = dtype::f64;
    std::vector<std::int64_t> dims;
    std::int64_t count = 0;
    bool per_rank = false;
    int model = 0, rank = 0;  // data rank
    int extent = -1;          // -1: no elements
};

struct manifest {
    checkpoint::head head;
    run_state run;
    std::int64_t index_bytes = 0;
    std::uint32_t index_sum = 0;
    std::vector<file_entry> files;
    std::vector<extent> extents;
    std::vector<tensor_entry> tensors;
    std::vector<attachment_entry> attachments;
};

std::string to_text(const manifest& what);

// All of these throw `damage`; `where` names the file in the text.
manifest from_text(std::string_view text, const std::string& where);
head head_from_text(std::string_view start, const std::string& where);  // the first line is enough
manifest from_json(std::string_view text, const std::string& where);    // without the check of the sums (fuzzing)

// Do the numbers hang together: every byte inside its file and in one place, every tensor covered once?
void check(const manifest& what, const std::string& where);

std::string identity_text(const manifest& what, int file);  // stands inside each part; 64 bytes
constexpr std::int64_t identity_bytes = 64;
std::int64_t blocks_of(std::int64_t bytes) noexcept;
std::int64_t product(const std::vector<std::int64_t>& dims, const std::string& where);
std::optional<dtype> dtype_from(std::string_view text) noexcept;

}  // namespace zero::checkpoint
