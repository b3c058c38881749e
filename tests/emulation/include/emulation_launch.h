// Launching a kernel in the emulation: README.md says what arguments and ranges mean. Not here: how it runs
// (kernel.cpp).
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace zero_emulation {

enum class use { read, write, update };
struct range {
    const void* data;
    std::size_t bytes;
    use how;
};
struct piece {
    void* data;
    std::size_t bytes;
};
cudaError_t launch_pieces(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                          std::vector<range> ranges, const std::vector<piece>& arguments, std::function<void()> thread);

template <typename... Parameters, typename... Arguments>
cudaError_t launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                   cudaStream_t stream, std::vector<range> ranges, Arguments... arguments) {
    static_assert((std::is_trivially_copyable_v<std::decay_t<Parameters>> && ...),
                  "what a kernel takes is copied byte by byte to the device");
    static_assert((sizeof(std::decay_t<Parameters>) + ... + 0) <= 32764, "a kernel takes at most 32764 bytes");
    auto packed = std::make_shared<std::tuple<std::decay_t<Parameters>...>>(std::move(arguments)...);
    std::vector<piece> pieces;
    std::apply([&](auto&... each) { (pieces.push_back({&each, sizeof(each)}), ...); }, *packed);
    return launch_pieces(name, grid, block, shared_bytes, stream, std::move(ranges), pieces,
                         [packed, kernel] { std::apply(kernel, *packed); });
}

}  // namespace zero_emulation
