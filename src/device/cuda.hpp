// One small class for each thing of the CUDA runtime that has to be given back, and the one place where its errors become
// errors of the library. Included by files of the CUDA build alone. Not here: kernels (launch.hpp), which device (devices.hpp).
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace zero::cuda {

// Throws what a failing call means: code::memory for want of memory, else code::cuda, with the name of the call. The runtime
// forgets the error, so that the caller's own question for the last one is not answered with ours.
void check(cudaError_t status, const char* call);
void forget(cudaError_t status) noexcept;  // for errors of calls that give something back

// The calling thread's current device belongs to the caller: ours only while this lives.
class device_guard {
public:
    explicit device_guard(int device);
    ~device_guard();
    device_guard(const device_guard&) = delete;
    device_guard& operator=(const device_guard&) = delete;

private:
    int callers_ = -1;  // -1: nothing to set back
};

// Waits for no other stream by itself, the default one included.
class stream {
public:
    explicit stream(int device);
    ~stream();
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;

    cudaStream_t handle() const noexcept { return handle_; }
    void wait() const;
    void settle() const noexcept;  // waits, and leaves errors to those who look for them

private:
    int device_;
    cudaStream_t handle_ = nullptr;
};

// A point in the work of a stream.
class event {
public:
    explicit event(int device);
    ~event();
    event(const event&) = delete;
    event& operator=(const event&) = delete;

    void record(cudaStream_t on);
    void precede(cudaStream_t what) const;  // what that stream is given from now on
    bool passed() const;
    void wait() const;

private:
    cudaEvent_t handle_ = nullptr;
};

// Device memory in the order of a stream: nothing waits when it is taken or given back, and the pool keeps what it has, so
// that no step asks the driver for memory. It outlives its blocks.
class pool : public std::enable_shared_from_this<pool> {
public:
    explicit pool(int device);
    ~pool();
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;

    // Given back, in the order of the same stream, with the last copy of the pointer. Throws code::memory. bytes > 0.
    std::shared_ptr<std::byte> take(std::int64_t bytes, const std::shared_ptr<stream>& order);

private:
    int device_;
    cudaMemPool_t handle_ = nullptr;
};

// Host memory of somebody else that the devices reach at full speed, and asynchronously, while this lives. Null where the system
// refuses to lock so much.
std::shared_ptr<const void> lock_pages(std::byte* data, std::int64_t bytes);

// Is this stream recording a graph? Then nothing may be waited for.
bool is_captured(cudaStream_t what);

}  // namespace zero::cuda
