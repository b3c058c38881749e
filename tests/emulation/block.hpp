// The threads of a block.
#pragma once
#include <functional>

namespace zero_emulation {

// Runs the threads of the current block, blockDim of them: one after the other, or, when the first one comes to a
// barrier, as fibres that switch there.
void run_block(const std::function<void()>& thread);

}  // namespace zero_emulation
