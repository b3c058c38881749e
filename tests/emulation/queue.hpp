// Streams as queues of operations, run one at a time by one thread. Not here: what the operations do.
#pragma once
#include "state.hpp"

namespace zero_emulation {

// The stream behind a handle (null: the legacy one of the current device); null where there is none.
std::shared_ptr<CUstream_st> stream_of(machine& m, cudaStream_t handle);
int& current_device();  // of this host thread

// Adds an operation and tells the race detector what it touches.
cudaError_t enqueue(machine& m, cudaStream_t handle, operation what);
cudaError_t enqueue(machine& m, const std::shared_ptr<CUstream_st>& stream, operation what,
                    const vector_clock* also = nullptr);

// Waits until so many operations of the stream are done. Host clocks are the caller's business.
void wait_for(machine& m, guard& lock, const std::shared_ptr<CUstream_st>& stream, std::uint64_t number);
void wait_for_all(machine& m, guard& lock);  // and knows it afterwards
void know(machine& m,
          const std::shared_ptr<CUstream_st>& stream);  // the host has seen the end of all that was enqueued
void wait_until(machine& m, guard& lock, const char* what, const std::function<bool()>& done);

// The addresses at which the queue finds the bytes.
std::byte* bytes_at(machine& m, std::uintptr_t address);

}  // namespace zero_emulation
