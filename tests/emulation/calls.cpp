// Before each call: is there a driver, is it this call that is to fail; errors by name. And what tests ask for
// (control.hpp).
#include "calls.hpp"

#include <algorithm>

#include "queue.hpp"
#include "race.hpp"

namespace zero_emulation {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

template <typename Work>
auto locked(const Work& work) {
    machine& m = the_machine();
    guard lock(m.door);
    return work(m);
}

}  // namespace

void remember(cudaError_t error) {
    last_error = error;
}

cudaError_t before_cuda_call(machine& m) {
    if (m.drivers == driver::none) return cudaErrorInsufficientDriver;
    if (m.drivers == driver::no_device) return cudaErrorNoDevice;
    if (in_host_function()) return cudaErrorNotPermitted;
    ++m.counted.cuda_calls;
    if (m.fail_cuda > 0 && --m.fail_cuda == 0) return m.cuda_error;
    return m.dead;
}

ncclResult_t before_nccl_call(machine& m) {
    if (m.drivers != driver::present) return ncclUnhandledCudaError;
    ++m.counted.nccl_calls;
    if (m.fail_nccl > 0 && --m.fail_nccl == 0) return m.nccl_error;
    return m.dead == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

counters count() {
    return locked([](machine& m) { return m.counted; });
}
void reset_counters() {
    locked([](machine& m) { m.counted = {}; });
}
std::int64_t device_bytes() {
    return locked([](machine& m) { return m.device_bytes; });
}
std::int64_t pinned_bytes() {
    return locked([](machine& m) { return m.pinned_bytes; });
}

void fail_cuda_call(std::int64_t n, cudaError_t error) {
    locked([&](machine& m) { m.fail_cuda = n, m.cuda_error = error; });
}
void fail_nccl_call(std::int64_t n, ncclResult_t error) {
    locked([&](machine& m) { m.fail_nccl = n, m.nccl_error = error; });
}
bool fault_pending() {
    return locked(
        [](machine& m) { return m.fail_cuda > 0 || m.fail_nccl > 0 || m.fail_operation > 0 || m.fail_later > 0; });
}
void fail_operation(std::int64_t n, cudaError_t error) {
    locked([&](machine& m) { m.fail_operation = n, m.operation_error = error; });
}
void repair() {
    locked([](machine& m) { m.dead = cudaSuccess, m.fail_cuda = m.fail_nccl = m.fail_operation = m.fail_later = 0; });
    last_error = cudaSuccess;
}
void fail_nccl_later(std::int64_t n, ncclResult_t error) {
    locked([&](machine& m) { m.fail_later = n, m.later_error = error; });
}
void set_driver(driver what) {
    locked([&](machine& m) { m.drivers = what; });
}
void set_devices(int count) {
    locked([&](machine& m) { m.devices = count; });
}
void set_node(int node) {
    locked([&](machine& m) { m.node = node; });
}
void limit_device_memory(std::int64_t bytes) {
    locked([&](machine& m) { m.device_limit = bytes; });
}
void limit_pinned_memory(std::int64_t bytes) {
    locked([&](machine& m) { m.pinned_limit = bytes; });
}
void seed(std::uint64_t value, int delay_microseconds) {
    locked([&](machine& m) { m.random.seed(value), m.delay = delay_microseconds; });
}

void host_reads(const void* data, std::size_t bytes) {
    locked(
        [&](machine& m) { host_touches(m, reinterpret_cast<std::uintptr_t>(data), bytes, false, "the host reads"); });
}
void host_writes(void* data, std::size_t bytes) {
    locked(
        [&](machine& m) { host_touches(m, reinterpret_cast<std::uintptr_t>(data), bytes, true, "the host writes"); });
}

collect_problems::collect_problems() {
    locked([](machine& m) {
        if (m.collectors++ == 0) m.problems.clear();
    });
}
collect_problems::~collect_problems() {
    locked([](machine& m) { --m.collectors; });
}
std::vector<std::string> collect_problems::texts() const {
    return locked([](machine& m) { return m.problems; });
}
bool collect_problems::has(const std::string& part) const {
    const auto all = texts();
    return std::any_of(all.begin(), all.end(),
                       [&](const std::string& each) { return each.find(part) != std::string::npos; });
}

std::string leaks() {
    return locked([](machine& m) {
        std::string text;
        for (const auto& [begin, each] : m.allocations) {
            if (each->freed) continue;
            text +=
                std::string(name_of(each->what)) + ": " + describe(begin, each->end()) + "\n" + to_text(each->where);
        }
        const auto is_implied = [&](const auto& stream) {
            const auto in = [&](const auto& of_devices) {
                return std::any_of(of_devices.begin(), of_devices.end(),
                                   [&](const auto& each) { return each.second == stream; });
            };
            return in(m.legacy) || in(m.per_thread);
        };
        for (const auto& each : m.streams) {
            if (!each->destroyed && !is_implied(each)) text += "stream " + std::to_string(each->id) + "\n";
        }
        for (const auto& [handle, each] : m.events) text += "event\n" + to_text(each->where);
        const auto is_default = [&](cudaMemPool_t pool) {
            return std::any_of(m.default_pool.begin(), m.default_pool.end(),
                               [&](const auto& each) { return each.second == pool; });
        };
        for (const auto& [handle, each] : m.pools) {
            if (!is_default(handle)) text += "memory pool\n";
        }
        for (std::size_t i = 0; i < m.communicators.size(); ++i) text += "NCCL communicator\n";
        return text;
    });
}

void check_clean() {
    {
        machine& m = the_machine();
        guard lock(m.door);
        wait_for_all(m, lock);
    }
    const std::string left = leaks();
    if (left.empty()) return;
    locked([&](machine& m) { problem(m, "not given back:\n" + left); });
}

}  // namespace zero_emulation

using namespace zero_emulation;

extern "C" {

cudaError_t cudaGetLastError(void) {
    return std::exchange(last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError(void) {
    return last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
#define ZERO_NAMES(which) \
    case which:           \
        return #which;
    switch (error) {
        ZERO_NAMES(cudaSuccess)
        ZERO_NAMES(cudaErrorInvalidValue)
        ZERO_NAMES(cudaErrorMemoryAllocation)
        ZERO_NAMES(cudaErrorInsufficientDriver)
        ZERO_NAMES(cudaErrorNoDevice)
        ZERO_NAMES(cudaErrorInvalidDevice)
        ZERO_NAMES(cudaErrorInvalidResourceHandle)
        ZERO_NAMES(cudaErrorNotReady)
        ZERO_NAMES(cudaErrorIllegalAddress)
        ZERO_NAMES(cudaErrorHostMemoryAlreadyRegistered)
        ZERO_NAMES(cudaErrorHostMemoryNotRegistered)
        ZERO_NAMES(cudaErrorNotPermitted)
        ZERO_NAMES(cudaErrorNotSupported)
        ZERO_NAMES(cudaErrorStreamCaptureUnsupported)
        ZERO_NAMES(cudaErrorStreamCaptureInvalidated)
        ZERO_NAMES(cudaErrorUnknown)
        default:
            return "unrecognized error code";
    }
#undef ZERO_NAMES
}
const char* cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error" : cudaGetErrorName(error);
}

const char* ncclGetErrorString(ncclResult_t result) {
    constexpr const char* texts[] = {"no error",
                                     "unhandled cuda error",
                                     "unhandled system error",
                                     "internal error",
                                     "invalid argument",
                                     "invalid usage",
                                     "remote process exited or there was a network error",
                                     "NCCL operation in progress"};
    return result >= 0 && result < ncclNumResults ? texts[result] : "unknown result code";
}

}  // extern "C"
