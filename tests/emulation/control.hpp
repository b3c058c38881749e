// What a test asks of the emulation: failing calls, limits, counters, problems found, leaks. Not here: the CUDA
// functions.
#pragma once
#include <cuda_runtime.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emulation_launch.h"

namespace zero_emulation {

// Everything that reset_counters() sets to 0. Calls are those that can fail: not error texts, and none before a driver
// is found.
struct counters {
    std::int64_t cuda_calls = 0, nccl_calls = 0;
    std::int64_t allocations = 0, frees = 0;            // device: cudaMalloc, cudaFree and ncclMem...
    std::int64_t pool_allocations = 0, pool_frees = 0;  // device: the ordered ones
    std::int64_t pinned_allocations = 0, registrations = 0;
    std::int64_t nccl_registrations = 0;     // ncclCommRegister
    std::int64_t device_synchronizes = 0;    // cudaDeviceSynchronize
    std::int64_t implicit_synchronizes = 0;  // cudaFree, cudaFreeHost, cudaHostUnregister, copies of pageable memory
    std::int64_t stream_synchronizes = 0, event_synchronizes = 0;
    std::int64_t kernels = 0, host_functions = 0;
    std::int64_t bytes_to_device = 0, bytes_to_host = 0, bytes_on_device = 0, pageable_bytes = 0;
    std::int64_t collectives = 0, sends = 0, sent_bytes = 0;  // the last: of sends
};
counters count();
void reset_counters();

std::int64_t device_bytes();  // allocated now
std::int64_t pinned_bytes();  // allocated or registered now

// The n-th call from now (1: the next) fails with that error and does nothing, but for calls that release. 0: none.
void fail_cuda_call(std::int64_t n, cudaError_t error = cudaErrorUnknown);
void fail_nccl_call(std::int64_t n, ncclResult_t error = ncclSystemError);
bool fault_pending();  // the call that is to fail has not come yet
// The n-th operation of a stream from now kills the device: every later call gives this error until repair().
void fail_operation(std::int64_t n, cudaError_t error = cudaErrorIllegalAddress);
void repair();
// The n-th collective from now does not come to an end, and its communicator has this error.
void fail_nccl_later(std::int64_t n, ncclResult_t error = ncclRemoteError);

enum class driver { present, none, no_device };
void set_driver(driver what);
void set_devices(int count);
void set_node(int node);  // device 0 of another node is another device for NCCL
void limit_device_memory(std::int64_t bytes);
void limit_pinned_memory(std::int64_t bytes);
void seed(std::uint64_t value, int delay_microseconds);

// Accesses of the host itself, of which the emulation otherwise knows nothing: they must be ordered after what the
// streams do.
void host_reads(const void* data, std::size_t bytes);
void host_writes(void* data, std::size_t bytes);

// While one lives, problems are collected instead of ending the process.
class collect_problems {
public:
    collect_problems();
    ~collect_problems();
    collect_problems(const collect_problems&) = delete;
    collect_problems& operator=(const collect_problems&) = delete;
    std::vector<std::string> texts() const;
    bool has(const std::string& part) const;
};

// What is allocated, created or registered now and was not given back, a line each; empty: nothing.
std::string leaks();
void check_clean();  // waits for the streams; a leak is a problem

}  // namespace zero_emulation
