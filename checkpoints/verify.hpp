// Is a checkpoint what was written? Looks at one folder, without a context and without MPI.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "files.hpp"
#include "manifest.hpp"

namespace zero::checkpoint {

struct verification {
    std::vector<std::string> problems;  // empty: all that was looked at is as written
    std::int64_t bytes = 0;             // of data, read and summed
    bool full = false;
};

// The manifest's sums and numbers, every file's length, frame and identity, and the index. `full`: every block of data
// too. `progress` (may be empty) is told how many bytes of data are done. Throws code::io where reading itself
// fails, code::checkpoint where there is no manifest or one of another format.
verification verify(const files::disk& disk, const std::string& folder, bool full,
                    const std::function<void(std::int64_t)>& progress = {});

manifest read_manifest(const files::disk& disk, const std::string& folder);  // code::checkpoint: missing or damaged

}  // namespace zero::checkpoint
