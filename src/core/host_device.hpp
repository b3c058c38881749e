// ZERO_HD marks the functions that run on the host and, from the CUDA files, on the device too. They are always inlined:
// the host kernels are compiled several times with different instruction sets, and an out-of-line copy made with AVX-512
// must never become the one that the linker keeps for everybody.
#pragma once

#ifdef __CUDACC__
#define ZERO_HD __host__ __device__ __forceinline__
#else
#define ZERO_HD inline __attribute__((always_inline))
#endif
