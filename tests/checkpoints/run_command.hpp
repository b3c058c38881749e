// Programs of others on a checkpoint (h5dump, h5py, zero-ckpt): runs a command line, gives exit code and what it said.
#pragma once
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace zero::test {

struct run_result {
    int exit_code = -1;
    std::string text;
};

inline run_result run(const std::string& command) {
    run_result result;
    std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return result;
    std::array<char, 4096> part{};
    for (std::size_t had = 0; (had = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
        result.text.append(part.data(), had);
    result.exit_code = WEXITSTATUS(::pclose(pipe));
    return result;
}

}  // namespace zero::test
