// A folder that all ranks see, made by rank 0 in the test's own folder.
#pragma once
#include <mpi.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/world.hpp"

namespace zero::test {

class shared_folder {
public:
    shared_folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "zero_jobs.XXXXXX").string();
        if (world_rank() == 0 && mkdtemp(pattern.data()) == nullptr) pattern.clear();
        MPI_Bcast(pattern.data(), static_cast<int>(pattern.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
        path_ = pattern;
    }
    ~shared_folder() {
        MPI_Barrier(MPI_COMM_WORLD);
        std::error_code ignored;
        if (world_rank() == 0) std::filesystem::remove_all(path_, ignored);
    }
    shared_folder(const shared_folder&) = delete;
    shared_folder& operator=(const shared_folder&) = delete;
    const std::string& path() const noexcept { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

}  // namespace zero::test
