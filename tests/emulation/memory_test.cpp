// Device and pinned memory of the emulation: who may touch it, what is found when it is given back wrongly, limits,
// pointers.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <vector>

#include "emulation/child.hpp"
#include "emulation/control.hpp"

namespace emulation = zero_emulation;

TEST_CASE("memory: copies there and back, on the device, of rows") {
    std::vector<int> values(3000), back(3000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * i);
    int *first = nullptr, *second = nullptr;
    const std::size_t bytes = values.size() * sizeof(int);
    REQUIRE(cudaMalloc(&first, bytes) == cudaSuccess);
    REQUIRE(cudaMalloc(&second, bytes) == cudaSuccess);
    REQUIRE(emulation::device_bytes() == static_cast<std::int64_t>(2 * bytes));
    REQUIRE(cudaMemcpy(first, values.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess);
    REQUIRE(cudaMemcpy(second, first, bytes, cudaMemcpyDeviceToDevice) == cudaSuccess);
    REQUIRE(cudaMemcpy(back.data(), second, bytes, cudaMemcpyDefault) == cudaSuccess);
    REQUIRE(back == values);

    // 10 rows of 7 out of rows of 20.
    REQUIRE(cudaMemcpy2D(second, 28, first, 80, 28, 10, cudaMemcpyDeviceToDevice) == cudaSuccess);
    REQUIRE(cudaMemset(second + 70, 0, 8) == cudaSuccess);
    REQUIRE(cudaMemcpy(back.data(), second, 72 * sizeof(int), cudaMemcpyDeviceToHost) == cudaSuccess);
    for (std::size_t i = 0; i < 70; ++i) REQUIRE(back[i] == values[i / 7 * 20 + i % 7]);
    REQUIRE(back[71] == 0);
    REQUIRE(cudaFree(first) == cudaSuccess);
    REQUIRE(cudaFree(second) == cudaSuccess);
    REQUIRE(emulation::leaks().empty());
}

TEST_CASE("memory: new memory is poisoned, and so is what is copied to") {
    unsigned char *device = nullptr, *pinned = nullptr, back[100];
    REQUIRE(cudaMalloc(&device, 100) == cudaSuccess);
    REQUIRE(cudaMallocHost(&pinned, 100) == cudaSuccess);
    REQUIRE(pinned[99] == 0xA5);
    REQUIRE(cudaMemcpy(back, device, 100, cudaMemcpyDeviceToHost) == cudaSuccess);
    REQUIRE(back[0] == 0xA5);
    REQUIRE(cudaMemset(device, 1, 100) == cudaSuccess);
    std::memset(pinned, 2, 100);
    emulation::seed(1, 10000000);
    REQUIRE(cudaMemcpyAsync(pinned, device, 100, cudaMemcpyDeviceToHost) == cudaSuccess);
    REQUIRE(pinned[5] == 0xA5);  // neither old nor new, until it is waited for
    REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
    REQUIRE(pinned[5] == 1);
    emulation::seed(1, 300);
    REQUIRE(cudaFree(device) == cudaSuccess);
    REQUIRE(cudaFreeHost(pinned) == cudaSuccess);
}

TEST_CASE("host reads device memory", "[.]") {
    int* device = nullptr;
    REQUIRE(cudaMalloc(&device, 64) == cudaSuccess);
    REQUIRE(cudaMemset(device, 0, 64) == cudaSuccess);
    REQUIRE(*static_cast<volatile int*>(device) == 0);
}
TEST_CASE("host writes behind pinned memory", "[.]") {
    char* pinned = nullptr;
    REQUIRE(cudaMallocHost(&pinned, 256) == cudaSuccess);
    static_cast<volatile char*>(pinned)[256] = 1;
}
TEST_CASE("leaks", "[.]") {
    int* device = nullptr;
    REQUIRE(cudaMalloc(&device, 64) == cudaSuccess);
    emulation::check_clean();
}
TEST_CASE("frees and is clean", "[.]") {
    int* device = nullptr;
    REQUIRE(cudaMalloc(&device, 64) == cudaSuccess);
    REQUIRE(cudaFree(device) == cudaSuccess);
    emulation::check_clean();
}

TEST_CASE("memory: what must end the process does") {
    const auto read = zero::test::run_case("host reads device memory");
    INFO(read.output);
    CHECK_FALSE(read.well);
    CHECK_FALSE(zero::test::run_case("host writes behind pinned memory").well);
    const auto leaks = zero::test::run_case("leaks");
    CHECK_FALSE(leaks.well);
    CHECK(leaks.output.find("not given back") != std::string::npos);
    CHECK(zero::test::run_case("frees and is clean").well);
}

TEST_CASE("memory: wrong use is a problem") {
    const emulation::collect_problems problems;
    char *device = nullptr, *other = nullptr, host[64] = {};
    REQUIRE(cudaMalloc(&device, 64) == cudaSuccess);
    REQUIRE(cudaMemcpy(device + 32, host, 33, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(problems.has("outside of any allocation"));
    CHECK(cudaMemcpy(device, host, 8, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);  // the wrong direction
    CHECK(cudaFreeHost(device) != cudaSuccess);
    CHECK(problems.has("not from the allocator"));
    CHECK(cudaFree(device) == cudaSuccess);
    CHECK(cudaFree(device) != cudaSuccess);
    CHECK(problems.has("freed twice"));
    CHECK(cudaMemcpy(device, host, 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(problems.has("use after free"));

    REQUIRE(cudaMallocAsync(&other, 64, nullptr) == cudaSuccess);
    REQUIRE(cudaFreeAsync(other, nullptr) == cudaSuccess);
    const auto before = problems.texts().size();
    CHECK(cudaMemsetAsync(other, 0, 8) == cudaErrorInvalidValue);
    CHECK(problems.texts().size() == before + 1);
    REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
    CHECK(emulation::device_bytes() == 0);
}

TEST_CASE("memory: limits, and what is left of them") {
    emulation::limit_device_memory(1000);
    char *device = nullptr, *more = nullptr;
    REQUIRE(cudaMalloc(&device, 900) == cudaSuccess);
    REQUIRE(cudaMalloc(&more, 101) == cudaErrorMemoryAllocation);
    REQUIRE(cudaGetLastError() == cudaErrorMemoryAllocation);
    REQUIRE(cudaGetLastError() == cudaSuccess);
    std::size_t free = 0, total = 0;
    REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
    REQUIRE(free == 100);
    REQUIRE(total == 1000);
    REQUIRE(cudaFree(device) == cudaSuccess);
    emulation::limit_device_memory(std::int64_t{2} << 30);

    emulation::limit_pinned_memory(4096);
    std::vector<char> plain(8192);
    REQUIRE(cudaHostRegister(plain.data(), 8192, cudaHostRegisterDefault) == cudaErrorMemoryAllocation);
    REQUIRE(cudaHostRegister(plain.data(), 4096, cudaHostRegisterDefault) == cudaSuccess);
    REQUIRE(cudaHostRegister(plain.data() + 100, 1, cudaHostRegisterDefault) == cudaErrorHostMemoryAlreadyRegistered);
    REQUIRE(emulation::pinned_bytes() == 4096);
    REQUIRE(cudaHostUnregister(plain.data()) == cudaSuccess);
    emulation::limit_pinned_memory(INT64_MAX);
    REQUIRE(emulation::leaks().empty());
}

TEST_CASE("memory: what a pointer is") {
    char *device = nullptr, *pinned = nullptr, *managed = nullptr, *ordered = nullptr;
    std::vector<char> plain(100), registered(100);
    REQUIRE(cudaMalloc(&device, 100) == cudaSuccess);
    REQUIRE(cudaMallocAsync(&ordered, 100, nullptr) == cudaSuccess);
    REQUIRE(cudaMallocHost(&pinned, 100) == cudaSuccess);
    REQUIRE(cudaMallocManaged(&managed, 100) == cudaSuccess);
    REQUIRE(cudaHostRegister(registered.data(), 100, cudaHostRegisterDefault) == cudaSuccess);
    const auto type_of = [](const void* place) {
        cudaPointerAttributes attributes;
        REQUIRE(cudaPointerGetAttributes(&attributes, place) == cudaSuccess);
        return attributes.type;
    };
    CHECK(type_of(device + 50) == cudaMemoryTypeDevice);
    CHECK(type_of(ordered) == cudaMemoryTypeDevice);
    CHECK(type_of(pinned + 99) == cudaMemoryTypeHost);
    CHECK(type_of(managed) == cudaMemoryTypeManaged);
    CHECK(type_of(registered.data()) == cudaMemoryTypeHost);
    CHECK(type_of(plain.data()) == cudaMemoryTypeUnregistered);
    managed[3] = 4;  // the host may
    REQUIRE(cudaHostUnregister(registered.data()) == cudaSuccess);
    REQUIRE(cudaFree(managed) == cudaSuccess);
    REQUIRE(cudaFreeHost(pinned) == cudaSuccess);
    REQUIRE(cudaFreeAsync(ordered, nullptr) == cudaSuccess);
    REQUIRE(cudaFree(device) == cudaSuccess);
    emulation::check_clean();
}
