// Failing calls: each in turn, without leaving anything behind; a device that dies; no driver.
#include <catch2/catch.hpp>
#include <cstdint>

#include "emulation/control.hpp"

namespace emulation = zero_emulation;

namespace {

// What a careful caller does: gives everything back, whatever fails.
cudaError_t work() {
    cudaError_t worst = cudaSuccess;
    const auto note = [&](cudaError_t error) {
        if (error != cudaSuccess && worst == cudaSuccess) worst = error;
        return error == cudaSuccess;
    };
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    char *device = nullptr, *pinned = nullptr;
    if (note(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) {
        if (note(cudaMallocHost(&pinned, 100))) {
            if (note(cudaMallocAsync(&device, 100, stream))) {
                note(cudaMemcpyAsync(device, pinned, 100, cudaMemcpyHostToDevice, stream));
                note(cudaFreeAsync(device, stream));
            }
            if (note(cudaEventCreateWithFlags(&event, cudaEventDisableTiming))) {
                note(cudaEventRecord(event, stream));
                note(cudaEventSynchronize(event));
                note(cudaEventDestroy(event));
            }
            note(cudaStreamSynchronize(stream));
            if (worst != cudaSuccess) cudaStreamSynchronize(stream);
            note(cudaFreeHost(pinned));
        }
        note(cudaStreamDestroy(stream));
    }
    return worst;
}

}  // namespace

TEST_CASE("faults: every call in turn, and nothing is left") {
    emulation::reset_counters();
    REQUIRE(work() == cudaSuccess);
    const std::int64_t calls = emulation::count().cuda_calls;
    REQUIRE(calls == 12);
    for (std::int64_t n = 1; n <= calls; ++n) {
        emulation::fail_cuda_call(n, cudaErrorLaunchFailure);
        CHECK(work() == cudaErrorLaunchFailure);
        CHECK_FALSE(emulation::fault_pending());
        emulation::check_clean();
    }
    emulation::fail_cuda_call(calls + 1);
    CHECK(work() == cudaSuccess);
    CHECK(emulation::fault_pending());
    emulation::repair();
}

TEST_CASE("faults: a device that dies stays dead until it is repaired") {
    char* device = nullptr;
    REQUIRE(cudaMalloc(&device, 100) == cudaSuccess);
    emulation::fail_operation(2);
    REQUIRE(cudaMemsetAsync(device, 0, 100) == cudaSuccess);
    REQUIRE(cudaMemsetAsync(device, 1, 100) == cudaSuccess);
    CHECK(cudaStreamSynchronize(nullptr) == cudaErrorIllegalAddress);
    CHECK(cudaMemsetAsync(device, 2, 100) == cudaErrorIllegalAddress);
    CHECK(cudaFree(device) == cudaErrorIllegalAddress);
    emulation::repair();
    emulation::check_clean();
}

TEST_CASE("faults: no driver, no device") {
    int count = -1, version = -1;
    emulation::set_driver(emulation::driver::none);
    CHECK(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
    CHECK(count == 0);
    CHECK(cudaDriverGetVersion(&version) == cudaSuccess);
    CHECK(version == 0);
    void* place = nullptr;
    CHECK(cudaMalloc(&place, 1) == cudaErrorInsufficientDriver);
    emulation::set_driver(emulation::driver::no_device);
    CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
    emulation::set_driver(emulation::driver::present);
    CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
    CHECK(count == 4);
    CHECK(cudaSetDevice(4) == cudaErrorInvalidDevice);
    cudaGetLastError();
}

TEST_CASE("faults: what is counted") {
    emulation::reset_counters();
    char *device = nullptr, *pinned = nullptr, pageable[10] = {};
    REQUIRE(cudaMalloc(&device, 100) == cudaSuccess);
    REQUIRE(cudaMallocHost(&pinned, 100) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(device, pinned, 30, cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(device + 50, pageable, 10, cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    REQUIRE(cudaFreeHost(pinned) == cudaSuccess);
    REQUIRE(cudaFree(device) == cudaSuccess);
    const emulation::counters counted = emulation::count();
    CHECK(counted.allocations == 1);
    CHECK(counted.frees == 1);
    CHECK(counted.pinned_allocations == 1);
    CHECK(counted.bytes_to_device == 40);
    CHECK(counted.pageable_bytes == 10);
    CHECK(counted.device_synchronizes == 1);
    CHECK(counted.implicit_synchronizes == 3);
}
