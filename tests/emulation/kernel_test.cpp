// Kernels as plain C++: loops over a grid, structures with pointers, barriers and shuffles, and what must not be
// touched.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "emulation/child.hpp"
#include "emulation/control.hpp"

namespace emulation = zero_emulation;
using emulation::range;
using emulation::use;

namespace {

__global__ void scale(float* values, float factor, std::int64_t count) {
    for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x)
        values[i] *= factor;
}

struct lists {
    const float* from[3];
    float* to;
    int count;
};
__global__ void add_all(lists of) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < of.count) of.to[i] = of.from[0][i] + of.from[1][i] + of.from[2][i];
}

// The sum of each block, the classic way: within warps by shuffles, between them by shared memory.
__global__ void sum_of_blocks(const int* values, int* sums) {
    __shared__ int of_warps[32];
    int mine = values[blockIdx.x * blockDim.x + threadIdx.x];
    for (int offset = warpSize / 2; offset > 0; offset /= 2) mine += __shfl_down_sync(0xffffffffU, mine, offset);
    if (threadIdx.x % warpSize == 0) of_warps[threadIdx.x / warpSize] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        int sum = 0;
        for (unsigned i = 0; i < blockDim.x / warpSize; ++i) sum += of_warps[i];
        sums[blockIdx.x] = sum;
    }
    __syncthreads();
}

__global__ void vote(unsigned* bits, int* counter) {
    const unsigned all = __ballot_sync(0xffffffffU, threadIdx.x % 3 == 0);
    if (threadIdx.x == 0) *bits = all;
    atomicAdd(counter, 1);
}

__global__ void leave_early(int* where) {
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncwarp();
    where[0] = 1;
}
__global__ void part_ways() {
    if (threadIdx.x == 0)
        __syncthreads();
    else
        __syncwarp();
}

template <typename T>
std::vector<T> values_of(const T* device, std::size_t count) {
    std::vector<T> host(count);
    REQUIRE(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return host;
}

struct device_array {
    explicit device_array(std::size_t count) {
        REQUIRE(cudaMalloc(&data, count * 4) == cudaSuccess);
        std::vector<int> host(count);
        for (std::size_t i = 0; i < count; ++i) host[i] = static_cast<int>(i);
        REQUIRE(cudaMemcpy(data, host.data(), count * 4, cudaMemcpyHostToDevice) == cudaSuccess);
    }
    ~device_array() { cudaFree(data); }
    float* floats() const { return reinterpret_cast<float*>(data); }
    int* data = nullptr;
};

}  // namespace

TEST_CASE("kernel: a loop over a grid of any shape") {
    for (const unsigned block : {1U, 7U, 256U}) {
        const device_array array(1000);
        REQUIRE(cudaMemset(array.data, 0, 4000) == cudaSuccess);
        std::vector<float> ones(1000, 1.5F);
        REQUIRE(cudaMemcpy(array.data, ones.data(), 4000, cudaMemcpyHostToDevice) == cudaSuccess);
        REQUIRE(emulation::launch("scale", scale, 3, block, 0, nullptr, {{array.data, 4000, use::update}},
                                  array.floats(), 2.0F, std::int64_t{1000}) == cudaSuccess);
        const auto result = values_of(array.floats(), 1000);
        CHECK(result == std::vector<float>(1000, 3.0F));
    }
}

TEST_CASE("kernel: pointers inside of structures, and nothing declared") {
    const device_array a(100), b(100), c(100), to(100);
    std::vector<float> host(100);
    for (std::size_t i = 0; i < 100; ++i) host[i] = static_cast<float>(i);
    for (const device_array* each : {&a, &b, &c}) {
        REQUIRE(cudaMemcpy(each->data, host.data(), 400, cudaMemcpyHostToDevice) == cudaSuccess);
    }
    const lists of{{a.floats(), b.floats() + 1, c.floats()}, to.floats(), 99};
    REQUIRE(emulation::launch("add_all", add_all, 2, 64, 0, nullptr, {}, of) == cudaSuccess);
    const auto result = values_of(to.floats(), 99);
    for (std::size_t i = 0; i < 99; ++i) CHECK(result[i] == 3.0F * static_cast<float>(i) + 1.0F);
}

