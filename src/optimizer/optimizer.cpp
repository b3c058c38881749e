// Which loop fits this optimizer, these types and this processor. Not here: hyper-parameters in the state type (rules.hpp), the
// formulas (adam.hpp and its siblings) and the loops (kernels_host.inc).
#include "optimizer/optimizer.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "optimizer/kernels_host.hpp"
#include "optimizer/rules.hpp"
#include "tensor/instruction_set.hpp"

namespace zero::optimizer {

namespace {

const kernels& loops() noexcept {
    const instruction_set chosen = chosen_instruction_set();
    if (chosen == instruction_set::avx512) return *avx512_kernels();
    return chosen == instruction_set::avx2 ? *avx2_kernels() : *baseline_kernels();
}

storage storage_of(const update_range& part) {
    require_parameters(part.value_type);
    if (part.value_type == dtype::f64) return storage::f64;
    if (!is_16bit(part.value_type) || part.copy16 == nullptr) return storage::f32;
    return part.value_type == dtype::bf16 ? storage::f32_and_bf16 : storage::f32_and_f16;
}

streams streams_of(const hyper& numbers, double clip, const update_range& part) {
    return {part.value, part.copy16,   part.gradient, {part.states[0], part.states[1]}, nullptr, part.count,
            clip,       numbers.lower, numbers.upper};
}

// The loop of a rule that was made for the type of the masters.
template <typename Rule>
void sweep(rule which, const Rule& made, const hyper& numbers, double clip, const update_range& part) {
    require_states(part, made.states);
    loops().update[static_cast<int>(which)][static_cast<int>(storage_of(part))](&made, streams_of(numbers, clip, part));
}

}  // namespace

void require_states(const update_range& part, int needed) {
    for (int k = 0; k < needed; ++k)
        require(part.states[static_cast<std::size_t>(k)] != nullptr, code::internal, "optimizer: state {} is missing", k);
}

void require_one_pass(kind which) {
    require(which != kind::lamb, code::internal, "optimizer: LAMB is applied in two passes, lamb_direction and lamb_apply");
}

void require_parameters(dtype type) {
    require(is_parameter_type(type), code::internal, "optimizer: {} is no type of a parameter", name(type));
}

std::vector<std::string> state_names(kind which, double momentum) {
    switch (which) {
        case kind::adam:
        case kind::lamb:
            return {"exp_avg", "exp_avg_sq"};
        case kind::lion:
            return {"exp_avg"};
        case kind::sgd:
            return momentum == 0 ? std::vector<std::string>{} : std::vector<std::string>{"momentum"};
        case kind::adagrad:
            return {"sum"};
    }
    return {};
}

void update(kind which, const hyper& numbers, double clip_factor, std::int64_t step, const update_range& part) {
    if (part.count == 0) return;
    require_one_pass(which);
    const auto run = [&](rule named, const auto& made) { sweep(named, made, numbers, clip_factor, part); };
    if (storage_of(part) == storage::f64) with_rule<double>(which, numbers, step, run);
    else with_rule<float>(which, numbers, step, run);
}

void lamb_direction(const hyper& numbers, double clip_factor, std::int64_t step, const update_range& part,
                    void* direction) {
    if (part.count == 0) return;
    require_states(part, 2);
    streams all = streams_of(numbers, clip_factor, part);
    all.direction = direction;
    if (storage_of(part) == storage::f64) {
        const auto made = lamb_direction_rule<double>::from(numbers, step);
        loops().lamb_direction[1](&made, all);
    } else {
        const auto made = lamb_direction_rule<float>::from(numbers, step);
        loops().lamb_direction[0](&made, all);
    }
}

void lamb_apply(const hyper& numbers, double trust, const update_range& part, const void* direction) {
    if (part.count == 0) return;
    update_range with_direction = part;
    with_direction.gradient = direction;
    if (storage_of(part) == storage::f64)
        sweep(rule::lamb_apply, lamb_apply_rule<double>::from(numbers, trust), numbers, 1, with_direction);
    else
        sweep(rule::lamb_apply, lamb_apply_rule<float>::from(numbers, trust), numbers, 1, with_direction);
}

double lamb_trust(const hyper& numbers, double value_norm, double direction_norm) noexcept {
    if (value_norm == 0 || direction_norm == 0) return 1;
    return std::min(std::max(value_norm / direction_norm, numbers.min_coeff), numbers.max_coeff);
}

}  // namespace zero::optimizer
