// What a device's processor promises about order: behind and before the caller's stream, beside another processor, without waiting
// and without asking for memory. The emulation holds every operation back and reports what nothing orders.
#include "compute/both.hpp"
#include "emulation/control.hpp"

using namespace both_processors;

namespace {

class callers_stream {
public:
    callers_stream() { REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess); }
    ~callers_stream() { cudaStreamDestroy(stream); }
    cudaStream_t stream = nullptr;
};

}  // namespace

TEST_CASE("a device's work comes after what the caller's stream was given, and before what it is given next", "[cuda]") {
    processors work;
    callers_stream caller;
    for (cudaStream_t stream : {caller.stream, cudaStream_t{nullptr}}) {
        const twin a(work, dtype::f32, numbers(1000, 1, false)), b(work, dtype::f32, numbers(1000, 2, false));
        std::byte *from = a.at(*work.device), *to = b.at(*work.device);
        work.device->wait();
        work.device->follow_stream(stream);
        REQUIRE(cudaMemsetAsync(from, 0, 4000, stream) == cudaSuccess);
        work.device->after_caller();
        work.device->accumulate(dtype::f32, to, dtype::f32, from, 1, 1000, true);
        work.device->before_caller();
        std::vector<float> found(1000, 1);
        REQUIRE(cudaMemcpyAsync(found.data(), to, 4000, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
        REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
        REQUIRE(found == std::vector<float>(1000, 0));
    }
}

TEST_CASE("without after_caller the emulation sees a race", "[cuda]") {
    processors work;
    callers_stream caller;
    const twin a(work, dtype::f32, numbers(1000, 1, false));
    work.device->wait();
    const zero_emulation::collect_problems problems;
    REQUIRE(cudaMemsetAsync(a.at(*work.device), 0, 4000, caller.stream) == cudaSuccess);
    work.device->convert(dtype::bf16, a.at(*work.device) + 4000, dtype::f32, a.at(*work.device), 16);
    work.device->wait();
    REQUIRE(cudaStreamSynchronize(caller.stream) == cudaSuccess);
    REQUIRE_FALSE(problems.texts().empty());
}

TEST_CASE("a stream that records a graph is refused with a sentence", "[cuda]") {
    processors work;
    callers_stream caller;
    work.device->follow_stream(caller.stream);
    REQUIRE(cudaStreamBeginCapture(caller.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    REQUIRE_THROWS_WITH(work.device->after_caller(), Catch::Contains("recording a CUDA graph"));
    REQUIRE_THROWS_WITH(work.device->before_caller(), Catch::Contains("recording a CUDA graph"));
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(caller.stream, &graph) == cudaSuccess);
    cudaGraphDestroy(graph);
    work.device->after_caller();
}

TEST_CASE("two processors of a device work beside each other and in the order that notes give", "[cuda]") {
    processors work;
    const auto other = work.device->beside();
    REQUIRE(other->stream() != work.device->stream());
    const twin a(work, dtype::f32, numbers(5000, 1, false)), b(work, dtype::f32, numbers(5000, 2, false));
    work.device->wait();
    const auto place = [&](const twin& of) { return of.at(*work.device); };
    for (int round = 0; round < 5; ++round) {
        other->clear(place(a), 20000);
        const auto cleared = other->take_note();
        work.device->follow(*cleared);
        work.device->accumulate(dtype::f32, place(b), dtype::f32, place(a), 1, 5000, true);
        const auto done = work.device->take_note();
        other->follow(*done);
        done->wait();
        REQUIRE(done->passed());
    }
    std::vector<float> found(5000, 1);
    work.device->copy(found.data(), place(b), 20000);
    REQUIRE(found == std::vector<float>(5000, 0));
    REQUIRE(work.host->take_note()->passed());
    work.device->follow(*work.host->take_note());
}

TEST_CASE("a step on a device waits once and takes no memory", "[cuda]") {
    processors work;
    const twin value(work, dtype::f32, numbers(5000, 1, false)), gradient(work, dtype::f32, numbers(5000, 2, false)),
        first(work, dtype::f32, std::vector<double>(5000)), second(work, dtype::f32, std::vector<double>(5000));
    const auto& p = *work.device;
    work.device->wait();
    zero_emulation::reset_counters();
    compute::totals sum;
    work.device->after_caller();
    work.device->divide_and_norm(dtype::f32, gradient.at(p), 3, 5000, true, sum);
    REQUIRE(sum.squares.value() == 0);  // not known yet
    work.device->wait();
    REQUIRE(sum.squares.value() > 0);
    work.device->update(optimizer::kind::adam, {}, 0.5, 1, {dtype::f32, value.at(p), nullptr, gradient.at(p), {first.at(p), second.at(p)}, 5000});
    work.device->before_caller();
    const auto counted = zero_emulation::count();
    CHECK(counted.stream_synchronizes == 1);
    CHECK(counted.device_synchronizes + counted.implicit_synchronizes == 0);
    CHECK(counted.allocations + counted.pool_allocations + counted.pinned_allocations + counted.registrations == 0);
    CHECK(counted.kernels == 2);
}

TEST_CASE("a copy to locked memory can be started and waited for later", "[cuda]") {
    processors work;
    buffer room = work.device->take(work.book, purpose::communication, 4000, memory_kind::pinned);
    REQUIRE(room.locked());
    const twin a(work, dtype::f32, numbers(1000, 1, false));
    zero_emulation::reset_counters();
    work.device->start_copy(room.data(), a.at(*work.device), 4000);
    CHECK(zero_emulation::count().stream_synchronizes == 0);
    work.device->take_note()->wait();
    REQUIRE(std::memcmp(room.data(), a.at(*work.host), 4000) == 0);
    work.device->start_copy(a.at(*work.device), room.data(), 4000);
    work.device->wait();
    REQUIRE(a.equal());
}
