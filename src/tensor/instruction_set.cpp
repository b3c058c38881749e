// Asks the processor once. Not here: the kernels themselves.
#include "tensor/instruction_set.hpp"

#include <atomic>

#include "tensor/vector_kernels.hpp"

namespace zero {

namespace {

bool processor_has(instruction_set which) noexcept {
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    if (which == instruction_set::avx2) return avx2;
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
    static_cast<void>(which);
    return false;
#endif
}

instruction_set best() noexcept {
    if (supported(instruction_set::avx512)) return instruction_set::avx512;
    return supported(instruction_set::avx2) ? instruction_set::avx2 : instruction_set::baseline;
}

// The one thing that is not constant here; it changes no result, only speed.
std::atomic<instruction_set>& choice() noexcept {
    static std::atomic<instruction_set> value{best()};
    return value;
}

}  // namespace

bool supported(instruction_set which) noexcept {
    if (which == instruction_set::baseline) return true;
    return vector::compiled_kernels(which) != nullptr && processor_has(which);
}

instruction_set chosen_instruction_set() noexcept {
    return choice().load(std::memory_order_relaxed);
}

bool choose_instruction_set(instruction_set which) noexcept {
    if (!supported(which)) return false;
    choice().store(which, std::memory_order_relaxed);
    return true;
}

const char* name(instruction_set which) noexcept {
    if (which == instruction_set::avx512) return "avx512";
    return which == instruction_set::avx2 ? "avx2" : "baseline";
}

}  // namespace zero
