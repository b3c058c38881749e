// Reading the data of a checkpoint: from the parts, at the offsets of the manifest, never through HDF5. Every block
// that is touched is read whole and must have its checksum, so damage is found, never handed on. Not here: which
// elements a rank needs (reshard.hpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "files.hpp"
#include "manifest.hpp"

namespace zero::checkpoint {

// An open part whose size, frame and identity are right.
class part_reader {
public:
    part_reader(const files::disk& disk, const std::string& folder, const manifest& what, int number);
    const std::string& path() const noexcept { return from_.path(); }
    std::int64_t read(void* to, std::int64_t bytes, std::int64_t offset) const { return from_.read(to, bytes, offset); }
    files::file& file() noexcept { return from_; }
    std::uint32_t block_sum(std::int64_t block) const { return sums_.at(static_cast<std::size_t>(block)); }

private:
    files::file from_;
    std::vector<std::uint32_t> sums_;
};

// Elements of one extent that are wanted somewhere, in the wanted type.
struct wanted {
    std::int64_t first = 0, count = 0;  // in the extent, in elements
    dtype type = dtype::f32;
    std::byte* to = nullptr;  // null: only the check
};

// One read request: whole blocks of an extent, at most `most_bytes` of them (at least one), that hold wanted elements.
struct read_run {
    std::int64_t first = 0, bytes = 0;  // in the extent
    std::size_t oldest = 0;             // the first item that may have elements in it
};
std::vector<read_run> runs_of(const extent& where, std::span<const wanted> items,
                              std::int64_t most_bytes);  // sorted items

// What a run read, `had` bytes of it: block by block, while it is in the caches, checked and brought where it is wanted; `before`
// is told of each place that is then overwritten. Damage where a block differs from what was written or the part has ended.
using overwriting = std::function<void(std::byte* place, std::int64_t bytes)>;
void check_and_hand_out(const part_reader& from, const extent& where, std::span<const wanted> items, const read_run& run,
                        const std::byte* data, std::int64_t had, const overwriting& before = {});

// Reads, checks and hands out. Scratch: the run's bytes and direct_unit more. Several threads may do this at once.
void read(const part_reader& from, const extent& where, std::span<const wanted> items, const read_run& run,
          std::byte* scratch);

}  // namespace zero::checkpoint
