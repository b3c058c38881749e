// The vector kernels for every machine: what the compiler's own flags allow. Not here: the loops (vector_kernels.inc).
#define ZERO_KERNELS baseline_kernels
#define ZERO_LANES 2
#include "tensor/vector_kernels.inc"
