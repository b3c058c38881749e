// Reads /proc/meminfo and the files of memory cgroups, version 1 and 2 (batch systems set limits in both).
#include "device/available.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/text.hpp"

namespace zero {

namespace {

constexpr std::int64_t unlimited = INT64_MAX;

// The number after `key` in a file of "key number" lines, or the first number for an empty key.
std::optional<std::int64_t> number_in(const std::string& file, const std::string& key) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string word;
        std::int64_t number = 0;
        if (!key.empty() && (!(words >> word) || word != key)) continue;
        if (words >> number) return number;
        return std::nullopt;  // "max"
    }
    return std::nullopt;
}

std::int64_t left_on_machine(const std::string& root) {
    constexpr std::int64_t kilobyte = 1024;
    const auto available = number_in(root + "/proc/meminfo", "MemAvailable:");
    if (!available) return unlimited;
    return (*available + number_in(root + "/proc/meminfo", "SwapFree:").value_or(0)) * kilobyte;
}

struct group_files {
    const char* limit;
    const char* usage;
    const char* reclaimable;  // key in memory.stat: file pages that the kernel drops before it kills
};

std::int64_t left_in_group(const std::string& folder, const group_files& files) {
    const auto limit = number_in(folder + files.limit, ""), usage = number_in(folder + files.usage, "");
    if (!limit || !usage) return unlimited;
    const std::int64_t reclaimable = number_in(folder + "/memory.stat", files.reclaimable).value_or(0);
    return std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, *usage - reclaimable));
}

// A group is bound by its own limit and by those of all groups above it. Inside a container the path may name a
// folder that is not visible; the walk then still meets the container's own group at the mount.
std::int64_t left_in_groups(const std::string& mount, std::string path, const group_files& files) {
    std::int64_t left = unlimited;
    while (true) {
        left = std::min(left, left_in_group(mount + path, files));
        const std::size_t slash = path.rfind('/');
        if (slash == std::string::npos) return left;
        path.resize(slash);
    }
}

}  // namespace

std::int64_t available_memory(const std::string& root) {
    std::int64_t left = left_on_machine(root);
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {  // "4:memory:/job", or "0::/job" in version 2
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
        if (controllers.empty()) {
            const group_files files{"/memory.max", "/memory.current", "inactive_file"};
            left = std::min(left, left_in_groups(root + "/sys/fs/cgroup", path, files));
        } else if (controllers == "memory") {
            const group_files files{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};
            left = std::min(left, left_in_groups(root + "/sys/fs/cgroup/memory", path, files));
        }
    }
    return left;
}

std::int64_t available_memory() {
    return available_memory("");
}

std::string shortage(std::int64_t bytes) {
    constexpr std::int64_t worth_asking = 16 << 20;
    if (bytes < worth_asking) return "";
    const std::int64_t available = available_memory();
    return bytes > available ? formatted("{} bytes are available", available) : "";
}

}  // namespace zero
