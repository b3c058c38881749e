// A hidden case of this test program, run in a process of its own: for what must end the process.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

namespace zero::test {

struct child_end {
    bool well;           // exit status 0
    std::string output;  // stdout and stderr
};

inline child_end run_case(const std::string& name) {
    std::array<char, 4096> path{};
    const auto length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
    const std::string program(path.data(), static_cast<std::size_t>(length > 0 ? length : 0));
    FILE* pipe = ::popen(("'" + program + "' '" + name + "' 2>&1").c_str(), "r");
    child_end end{false, {}};
    if (pipe == nullptr) return end;
    std::array<char, 512> line{};
    while (std::fgets(line.data(), line.size(), pipe) != nullptr) end.output += line.data();
    end.well = ::pclose(pipe) == 0;
    return end;
}

}  // namespace zero::test
