// Several reads and writes of files at once by one thread: the submission ring of Linux (io_uring), by system calls, so
// that no library is needed. Sibling: without_uring/. Not here: what is read and written (transfers.hpp).
#pragma once
#include <cstdint>
#include <memory>

namespace zero::checkpoint {

class ring {
public:
    // Null where the kernel has none or refuses it, as many containers do.
    static std::unique_ptr<ring> open(int slots);
    virtual ~ring() = default;  // waits for what is under way
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;

    // One at a time per slot; the memory is the kernel's until `wait` has told the slot.
    virtual void start(int slot, bool writes, int descriptor, void* data, std::int64_t bytes, std::int64_t offset) = 0;
    struct completion {
        int slot;
        std::int64_t answer;  // as of pread and pwrite, or minus errno
    };
    virtual completion wait() = 0;

protected:
    ring() = default;
};

}  // namespace zero::checkpoint
