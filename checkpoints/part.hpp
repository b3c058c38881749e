// Laying out a part: an HDF5 file whose datasets have their space, but not yet their bytes.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.hpp"

namespace zero::checkpoint {

struct part_dataset {
    std::string path;
    dtype type = dtype::f32;
    std::int64_t count = 0;  // 1-D, not 0
};

struct part_layout {
    struct run {
        std::int64_t offset = 0;
        std::string bytes;
    };
    std::vector<run> own;  // the bytes that are not data
    std::int64_t bytes = 0, identity = 0, integrity = 0;
    std::vector<std::int64_t> offsets;  // one per dataset
};

part_layout lay_out_part(std::span<const part_dataset> datasets, const std::string& uuid, const std::string& identity,
                         std::int64_t blocks);

}  // namespace zero::checkpoint
