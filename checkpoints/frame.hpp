// The frame of a part: all bytes that are not data (HDF5's own, the identity, the table of block sums). One checksum in
// the manifest guards it.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "files.hpp"
#include "manifest.hpp"

namespace zero::checkpoint {

struct byte_range {
    std::int64_t first = 0, bytes = 0;
};
std::vector<byte_range> frame_of(const manifest& what, int file);  // in file order

// Sums the frame of an open part. `seen` (may be empty) gets each stretch that was read.
std::uint32_t sum_frame(
    const manifest& what, int number, const files::file& part,
    const std::function<void(std::int64_t offset, const char* data, std::int64_t bytes)>& seen = {});

}  // namespace zero::checkpoint
