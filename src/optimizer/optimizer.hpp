// What an optimizer is to the rest of the library: a name, the states it keeps, its hyper-parameters, and one pass over
// memory that updates a range. The element updates themselves: one header each (adam.hpp, lion.hpp ...), written once as
// templates; kernels_host.inc instantiates them once per instruction set.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/dtype.hpp"

namespace zero::optimizer {

enum class kind { adam, sgd, lion, adagrad, lamb };  // AdamW is adam with decoupled decay

// As configurations spell them; checkpoints write the first name of a kind in lower case.
inline constexpr std::pair<std::string_view, kind> types[] = {
    {"Adam", kind::adam}, {"AdamW", kind::adam},       {"SGD", kind::sgd},
    {"Lion", kind::lion}, {"Adagrad", kind::adagrad}, {"Lamb", kind::lamb},
};

// One group's numbers for one update, in double; kernels round them to the state type once, where used.
struct hyper {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
    double momentum = 0;               // SGD
    bool nesterov = false;             // SGD
    bool decoupled = true;             // AdamW-style decay (adam_w_mode)
    bool bias_correction = true;
    double max_coeff = 10, min_coeff = 0.01;  // LAMB
    double lower = -__builtin_huge_val(), upper = __builtin_huge_val();  // clamp after the update
};

// Names of the vectors kept per element, in the order of `update_range::states`: Adam and LAMB exp_avg, exp_avg_sq;
// Lion exp_avg; SGD momentum (none when momentum is 0); Adagrad sum.
std::vector<std::string> state_names(kind which, double momentum);

// A contiguous range of elements. `value` is the master: of sum type for fp32/fp64 the parameter itself.
struct update_range {
    dtype value_type = dtype::f32;     // type of the parameter; sum_type(value_type) is the type of everything but copy16
    void* value = nullptr;             // parameter (fp32, fp64) or fp32 master (16-bit)
    void* copy16 = nullptr;            // 16-bit parameter, written from the new master in the same pass; null otherwise
    const void* gradient = nullptr;    // reduced, divided
    std::array<void*, 2> states{};
    std::int64_t count = 0;
};

// One fused pass: g = gradient * clip_factor (skipped when 1); update; clamp; 16-bit copy. `step` is the number of this
// update, from 1. Not for LAMB, whose tensors need their norms first.
void update(kind which, const hyper& numbers, double clip_factor, std::int64_t step, const update_range& part);

// LAMB in two passes (You et al., 2020, algorithm 2): first the moments and the direction r, written over the gradient
// (which is given up), then value -= lr * trust * r.
void lamb_direction(const hyper& numbers, double clip_factor, std::int64_t step, const update_range& part, void* direction);
void lamb_apply(const hyper& numbers, double trust, const update_range& part, const void* direction);
double lamb_trust(const hyper& numbers, double value_norm, double direction_norm) noexcept;

// factor = min(1, clip / (norm + 1e-6)); 1 when clip is 0 (off). PyTorch's clip_grad_norm_ has the same 1e-6.
double clip_factor(double clip, double norm) noexcept;

}  // namespace zero::optimizer
