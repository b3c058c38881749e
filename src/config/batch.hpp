// The three batch sizes: any two give the third. Pure arithmetic.
#pragma once
#include <cstdint>

#include "config/options.hpp"

namespace zero::config {

struct batch_sizes {
    std::int64_t train = 0, micro = 0, accumulation = 1;  // 0: not given and not to be had
};
// train = micro x accumulation x ranks. Throws code::config with all the numbers when that cannot be.
batch_sizes resolve_batch(const options& from, int ranks);

}  // namespace zero::config
