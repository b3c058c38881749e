// What every emulated call does before and after its work: lock, driver, counting, faults, last error. Not here: the
// work.
#pragma once
#include "state.hpp"

namespace zero_emulation {

// nothing: a call that is to fail does nothing. release: it does its work all the same, so that nothing is left behind.
enum class when_failing { nothing, release };

// Success, or why this call must not do its work. Counts.
cudaError_t before_cuda_call(machine& m);
ncclResult_t before_nccl_call(machine& m);
void remember(cudaError_t error);  // for cudaGetLastError
bool in_host_function();           // where calls are forbidden

template <typename Body>
cudaError_t cuda_call(const Body& body, when_failing then = when_failing::nothing) {
    machine& m = the_machine();
    guard lock(m.door);
    cudaError_t error = before_cuda_call(m);
    if (error == cudaSuccess)
        error = body(m, lock);
    else if (then == when_failing::release && m.drivers == driver::present)
        body(m, lock);
    if (error != cudaSuccess && error != cudaErrorNotReady) remember(error);
    return error;
}

template <typename Body>
ncclResult_t nccl_call(const Body& body, when_failing then = when_failing::nothing) {
    machine& m = the_machine();
    guard lock(m.door);
    const ncclResult_t error = before_nccl_call(m);
    if (error == ncclSuccess) return body(m, lock);
    if (then == when_failing::release) body(m, lock);
    return error;
}

}  // namespace zero_emulation
