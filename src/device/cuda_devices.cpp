// The answers of a build with CUDA. The driver is loaded by the first call, and its absence is an answer. See devices.hpp.
#include <dlfcn.h>

#include <atomic>

#include "core/error.hpp"
#include "device/cuda.hpp"
#include "device/devices.hpp"

namespace zero {

namespace {

// Empty where there is a device.
std::string why_none() {
    int number = 0;
    const cudaError_t status = cudaGetDeviceCount(&number);
    cuda::forget(status);
    if (status == cudaSuccess && number > 0) return "";
    return formatted("no GPU can be used here (cudaGetDeviceCount: {})",
                     cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status));
}

bool reads_plain_memory(int device) {
    int yes = 0;
    cuda::check(cudaDeviceGetAttribute(&yes, cudaDevAttrPageableMemoryAccess, device), "cudaDeviceGetAttribute");
    return yes != 0;
}

}  // namespace

device_choice choose_device(const std::string& wanted) {
    if (wanted == "host") return {-1, "libzero.device is \"host\""};
    const std::string lacking = why_none();
    require(wanted != "cuda" || lacking.empty(), code::cuda,
            "libzero.device is \"cuda\", but {}: run on a machine with a GPU, or set it to \"auto\" or \"host\"", lacking);
    if (!lacking.empty()) return {-1, lacking};
    int number = -1;
    cuda::check(cudaGetDevice(&number), "cudaGetDevice");
    int pools = 0;
    cuda::check(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, number), "cudaDeviceGetAttribute");
    require(wanted != "cuda" || pools != 0, code::cuda,
            "libzero.device is \"cuda\", but device {} has no stream-ordered memory pools: set it to \"auto\" or \"host\"", number);
    if (pools == 0) return {-1, formatted("device {} has no stream-ordered memory pools", number)};
    return {number, ""};
}

// The runtime has no question for it that would not itself begin to use the device, so the driver is asked, which is loaded by now.
namespace {

using question = int (*)(int device, unsigned* flags, int* active);

question find_question() {
    constexpr const char* name = "cuDevicePrimaryCtxGetState";
    void* found = ::dlsym(RTLD_DEFAULT, name);
    if (found == nullptr)
        if (void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
            found = ::dlsym(driver, name);
            ::dlclose(driver);  // the runtime holds it too
        }
    return reinterpret_cast<question>(found);
}

}  // namespace

// Found once, since gradients that are handed over ask too. A driver that is not loaded yet may be, later.
bool program_uses(int device) {
    static std::atomic<question> known = nullptr;
    question ask = known.load(std::memory_order_relaxed);
    if (ask == nullptr) known.store(ask = find_question(), std::memory_order_relaxed);
    unsigned flags = 0;
    int active = 0;
    return ask != nullptr && ask(device, &flags, &active) == 0 && active != 0;
}

namespace {

bool in_use_anywhere() {
    int devices = 0;
    cuda::forget(cudaGetDeviceCount(&devices));
    for (int one = 0; one < devices; ++one)
        if (program_uses(one)) return true;
    return false;
}

}  // namespace

address_facts recognise(const void* address) {
    cudaPointerAttributes found = {};
    const cudaError_t status = cudaPointerGetAttributes(&found, address);
    if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice || status == cudaErrorInvalidValue) {
        cuda::forget(status);  // no driver, or one that knows nothing of this address
        return {};
    }
    cuda::check(status, "cudaPointerGetAttributes");
    switch (found.type) {
        case cudaMemoryTypeDevice: return {memory_of::device, found.device};
        case cudaMemoryTypeManaged: return {memory_of::managed, -1};
        case cudaMemoryTypeHost: return {memory_of::pinned, -1};
        default: return {};
    }
}

void check_reachable(const void* address, int device, const char* what, const std::string& of) {
    const bool asked = device >= 0 || in_use_anywhere();
    if (address == nullptr || !asked) return;  // a program without a GPU shall not begin to use one by our question
    const auto facts = recognise(address);
    if (facts.kind == memory_of::device) {
        require(device >= 0, code::argument,
                "{} '{}' lie in memory of device {}, but this context works in host memory: set libzero.device to \"cuda\" or pass host memory",
                what, of, facts.device);
        require(device == facts.device, code::argument,
                "{} '{}' lie in memory of device {}, but this context uses device {}: call cudaSetDevice before zero_init, and allocate there",
                what, of, facts.device, device);
    }
    require(device < 0 || facts.kind != memory_of::plain || reads_plain_memory(device), code::argument,
            "{} '{}' lie in plain host memory, which device {} cannot reach: pass memory of cudaMalloc, cudaMallocManaged or "
            "cudaMallocHost, or set libzero.device to \"host\"", what, of, device);
}

}  // namespace zero
