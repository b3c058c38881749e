// The system calls behind ring.hpp, for kernels from 5.4 on. Vectored requests are the oldest kind; newer kernels take
// them as fast as others.
#include "ring.hpp"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <thread>
#include <vector>

#include "core/error.hpp"

namespace zero::checkpoint {
namespace {

// Memory shared with the kernel.
class shared {
public:
    shared(int descriptor, std::size_t bytes, std::uint64_t place) noexcept
        : bytes_(bytes),
          at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor,
                     static_cast<off_t>(place))) {}
    ~shared() {
        if (*this) ::munmap(at_, bytes_);
    }
    shared(const shared&) = delete;
    shared& operator=(const shared&) = delete;
    explicit operator bool() const noexcept { return at_ != MAP_FAILED; }
    template <typename Type>
    Type* at(std::size_t offset = 0) const noexcept {
        return reinterpret_cast<Type*>(static_cast<std::byte*>(at_) + offset);
    }

private:
    std::size_t bytes_;
    void* at_;
};

struct descriptor {
    int number = -1;
    explicit descriptor(int from) noexcept : number(from) {}
    ~descriptor() {
        if (number >= 0) ::close(number);
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
};

std::size_t bytes_of_rings(const io_uring_params& what) noexcept {
    return std::max(what.sq_off.array + what.sq_entries * sizeof(unsigned),
                    what.cq_off.cqes + what.cq_entries * sizeof(io_uring_cqe));
}

class kernel_ring final : public ring {
public:
    kernel_ring(int number, const io_uring_params& what, int slots)
        : ring_(number),
          both_(number, bytes_of_rings(what), IORING_OFF_SQ_RING),
          entries_(number, what.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES),
          vectors_(static_cast<std::size_t>(slots)),
          what_(what) {}
    ~kernel_ring() override {
        completion ended{};
        while (under_way_ > 0)
            if (!take(ended) && !hand_over(1)) break;
    }
    bool mapped() const noexcept { return both_ && entries_; }

    void start(int slot, bool writes, int file, void* data, std::int64_t bytes, std::int64_t offset) override {
        iovec& vector = vectors_[static_cast<std::size_t>(slot)];
        vector = {data, static_cast<std::size_t>(bytes)};
        unsigned* const tail = both_.at<unsigned>(what_.sq_off.tail);
        const unsigned place = *tail & *both_.at<unsigned>(what_.sq_off.ring_mask);
        io_uring_sqe& entry = entries_.at<io_uring_sqe>()[place];
        entry = {};
        entry.opcode = writes ? IORING_OP_WRITEV : IORING_OP_READV;
        entry.fd = file;
        entry.off = static_cast<std::uint64_t>(offset);
        entry.addr = reinterpret_cast<std::uintptr_t>(&vector);
        entry.len = 1;
        entry.user_data = static_cast<std::uint64_t>(slot);
        both_.at<unsigned>(what_.sq_off.array)[place] = place;
        std::atomic_ref(*tail).store(*tail + 1, std::memory_order_release);
        ++waiting_;
        ++under_way_;
        hand_over(0);  // what it does not take now, it takes in wait()
    }

    completion wait() override {
        completion ended{};
        while (!take(ended))
            require(hand_over(1), code::io, "the kernel gives no answer to requests under way (errno {})", errno);
        return ended;
    }

private:
    bool take(completion& ended) noexcept {
        unsigned* const head = both_.at<unsigned>(what_.cq_off.head);
        if (*head == std::atomic_ref(*both_.at<unsigned>(what_.cq_off.tail)).load(std::memory_order_acquire))
            return false;
        const io_uring_cqe& entry =
            both_.at<io_uring_cqe>(what_.cq_off.cqes)[*head & *both_.at<unsigned>(what_.cq_off.ring_mask)];
        ended = {static_cast<int>(entry.user_data), entry.res};
        std::atomic_ref(*head).store(*head + 1, std::memory_order_release);
        --under_way_;
        return true;
    }

    // Gives the kernel what waits, then waits until at least so many are through. False: it never will.
    bool hand_over(unsigned at_least) noexcept {
        const long took = ::syscall(__NR_io_uring_enter, ring_.number, waiting_, at_least,
                                    at_least > 0 ? IORING_ENTER_GETEVENTS : 0U, nullptr, 0);
        if (took >= 0) {
            waiting_ -= static_cast<unsigned>(took);
            return true;
        }
        if (errno != EINTR && errno != EAGAIN && errno != EBUSY) return false;
        if (errno != EINTR) std::this_thread::yield();  // short of memory for requests
        return true;
    }

    descriptor ring_;
    shared both_, entries_;
    std::vector<iovec> vectors_;  // by slot
    io_uring_params what_;
    unsigned waiting_ = 0;
    int under_way_ = 0;
};

}  // namespace

std::unique_ptr<ring> ring::open(int slots) {
    io_uring_params what{};
    const long number = ::syscall(__NR_io_uring_setup, static_cast<unsigned>(slots), &what);
    if (number < 0) return nullptr;
    if ((what.features & IORING_FEAT_SINGLE_MMAP) == 0) {
        ::close(static_cast<int>(number));
        return nullptr;
    }
    auto made = std::make_unique<kernel_ring>(static_cast<int>(number), what, slots);
    if (!made->mapped()) return nullptr;
    return made;
}

}  // namespace zero::checkpoint
