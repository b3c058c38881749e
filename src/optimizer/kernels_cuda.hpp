// The passes of optimizer.hpp over device memory, put on a stream: same names, same bits, any number of ranges at once. Included
// by files of the CUDA build alone.
#pragma once
#include <span>

#include "device/launch.hpp"
#include "optimizer/optimizer.hpp"

namespace zero::optimizer {

void update(const cuda::queue& on, kind which, const hyper& numbers, double clip_factor, std::int64_t step,
            std::span<const update_range> parts);
void lamb_direction(const cuda::queue& on, const hyper& numbers, double clip_factor, std::int64_t step, const update_range& part,
                    void* direction);
void lamb_apply(const cuda::queue& on, const hyper& numbers, double trust, const update_range& part, const void* direction);

}  // namespace zero::optimizer
