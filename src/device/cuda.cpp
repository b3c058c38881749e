// Streams, events, pools and locked pages. See cuda.hpp. What gives something back does not throw: at the end of a program the
// driver may be gone before us.
#include "device/cuda.hpp"

#include <utility>

#include "core/error.hpp"

namespace zero::cuda {

void forget(cudaError_t status) noexcept {
    if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
}

void check(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    forget(status);
    if (status == cudaErrorMemoryAllocation)
        fail(code::memory, "{} failed ({}): use more ranks, a higher stage, smaller buckets, or offload_optimizer", call,
             cudaGetErrorString(status));
    fail(code::cuda, "{} failed: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status));
}

device_guard::device_guard(int device) {
    int now = -1;
    check(cudaGetDevice(&now), "cudaGetDevice");
    if (now == device) return;
    check(cudaSetDevice(device), "cudaSetDevice");
    callers_ = now;
}

device_guard::~device_guard() {
    if (callers_ >= 0) forget(cudaSetDevice(callers_));
}

stream::stream(int device) : device_(device) {
    const device_guard here(device);
    check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}

stream::~stream() { forget(cudaStreamDestroy(handle_)); }

void stream::wait() const {
    const device_guard here(device_);
    check(cudaStreamSynchronize(handle_), "cudaStreamSynchronize");
}

void stream::settle() const noexcept { forget(cudaStreamSynchronize(handle_)); }

event::event(int device) {
    const device_guard here(device);
    check(cudaEventCreateWithFlags(&handle_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

event::~event() { forget(cudaEventDestroy(handle_)); }

void event::record(cudaStream_t on) { check(cudaEventRecord(handle_, on), "cudaEventRecord"); }

void event::precede(cudaStream_t what) const { check(cudaStreamWaitEvent(what, handle_, 0), "cudaStreamWaitEvent"); }

bool event::passed() const {
    const cudaError_t status = cudaEventQuery(handle_);
    if (status == cudaErrorNotReady) {
        forget(status);
        return false;
    }
    check(status, "cudaEventQuery");
    return true;
}

void event::wait() const { check(cudaEventSynchronize(handle_), "cudaEventSynchronize"); }

pool::pool(int device) : device_(device) {
    const device_guard here(device);
    cudaMemPoolProps what = {};
    what.allocType = cudaMemAllocationTypePinned;
    what.location.type = cudaMemLocationTypeDevice;
    what.location.id = device;
    check(cudaMemPoolCreate(&handle_, &what), "cudaMemPoolCreate");
    std::uint64_t keep_everything = UINT64_MAX;
    const cudaError_t status = cudaMemPoolSetAttribute(handle_, cudaMemPoolAttrReleaseThreshold, &keep_everything);
    if (status == cudaSuccess) return;
    forget(cudaMemPoolDestroy(std::exchange(handle_, nullptr)));
    check(status, "cudaMemPoolSetAttribute");
}

pool::~pool() { forget(cudaMemPoolDestroy(handle_)); }

std::shared_ptr<std::byte> pool::take(std::int64_t bytes, const std::shared_ptr<stream>& order) {
    const device_guard here(device_);
    void* place = nullptr;
    check(cudaMallocFromPoolAsync(&place, static_cast<std::size_t>(bytes), handle_, order->handle()), "cudaMallocFromPoolAsync");
    // The deleter is called even when the pointer's own memory cannot be had. It keeps the pool and the stream.
    return {static_cast<std::byte*>(place), [order, from = shared_from_this()](std::byte* what) { forget(cudaFreeAsync(what, order->handle())); }};
}

std::shared_ptr<const void> lock_pages(std::byte* data, std::int64_t bytes) {
    const cudaError_t status = cudaHostRegister(data, static_cast<std::size_t>(bytes), cudaHostRegisterPortable);
    if (status != cudaSuccess) {
        forget(status);
        return nullptr;
    }
    return {data, [](const void* what) { forget(cudaHostUnregister(const_cast<void*>(what))); }};
}

bool is_captured(cudaStream_t what) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(what, &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
}

}  // namespace zero::cuda
