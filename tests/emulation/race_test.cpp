// The race detector: what is not ordered is found, whatever order it ran in; what is ordered is not.
#include <catch2/catch.hpp>

#include "emulation/control.hpp"

namespace emulation = zero_emulation;

namespace {

struct setting {
    setting() {
        REQUIRE(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking) == cudaSuccess);
        REQUIRE(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking) == cudaSuccess);
        REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
        REQUIRE(cudaMalloc(&data, 1000) == cudaSuccess);
        REQUIRE(cudaMallocHost(&pinned, 1000) == cudaSuccess);
    }
    ~setting() {
        cudaDeviceSynchronize();
        cudaFree(data);
        cudaFreeHost(pinned);
        cudaEventDestroy(event);
        cudaStreamDestroy(a);
        cudaStreamDestroy(b);
        emulation::check_clean();
    }
    void order() const {
        REQUIRE(cudaEventRecord(event, a) == cudaSuccess);
        REQUIRE(cudaStreamWaitEvent(b, event) == cudaSuccess);
    }
    emulation::collect_problems problems;
    cudaStream_t a = nullptr, b = nullptr;
    cudaEvent_t event = nullptr;
    char *data = nullptr, *pinned = nullptr;
};

}  // namespace

TEST_CASE("race: two writes, a write and a read; not two reads, nor different bytes") {
    const setting s;
    REQUIRE(cudaMemsetAsync(s.data, 1, 100, s.a) == cudaSuccess);
    REQUIRE(cudaMemsetAsync(s.data + 100, 1, 100, s.b) == cudaSuccess);
    CHECK(s.problems.texts().empty());
    REQUIRE(cudaMemsetAsync(s.data + 50, 2, 100, s.b) == cudaSuccess);
    REQUIRE(s.problems.texts().size() == 1);
    CHECK(s.problems.has("nothing orders two accesses of 50 bytes"));
    CHECK(s.problems.has("cudaMemsetAsync"));  // where they were made
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(s.pinned, s.data, 100, cudaMemcpyDeviceToHost, s.a) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(s.pinned + 500, s.data, 100, cudaMemcpyDeviceToHost, s.b) == cudaSuccess);
    CHECK(s.problems.texts().size() == 1);
    REQUIRE(cudaMemsetAsync(s.data, 2, 1, s.b) == cudaSuccess);
    CHECK(s.problems.texts().size() == 2);
}

TEST_CASE("race: ordered by an event, by the host, by a query") {
    const setting s;
    REQUIRE(cudaMemsetAsync(s.data, 1, 100, s.a) == cudaSuccess);
    s.order();
    REQUIRE(cudaMemsetAsync(s.data, 2, 100, s.b) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(s.b) == cudaSuccess);
    REQUIRE(cudaMemsetAsync(s.data, 3, 100, s.a) == cudaSuccess);
    while (cudaStreamQuery(s.a) == cudaErrorNotReady) {
    }
    REQUIRE(cudaMemsetAsync(s.data, 4, 100, s.b) == cudaSuccess);
    CHECK(s.problems.texts().empty());
}

TEST_CASE("race: an event recorded too early orders nothing that follows") {
    const setting s;
    REQUIRE(cudaMemsetAsync(s.data, 1, 100, s.a) == cudaSuccess);
    s.order();
    REQUIRE(cudaMemsetAsync(s.data, 2, 100, s.a) == cudaSuccess);
    REQUIRE(cudaMemsetAsync(s.data, 3, 100, s.b) == cudaSuccess);
    CHECK(s.problems.texts().size() == 1);
}

TEST_CASE("race: memory of a pool is used and freed in order") {
    const setting s;
    char* ordered = nullptr;
    REQUIRE(cudaMallocAsync(&ordered, 100, s.a) == cudaSuccess);
    REQUIRE(cudaMemsetAsync(ordered, 1, 100, s.b) == cudaSuccess);
    CHECK(s.problems.texts().size() == 1);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    REQUIRE(cudaMemsetAsync(ordered, 1, 100, s.b) == cudaSuccess);
    REQUIRE(cudaFreeAsync(ordered, s.a) == cudaSuccess);
    CHECK(s.problems.texts().size() == 2);
}

TEST_CASE("race: the default stream does not order a non-blocking one") {
    const setting s;
    char host[100] = {};
    REQUIRE(cudaMemcpy(s.data, host, 100, cudaMemcpyHostToDevice) == cudaSuccess);  // staged: may arrive after the call
    REQUIRE(cudaMemsetAsync(s.data, 1, 100, s.a) == cudaSuccess);
    CHECK(s.problems.texts().size() == 1);
}

TEST_CASE("race: the host changes, reads and frees pinned memory too early") {
    emulation::seed(1, 10000000);
    {
        const setting s;
        s.pinned[0] = 1;
        REQUIRE(cudaMemcpyAsync(s.data, s.pinned, 100, cudaMemcpyHostToDevice, s.a) == cudaSuccess);
        s.pinned[0] = 2;
        emulation::host_reads(s.pinned, 100);
        CHECK(s.problems.texts().empty());
        emulation::host_writes(s.pinned, 100);
        CHECK(s.problems.has("the host writes"));
        REQUIRE(cudaStreamSynchronize(s.a) == cudaSuccess);
        CHECK(s.problems.has("the host changed pinned memory"));
        emulation::host_writes(s.pinned, 100);
        CHECK(s.problems.texts().size() == 2);

        char* freed = nullptr;
        REQUIRE(cudaMallocHost(&freed, 10) == cudaSuccess);
        REQUIRE(cudaMemcpyAsync(freed, s.data, 10, cudaMemcpyDeviceToHost, s.a) == cudaSuccess);
        REQUIRE(cudaFreeHost(freed) == cudaSuccess);
        CHECK(s.problems.has("cudaFreeHost frees"));
    }
    emulation::seed(1, 300);
}
