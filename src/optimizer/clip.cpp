// The factor of clipping by the global norm. Not here: the norm (stage/), its use (kernels_host.inc).
#include "optimizer/optimizer.hpp"

namespace zero::optimizer {

double clip_factor(double clip, double norm) noexcept {
    if (clip == 0) return 1;
    const double factor = clip / (norm + 1e-6);
    return factor < 1 ? factor : 1;
}

}  // namespace zero::optimizer
