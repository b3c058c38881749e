// The update loops for every machine: what the compiler's own flags allow. Not here: the loops (kernels_host.inc).
#define ZERO_KERNELS baseline_kernels
#include "optimizer/kernels_host.inc"