TEST_CASE("kernel: barriers, shuffles, votes, atomics") {
    const device_array values(256), sums(2), bits(1), counter(1);
    REQUIRE(emulation::launch("sum_of_blocks", sum_of_blocks, 2, 128, 0, nullptr, {}, values.data, sums.data) ==
            cudaSuccess);
    CHECK(values_of(sums.data, 2) == std::vector<int>{127 * 128 / 2, 255 * 256 / 2 - 127 * 128 / 2});
    REQUIRE(emulation::launch("vote", vote, 1, 32, 0, nullptr, {}, reinterpret_cast<unsigned*>(bits.data),
                              counter.data) == cudaSuccess);
    CHECK(static_cast<unsigned>(values_of(bits.data, 1)[0]) == 0x49249249U);
    CHECK(values_of(counter.data, 1)[0] == 32);
    CHECK(emulation::count().kernels >= 2);
}

TEST_CASE("kernel: threads that wait at different barriers are a problem, those that leave are not missed") {
    const emulation::collect_problems problems;
    const device_array where(1);
    REQUIRE(emulation::launch("leave_early", leave_early, 1, 64, 0, nullptr, {}, where.data) == cudaSuccess);
    CHECK(values_of(where.data, 1)[0] == 1);
    CHECK(problems.texts().empty());
    REQUIRE(emulation::launch("part_ways", part_ways, 1, 64, 0, nullptr, {}) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(problems.has("wait at different barriers"));
}

TEST_CASE("kernel: halves of a buffer race only when they are not declared") {
    const emulation::collect_problems problems;
    cudaStream_t streams[2];
    for (auto& each : streams) REQUIRE(cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking) == cudaSuccess);
    const device_array array(1024);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    for (const bool declared : {true, false}) {
        for (std::size_t i = 0; i < 2; ++i) {
            float* const half = array.floats() + 512 * i;
            std::vector<range> ranges;
            if (declared) ranges.push_back({half, 2048, use::update});
            REQUIRE(emulation::launch("scale", scale, 1, 32, 0, streams[i], ranges, half, 2.0F, std::int64_t{512}) ==
                    cudaSuccess);
        }
        CHECK(problems.texts().empty() == declared);
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    }
    CHECK(problems.has("kernel scale"));
    for (auto& each : streams) REQUIRE(cudaStreamDestroy(each) == cudaSuccess);
}

TEST_CASE("kernel writes what it only reads", "[.]") {
    const device_array array(1024);
    REQUIRE(emulation::launch("scale", scale, 1, 32, 0, nullptr, {{array.data, 4096, use::read}}, array.floats(), 2.0F,
                              std::int64_t{1024}) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}
TEST_CASE("kernel runs over the end", "[.]") {
    const device_array array(1024);
    REQUIRE(emulation::launch("scale", scale, 1, 32, 0, nullptr, {}, array.floats(), 2.0F, std::int64_t{1025}) ==
            cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}
TEST_CASE("kernel runs", "[.]") {
    const device_array array(1024);
    REQUIRE(emulation::launch("scale", scale, 1, 32, 0, nullptr, {}, array.floats(), 2.0F, std::int64_t{1024}) ==
            cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("kernel: what it did not declare, it cannot touch") {
    for (const char* name : {"kernel writes what it only reads", "kernel runs over the end"}) {
        const auto end = zero::test::run_case(name);
        INFO(end.output);
        CHECK_FALSE(end.well);
        CHECK(end.output.find("kernel scale touches") != std::string::npos);
    }
    CHECK(zero::test::run_case("kernel runs").well);
}

TEST_CASE("kernel: bytes written behind a buffer are found when it is freed") {
    const emulation::collect_problems problems;
    {
        const device_array array(1000);  // rounded up to 4096 bytes
        REQUIRE(emulation::launch("scale", scale, 1, 1, 0, nullptr, {}, array.floats(), -2.0F, std::int64_t{1001}) ==
                cudaSuccess);
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    }
    CHECK(problems.has("wrote outside"));
}
