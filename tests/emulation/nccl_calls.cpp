// What there is to ask a communicator, its errors, and memory of the emulated NCCL.
#include <unistd.h>

#include <memory>
#include <utility>

#include "memory.hpp"
#include "nccl_state.hpp"
#include "queue.hpp"

using namespace zero_emulation;

namespace {

template <typename Body>
ncclResult_t with_communicator(ncclComm_t what, const Body& body) {
    return nccl_call([&](machine& m, guard&) { return is_known(m, what) ? body(m) : ncclInvalidArgument; });
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t what, ncclResult_t* error) {
    return with_communicator(what, [&](machine& m) -> ncclResult_t {
        advance(m, *what);
        *error = what->error;
        if (*error != ncclSuccess) return ncclSuccess;
        const bool drains = what->finalizing && what->pending > 0;
        if (!what->ready || drains || std::exchange(what->hesitates, false)) *error = ncclInProgress;
        return ncclSuccess;
    });
}
const char* ncclGetLastError(ncclComm_t) {
    return "the emulation of NCCL keeps no text";
}

ncclResult_t ncclCommCount(const ncclComm_t what, int* count) {
    return with_communicator(what, [&](machine&) {
        *count = what->ranks;
        return ncclSuccess;
    });
}
ncclResult_t ncclCommCuDevice(const ncclComm_t what, int* device) {
    return with_communicator(what, [&](machine&) {
        *device = what->device;
        return ncclSuccess;
    });
}
ncclResult_t ncclCommUserRank(const ncclComm_t what, int* rank) {
    return with_communicator(what, [&](machine&) {
        *rank = what->rank;
        return ncclSuccess;
    });
}

ncclResult_t ncclCommRegister(const ncclComm_t what, void* buffer, size_t bytes, void** handle) {
    return with_communicator(what, [&](machine& m) {
        *handle = nullptr;
        const auto owner = around(m, buffer, bytes, "ncclCommRegister");
        if (!owner || !owner->on_device()) return ncclInvalidArgument;
        auto made = std::make_unique<char>();
        *handle = made.get();
        what->registrations.emplace(*handle, std::move(made));
        ++m.counted.nccl_registrations;
        return ncclSuccess;
    });
}
ncclResult_t ncclCommDeregister(const ncclComm_t what, void* handle) {
    return nccl_call(
        [&](machine& m, guard&) {
            if (!is_known(m, what) || what->registrations.erase(handle) == 0) return ncclInvalidArgument;
            return ncclSuccess;
        },
        when_failing::release);
}

ncclResult_t ncclMemAlloc(void** place, size_t bytes) {
    return nccl_call([&](machine& m, guard&) {
        ++m.counted.allocations;
        return allocate_device(m, place, bytes, allocation::kind::nccl) == cudaSuccess ? ncclSuccess
                                                                                       : ncclUnhandledCudaError;
    });
}
ncclResult_t ncclMemFree(void* place) {
    return nccl_call(
        [&](machine& m, guard& lock) {
            if (place == nullptr) return ncclSuccess;
            ++m.counted.frees;
            ++m.counted.implicit_synchronizes;
            wait_for_all(m, lock);
            return release_device(m, place, allocation::kind::nccl, "ncclMemFree") ? ncclSuccess : ncclInvalidArgument;
        },
        when_failing::release);
}

}  // extern "C"
