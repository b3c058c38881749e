// Every call of the runtime failing in turn: an error of the library with the name of the call, nothing left behind, and the
// processor works on.
#include "compute/both.hpp"
#include "emulation/control.hpp"

using namespace both_processors;

namespace {

// What a context does with a processor, from the beginning to the end.
void whole_life(ledger& book) {
    const auto work = compute::make_cuda(0, book);
    const auto other = work->beside();
    work->follow_stream(nullptr);
    const buffer values = work->take(book, purpose::parameters, 4096), states = work->take(book, purpose::states, 8192);
    const buffer host = work->take(book, purpose::communication, 4096, memory_kind::pinned);
    work->copy(values.data(), host.data(), 4096);
    work->after_caller();
    work->clear(states.data(), 8192);
    const void* sources[2] = {values.data(), states.data()};
    const dtype types[2] = {dtype::f32, dtype::f32};
    work->ordered_sum(dtype::f32, values.data(), false, sources, types, 2, 1000);
    work->accumulate(dtype::f32, values.data(), dtype::f32, states.data(), 2, 1000, false);
    compute::totals sum;
    work->divide_and_norm(dtype::f32, states.data(), 2, 1000, true, sum);
    work->dot(dtype::f32, states.data(), states.data(), 1000, sum);
    work->wait();
    work->convert(dtype::bf16, states.data(), dtype::f32, values.data(), 1000);
    work->round_through(dtype::bf16, dtype::f32, values.data(), 1000);
    work->update(optimizer::kind::sgd, {}, 1, 1, {dtype::f32, values.data(), nullptr, states.data(), {}, 1000});
    other->follow(*work->take_note());
    work->before_caller();
    work->start_copy(host.data(), values.data(), 4096);
    work->wait();
    other->wait();
}

}  // namespace

TEST_CASE("each failing CUDA call is an error that names it and leaves nothing behind", "[cuda]") {
    for (const cudaError_t injected : {cudaErrorUnknown, cudaErrorMemoryAllocation}) {
        std::int64_t failed = 0;
        for (std::int64_t n = 1;; ++n) {
            ledger book;
            zero_emulation::fail_cuda_call(n, injected);
            try {
                whole_life(book);
            } catch (const zero::error& what) {
                ++failed;
                INFO(n << ": " << what.what());
                CHECK(what.which() == (injected == cudaErrorUnknown ? code::cuda : code::memory));
                CHECK_THAT(what.what(), Catch::Contains("cuda") || Catch::Contains("update") || Catch::Contains("convert") ||
                                            Catch::Contains("ordered_sum") || Catch::Contains("accumulate") || Catch::Contains("dot") ||
                                            Catch::Contains("divide_and_norm") || Catch::Contains("round_through"));
                CHECK(cudaPeekAtLastError() == cudaSuccess);
            }
            CHECK(book.bytes(place::device) == 0);
            CHECK(book.bytes(place::host) == 0);
            if (zero_emulation::fault_pending()) {
                zero_emulation::fail_cuda_call(0);
                break;
            }
            zero_emulation::check_clean();
        }
        CHECK(failed > 60);
    }
}

TEST_CASE("device memory that cannot be had is said with its size and purpose", "[cuda]") {
    processors work;
    zero_emulation::limit_device_memory(1 << 20);
    REQUIRE_THROWS_WITH(work.device->take(work.book, purpose::states, 1 << 24),
                        Catch::Contains("16777216 bytes of device memory for optimizer states"));
    zero_emulation::limit_device_memory(std::int64_t{2} << 30);
    REQUIRE_THROWS_AS(work.device->take(work.book, purpose::states, -8), zero::error);
    REQUIRE(work.device->take(work.book, purpose::states, 1 << 24).bytes() == 1 << 24);
}

TEST_CASE("where pages cannot be locked, memory is plain, says so, and works", "[cuda]") {
    processors work;
    zero_emulation::limit_pinned_memory(0);
    const buffer host = work.device->take(work.book, purpose::states, 4096, memory_kind::pinned);
    zero_emulation::limit_pinned_memory(std::int64_t{1} << 40);
    REQUIRE_FALSE(host.locked());
    const twin data(work, dtype::f32, numbers(1000, 1, false));
    work.device->copy(host.data(), data.at(*work.device), 4000);
    REQUIRE(std::memcmp(host.data(), data.at(*work.host), 4000) == 0);
}

TEST_CASE("memory of a device is booked there, locked memory on the host", "[cuda]") {
    ledger book;
    {
        const auto work = compute::make_cuda(0, book);
        CHECK(book.bytes(place::device) == compute::cuda_result_bytes);
        CHECK(book.bytes(place::host) == compute::cuda_result_bytes);
        const buffer values = work->take(book, purpose::parameters, 1000);
        const buffer host = work->take(book, purpose::states, 2000, memory_kind::pinned);
        CHECK(book.bytes(place::device, purpose::parameters) == 1000);
        CHECK(book.bytes(place::host, purpose::states) == 2000);
        std::vector<std::byte> found(1000, std::byte{1});
        work->copy(found.data(), values.data(), 1000);
        CHECK(found == std::vector<std::byte>(1000));  // zeroed
        CHECK(work->take(book, purpose::states, 0).data() == nullptr);
    }
    CHECK(book.bytes(place::device) == 0);
    CHECK(book.bytes(place::host) == 0);
    zero_emulation::check_clean();
}
