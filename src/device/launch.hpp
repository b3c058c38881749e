// The one way to put a kernel on a stream, for nvcc and for the emulation of the tests (which alone asks what the kernel touches).
// Every kernel is a loop that its threads share (kernel.hpp), so any number of them gives the same result.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#ifdef ZERO_CUDA_EMULATION
#include <vector>
#endif

#include "device/cuda.hpp"

namespace zero::cuda {

// Where kernels go, and how many blocks fill that device.
struct queue {
    cudaStream_t stream = nullptr;
    int multiprocessors = 1;
};

// The memory that a kernel reads and writes. Costs nothing where nobody checks the order of accesses.
class touches {
public:
#ifdef ZERO_CUDA_EMULATION
    touches& reads(const void* data, std::int64_t bytes) { return add(data, bytes, zero_emulation::use::read); }
    touches& writes(const void* data, std::int64_t bytes) { return add(data, bytes, zero_emulation::use::write); }
    touches& updates(const void* data, std::int64_t bytes) { return add(data, bytes, zero_emulation::use::update); }
    std::vector<zero_emulation::range> all;

private:
    touches& add(const void* data, std::int64_t bytes, zero_emulation::use how) {
        if (data != nullptr && bytes > 0) all.push_back({data, static_cast<std::size_t>(bytes), how});
        return *this;
    }
#else
    touches& reads(const void*, std::int64_t) noexcept { return *this; }
    touches& writes(const void*, std::int64_t) noexcept { return *this; }
    touches& updates(const void*, std::int64_t) noexcept { return *this; }
#endif
};

constexpr unsigned threads_of_block = 256;
constexpr int usual_blocks = 8;  // on each multiprocessor: all the threads that it holds

// `items` turns of the kernel's loop are shared by at most `blocks` blocks on each multiprocessor.
template <typename... Parameters, typename... Arguments>
void launch(const char* name, const queue& to, std::int64_t items, int blocks, void (*kernel)(Parameters...),
            [[maybe_unused]] const touches& memory, const Arguments&... arguments) {
    if (items <= 0) return;
    const std::int64_t needed = (items + threads_of_block - 1) / threads_of_block;
    const auto grid = static_cast<unsigned>(std::min<std::int64_t>(needed, std::int64_t{blocks} * to.multiprocessors));
#ifdef ZERO_CUDA_EMULATION
    check(zero_emulation::launch(name, kernel, dim3(grid), dim3(threads_of_block), 0, to.stream, memory.all, arguments...), name);
#else
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3(grid);
    how.blockDim = dim3(threads_of_block);
    how.stream = to.stream;
    check(cudaLaunchKernelEx(&how, kernel, arguments...), name);
#endif
}

}  // namespace zero::cuda
