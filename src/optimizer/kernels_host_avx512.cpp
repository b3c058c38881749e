// The update loops for avx512 (flags.cmake sets the flags), or none where the machine has no such thing.
// Not here: the loops (kernels_host.inc).
#ifdef __AVX512F__
#define ZERO_KERNELS avx512_kernels
#include "optimizer/kernels_host.inc"
#else
#include "optimizer/kernels_host.hpp"
namespace zero::optimizer {
const kernels* avx512_kernels() noexcept { return nullptr; }
}  // namespace zero::optimizer
#endif
