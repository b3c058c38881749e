// Which device is chosen, what kind of memory an address is of, and what is refused.
#include "compute/both.hpp"
#include "device/cuda.hpp"
#include "device/devices.hpp"
#include "emulation/control.hpp"

using namespace both_processors;

namespace {

int lookups = 0;

}  // namespace

extern "C" void* __real_dlsym(void* library, const char* name);
extern "C" void* __wrap_dlsym(void* library, const char* name);
void* __wrap_dlsym(void* library, const char* name) {
    ++lookups;
    return __real_dlsym(library, name);
}

TEST_CASE("the driver's question is looked for once", "[cuda]") {
    program_uses(0);
    const int found = lookups;
    CHECK(found > 0);
    int plain = 0;
    for (int k = 0; k < 10; ++k) check_reachable(&plain, -1, "the gradient of", "w");
    CHECK(lookups == found);
}

TEST_CASE("libzero.device chooses the caller's device, or the host", "[cuda]") {
    CHECK(choose_device("host").number == -1);
    CHECK(choose_device("auto").number == 0);
    REQUIRE(cudaSetDevice(2) == cudaSuccess);
    CHECK(choose_device("cuda").number == 2);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    for (const auto absent : {zero_emulation::driver::none, zero_emulation::driver::no_device}) {
        zero_emulation::set_driver(absent);
        CHECK(choose_device("auto").number == -1);
        CHECK_THAT(choose_device("auto").reason, Catch::Contains("no GPU can be used here"));
        try {
            choose_device("cuda");
            FAIL("no error");
        } catch (const zero::error& what) {
            CHECK(what.which() == code::cuda);
            CHECK_THAT(what.what(), Catch::Contains("\"auto\" or \"host\""));
        }
        int here = 0;
        CHECK(recognise(&here).kind == memory_of::plain);
        zero_emulation::set_driver(zero_emulation::driver::present);
    }
}

TEST_CASE("memory of every kind is recognised, and what cannot be reached is refused", "[cuda]") {
    int plain = 0;
    void *device = nullptr, *foreign = nullptr, *managed = nullptr, *pinned = nullptr;
    REQUIRE(cudaMalloc(&device, 64) == cudaSuccess);
    REQUIRE(cudaMallocManaged(&managed, 64, cudaMemAttachGlobal) == cudaSuccess);
    REQUIRE(cudaHostAlloc(&pinned, 64, cudaHostAllocDefault) == cudaSuccess);
    {
        const cuda::device_guard there(1);
        REQUIRE(cudaMalloc(&foreign, 64) == cudaSuccess);
    }
    int current = -1;
    REQUIRE(cudaGetDevice(&current) == cudaSuccess);
    CHECK(current == 0);  // the caller's again
    CHECK(recognise(&plain).kind == memory_of::plain);
    CHECK(recognise(device).kind == memory_of::device);
    CHECK(recognise(device).device == 0);
    CHECK(recognise(foreign).device == 1);
    CHECK(recognise(managed).kind == memory_of::managed);
    CHECK(recognise(pinned).kind == memory_of::pinned);

    for (const void* good : {const_cast<const void*>(device), const_cast<const void*>(managed), const_cast<const void*>(pinned)})
        check_reachable(good, 0, "the values of", "w");
    check_reachable(nullptr, 0, "", "");
    CHECK_THROWS_WITH(check_reachable(&plain, 0, "the values of", "w"), Catch::Contains("the values of 'w' lie in plain host memory"));
    CHECK_THROWS_WITH(check_reachable(foreign, 0, "the values of", "w"), Catch::Contains("device 1, but this context uses device 0"));
    check_reachable(&plain, -1, "the values of", "x");
    check_reachable(managed, -1, "the values of", "x");
    CHECK_THROWS_WITH(check_reachable(device, -1, "the values of", "w"), Catch::Contains("set libzero.device to \"cuda\""));
    cudaFree(device);
    cudaFree(foreign);
    cudaFree(managed);
    cudaFreeHost(pinned);
    zero_emulation::check_clean();
}
