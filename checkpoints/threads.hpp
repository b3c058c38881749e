// Threads that bring bytes to disk or back. They never call MPI or HDF5, hear no signals, compute in the usual
// floating-point environment, and are always joined. Not here: threads for arithmetic (core/crew.hpp).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>

namespace zero::checkpoint {

class helper {
public:
    helper() = default;
    ~helper() { join(); }
    helper(const helper&) = delete;
    helper& operator=(const helper&) = delete;

    bool start(std::function<void()> work);  // once; false: the system gives no more threads
    bool started() const noexcept { return started_; }
    bool done() const noexcept { return done_.load(); }
    void join() noexcept;
    std::exception_ptr failure() const noexcept { return failed_; }  // of the work, after join

private:
    std::thread thread_;
    bool started_ = false;
    std::atomic<bool> done_{false};
    std::exception_ptr failed_;
};

// Calls work(lane, k) for k = 0 .. count-1, in this order, by at most `lanes` threads of which the caller is the first.
// After a call that throws no further one begins; then it is thrown here.
void in_turn(int lanes, std::size_t count, const std::function<void(int lane, std::size_t k)>& work);

// How many requests of a rank are under way (transfers.hpp): the storage is busy while one of them is prepared. Four of 4 MiB
// were as fast as two or three of 8 or faster, in less memory, whose first touch is slow on virtual machines.
constexpr std::int64_t request_bytes = std::int64_t{4} << 20;  // a multiple of the block of the checksums
constexpr std::int64_t direct_from = std::int64_t{4} << 20;  // less of one rank in one file goes by the system's cache
int lanes_for(std::int64_t bytes);

}  // namespace zero::checkpoint
