// Which of the compiled instruction sets the vector kernels use. Chosen from the processor on first use; tests may
// choose a lesser one. Not here: the kernels (vector_kernels.inc, optimizer/kernels_host.inc).
#pragma once

namespace zero {

enum class instruction_set : int { baseline = 0, avx2 = 1, avx512 = 2 };

bool supported(instruction_set which) noexcept;  // by this processor and this build
instruction_set chosen_instruction_set() noexcept;
bool choose_instruction_set(instruction_set which) noexcept;  // false, and nothing changes, when it is not supported
const char* name(instruction_set which) noexcept;

}  // namespace zero
