// Pages of the system, for those who map memory. Not here: whose memory it is.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace zero {

inline std::int64_t page_bytes() noexcept { return ::sysconf(_SC_PAGESIZE); }

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) noexcept { return (value + unit - 1) / unit * unit; }

// The kernel takes all pages at once (Linux 5.14), which is several times faster than a fault for each; what they hold
// stays. False where it cannot.
inline bool populate(std::byte* first, std::int64_t bytes) noexcept {
    constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, which older headers lack
    return ::madvise(first, static_cast<std::size_t>(bytes), populate_write) == 0;
}

}  // namespace zero
