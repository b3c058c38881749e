// One call moves at most 2 GiB, and may move less. See foreign_memory.hpp.
#include "comm/foreign_memory.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace zero::comm {

bool read_foreign(std::int64_t process, std::uint64_t address, void* to, std::int64_t bytes) noexcept {
    constexpr std::int64_t most = 1 << 30;
    for (std::int64_t done = 0; done < bytes;) {
        const auto length = static_cast<std::size_t>(std::min(most, bytes - done));
        const struct iovec here {static_cast<std::byte*>(to) + done, length};
        const struct iovec there {reinterpret_cast<void*>(static_cast<std::uintptr_t>(address) + static_cast<std::uintptr_t>(done)), length};
        const ssize_t moved = ::process_vm_readv(static_cast<pid_t>(process), &here, 1, &there, 1, 0);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return false;
        done += moved;
    }
    return true;
}

}  // namespace zero::comm
