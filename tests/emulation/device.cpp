// What there is to ask about devices and versions.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "calls.hpp"
#include "queue.hpp"

using namespace zero_emulation;

namespace {

cudaError_t for_device(int device, const std::function<void(machine&)>& answer) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        if (device < 0 || device >= m.devices) return cudaErrorInvalidDevice;
        answer(m);
        return cudaSuccess;
    });
}

}  // namespace

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
    machine& m = the_machine();
    const guard lock(m.door);
    *version = m.drivers == driver::none ? 0 : 13000;  // no error: that is how one asks whether there is one
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
    *count = 0;
    return cuda_call([&](machine& m, guard&) {
        *count = m.devices;
        return m.devices > 0 ? cudaSuccess : cudaErrorNoDevice;
    });
}
cudaError_t cudaSetDevice(int device) {
    return for_device(device, [&](machine&) { current_device() = device; });
}
cudaError_t cudaGetDevice(int* device) {
    return cuda_call([&](machine&, guard&) {
        *device = current_device();
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return cuda_call([&](machine&, guard&) {
        *least = 0;
        *greatest = -5;
        return cudaSuccess;
    });
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
    return for_device(
        device, [&](machine&) { std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", device + 1); });
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr what, int device) {
    return for_device(device, [&](machine&) {
        switch (what) {
            case cudaDevAttrMaxThreadsPerBlock:
                *value = 1024;
                break;
            case cudaDevAttrMaxSharedMemoryPerBlock:
                *value = 48 << 10;
                break;
            case cudaDevAttrWarpSize:
                *value = 32;
                break;
            case cudaDevAttrMultiProcessorCount:
                *value = 2;
                break;
            case cudaDevAttrMaxThreadsPerMultiProcessor:
                *value = 2048;
                break;
            case cudaDevAttrL2CacheSize:
                *value = 1 << 20;
                break;
            case cudaDevAttrComputeCapabilityMajor:
                *value = 9;
                break;
            case cudaDevAttrPciBusId:
                *value = device + 1;
                break;
            case cudaDevAttrAsyncEngineCount:
                *value = 2;
                break;
            case cudaDevAttrHostNumaId:
                *value = -1;
                break;
            case cudaDevAttrCanMapHostMemory:
            case cudaDevAttrUnifiedAddressing:
            case cudaDevAttrStreamPrioritiesSupported:
            case cudaDevAttrManagedMemory:
            case cudaDevAttrCanUseHostPointerForRegisteredMem:
            case cudaDevAttrHostRegisterSupported:
            case cudaDevAttrMemoryPoolsSupported:
                *value = 1;
                break;
            default:
                *value = 0;
                break;
        }
    });
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* of, int device) {
    return for_device(device, [&](machine& m) {
        *of = {};
        std::snprintf(of->name, sizeof of->name, "emulated device");
        std::memset(of->uuid.bytes, device + 1, sizeof of->uuid.bytes);
        of->totalGlobalMem = static_cast<size_t>(m.device_limit);
        of->sharedMemPerBlock = 48 << 10;
        of->warpSize = 32;
        of->maxThreadsPerBlock = 1024;
        of->major = 9;
        of->multiProcessorCount = 2;
        of->maxThreadsPerMultiProcessor = 2048;
        of->canMapHostMemory = 1;
        of->pciBusID = device + 1;
        of->asyncEngineCount = 2;
        of->unifiedAddressing = 1;
        of->managedMemory = 1;
        of->memoryBusWidth = 64;
        of->l2CacheSize = 1 << 20;
    });
}

}  // extern "C"

// Of the driver, which the library asks by name: does this process use the device?
extern "C" int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
    machine& m = the_machine();
    const guard lock(m.door);
    *flags = 0;
    *active = 0;
    for (const auto& [begin, one] : m.allocations) *active |= one->device == device && one->on_device() ? 1 : 0;
    return m.drivers == driver::present && device < m.devices ? 0 : 100;
}
