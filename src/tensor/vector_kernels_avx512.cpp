// The vector kernels for avx512 (flags.cmake sets the flags), or none where the machine has no such thing.
// Not here: the loops (vector_kernels.inc).
#ifdef __AVX512F__
#define ZERO_KERNELS avx512_kernels
#define ZERO_LANES 4
#include "tensor/vector_kernels.inc"
#else
#include "tensor/vector_kernels.hpp"
namespace zero::vector {
const kernels* avx512_kernels() noexcept { return nullptr; }
}  // namespace zero::vector
#endif
