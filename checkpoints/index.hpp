// index.h5: whole tensors as virtual datasets over the parts, for h5py, h5dump, Fortran, netCDF. This library never
// reads through it, because a virtual dataset shows fill values, with success, where a part is missing.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "manifest.hpp"

namespace zero::checkpoint {

// A tensor without dims stands in the index itself, not behind a mapping: its bytes by (extent, offset).
using scalars = std::map<std::pair<int, std::int64_t>, std::string>;

// `dataset_counts`: elements of every dataset of every file, by (file, path).
struct index_file {
    struct run {
        std::int64_t offset = 0;
        std::string bytes;
    };
    std::vector<run> runs;
    std::int64_t bytes = 0;
};

index_file build_index(const manifest& what, const scalars& values);

}  // namespace zero::checkpoint
