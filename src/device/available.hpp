// How much more memory this process can touch before the kernel kills it. An estimate: other processes take memory too.
// Not here: limits that make an allocation fail by itself (RLIMIT_AS); those need no forecast.
#pragma once
#include <cstdint>
#include <string>

namespace zero {

// The least of what the machine and each memory cgroup above this process have left; INT64_MAX where nothing is known.
std::int64_t available_memory();

// The same over another root than "/" (tests).
std::int64_t available_memory(const std::string& root);

// Why so many bytes will not be had: "... bytes are available"; empty where they will. Small sizes are not asked for.
std::string shortage(std::int64_t bytes);

}  // namespace zero
