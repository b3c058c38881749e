// Streams and events of the emulation: what is ordered, what is not, the default stream, host functions, capture.
#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>
#include <vector>

#include "emulation/control.hpp"

namespace emulation = zero_emulation;

namespace {

std::vector<int> order;  // host functions run one at a time

void note(cudaStream_t stream, std::intptr_t what) {
    REQUIRE(cudaLaunchHostFunc(
                stream, [](void* data) { order.push_back(static_cast<int>(reinterpret_cast<std::intptr_t>(data))); },
                reinterpret_cast<void*>(what)) == cudaSuccess);
}

struct two_streams {
    explicit two_streams(unsigned flags) {
        REQUIRE(cudaStreamCreateWithFlags(&a, flags) == cudaSuccess);
        REQUIRE(cudaStreamCreateWithFlags(&b, flags) == cudaSuccess);
        REQUIRE(cudaEventCreate(&event) == cudaSuccess);
        order.clear();
    }
    ~two_streams() {
        cudaEventDestroy(event);
        cudaStreamDestroy(a);
        cudaStreamDestroy(b);
        emulation::check_clean();
    }
    cudaStream_t a = nullptr, b = nullptr;
    cudaEvent_t event = nullptr;
};

// What came first of two operations on two streams, over many seeds.
template <typename Between>
int count_first(unsigned flags, const Between& between) {
    int first = 0;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        emulation::seed(seed, 1000);
        two_streams streams(flags);
        note(streams.a, 1);
        between(streams);
        note(streams.b, 2);
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        REQUIRE(order.size() >= 2);
        first += order[0] == 1 ? 1 : 0;
    }
    emulation::seed(1, 300);
    return first;
}

}  // namespace

TEST_CASE("stream: one stream keeps its order, two have none") {
    emulation::seed(3, 200);
    {
        two_streams streams(cudaStreamNonBlocking);
        for (int i = 0; i < 20; ++i) note(streams.a, i);
        REQUIRE(cudaStreamSynchronize(streams.a) == cudaSuccess);
        REQUIRE(order.size() == 20);
        for (int i = 0; i < 20; ++i) REQUIRE(order[static_cast<std::size_t>(i)] == i);
    }
    const int first = count_first(cudaStreamNonBlocking, [](two_streams&) {});
    CHECK(first > 0);
    CHECK(first < 30);
}

TEST_CASE("stream: an event orders two") {
    REQUIRE(count_first(cudaStreamNonBlocking, [](two_streams& streams) {
                REQUIRE(cudaEventRecord(streams.event, streams.a) == cudaSuccess);
                REQUIRE(cudaStreamWaitEvent(streams.b, streams.event) == cudaSuccess);
            }) == 30);
}

TEST_CASE("stream: a blocking stream and the default one are ordered, a non-blocking one is not") {
    const auto through_default = [](two_streams&) { note(nullptr, 3); };
    REQUIRE(count_first(cudaStreamDefault, through_default) == 30);
    order.clear();
    // Held back for long, but for the default stream, which does not wait for it.
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    int before = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        emulation::seed(seed, 300);
        order.clear();
        note(stream, 1);
        note(nullptr, 2);
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        before += order[0] == 2 ? 1 : 0;
    }
    CHECK(before > 0);
    CHECK(before < 20);
    emulation::seed(1, 300);
    REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("stream: queries come true, and time passes between events") {
    two_streams streams(cudaStreamNonBlocking);
    cudaEvent_t later = nullptr;
    REQUIRE(cudaEventCreate(&later) == cudaSuccess);
    REQUIRE(cudaEventQuery(streams.event) == cudaSuccess);  // never recorded
    REQUIRE(cudaEventRecord(streams.event, streams.a) == cudaSuccess);
    note(streams.a, 1);
    REQUIRE(cudaEventRecord(later, streams.a) == cudaSuccess);
    while (cudaEventQuery(later) == cudaErrorNotReady) std::this_thread::yield();
    REQUIRE(cudaStreamQuery(streams.a) == cudaSuccess);
    float milliseconds = -1;
    REQUIRE(cudaEventElapsedTime(&milliseconds, streams.event, later) == cudaSuccess);
    CHECK(milliseconds >= 0);
    emulation::seed(1, 10000000);
    note(streams.a, 2);
    CHECK(cudaStreamQuery(streams.a) == cudaErrorNotReady);
    REQUIRE(cudaStreamSynchronize(streams.a) == cudaSuccess);  // who waits is not kept waiting
    emulation::seed(1, 300);
    REQUIRE(cudaEventDestroy(later) == cudaSuccess);
}

TEST_CASE("stream: a host function may not call CUDA") {
    static cudaError_t inside = cudaSuccess;
    REQUIRE(cudaLaunchHostFunc(
                nullptr, [](void*) { inside = cudaStreamSynchronize(nullptr); }, nullptr) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
    CHECK(inside == cudaErrorNotPermitted);
}

TEST_CASE("stream: capture is seen, and what comes meanwhile is refused") {
    two_streams streams(cudaStreamNonBlocking);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamBeginCapture(streams.a, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    REQUIRE(cudaStreamIsCapturing(streams.a, &status) == cudaSuccess);
    REQUIRE(status == cudaStreamCaptureStatusActive);
    REQUIRE(cudaStreamIsCapturing(streams.b, &status) == cudaSuccess);
    REQUIRE(status == cudaStreamCaptureStatusNone);
    REQUIRE(cudaStreamEndCapture(streams.a, &graph) == cudaSuccess);
    REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
    REQUIRE(cudaStreamBeginCapture(streams.a, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    REQUIRE(cudaEventRecord(streams.event, streams.a) == cudaErrorStreamCaptureUnsupported);
    REQUIRE(cudaStreamEndCapture(streams.a, &graph) == cudaErrorStreamCaptureInvalidated);
    REQUIRE(cudaStreamSynchronize(streams.a) == cudaSuccess);
}
