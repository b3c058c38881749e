// The update kernels: clip, update, limits and 16-bit copy of many ranges in one pass over memory, each element by one thread with
// the rules of the host's loops (kernels_host.inc). No fused multiply-add and IEEE division and root, so the bits are the same.
#include "device/kernel.hpp"
#include "optimizer/kernels_cuda.hpp"
#include "optimizer/rules.hpp"
#include "tensor/convert.hpp"
#include "tensor/elements.hpp"

namespace zero::optimizer {

namespace {

using cuda::group;

enum class copies { none, to_bf16, to_f16 };

// A range as a kernel takes it.
struct range {
    void* value;
    void* copy16;
    const void* gradient;
    void* states[2];
    std::int64_t count;
    std::int64_t first_group;  // groups of the ranges before it
    copies copy;
    bool packs;
};
template <int most>
struct ranges {
    range at[most];
    std::int64_t groups;
    std::int64_t number;  // no padding: bytes that nobody wrote may look like an address to the emulation

    ZERO_DEVICE const range& of(std::int64_t i) const {
        int low = 0;
        for (int high = static_cast<int>(number); high - low > 1;) {  // the last one that begins at or before group i
            const int middle = (low + high) / 2;
            if (at[middle].first_group <= i) low = middle;
            else high = middle;
        }
        return at[low];
    }
};

template <typename Copy, typename T>
ZERO_DEVICE void store_copy(void* to, std::int64_t first, const T (&value)[group], int n, bool packed) {
    Copy shorter[group];
    for (int k = 0; k < group; ++k) narrow(value[k], shorter[k]);
    cuda::store(static_cast<Copy*>(to) + first, shorter, n, packed);
}

template <typename Rule, typename T, int most>
__global__ void update_kernel(const Rule rule, const __grid_constant__ ranges<most> all, T clip, T lower, T upper) {
    for (std::int64_t i = cuda::thread_number(); i < all.groups; i += cuda::threads()) {
        const range& part = all.of(i);
        const std::int64_t in_part = i - part.first_group, first = in_part * group;
        const int n = cuda::size_of_group(in_part, part.count);
        const bool packed = part.packs && n == group;
        T x[group], g[group], a[group] = {}, b[group] = {};
        cuda::load(x, static_cast<const T*>(part.value) + first, n, packed);
        cuda::load(g, static_cast<const T*>(part.gradient) + first, n, packed);
        if constexpr (Rule::states > 0) cuda::load(a, static_cast<const T*>(part.states[0]) + first, n, packed);
        if constexpr (Rule::states > 1) cuda::load(b, static_cast<const T*>(part.states[1]) + first, n, packed);
        for (int k = 0; k < group; ++k) {
            rule(x[k], g[k] * clip, a[k], b[k]);
            x[k] = x[k] < lower ? lower : x[k];  // infinite limits change nothing, NaN passes
            x[k] = x[k] > upper ? upper : x[k];
        }
        cuda::store(static_cast<T*>(part.value) + first, x, n, packed);
        if constexpr (Rule::states > 0) cuda::store(static_cast<T*>(part.states[0]) + first, a, n, packed);
        if constexpr (Rule::states > 1) cuda::store(static_cast<T*>(part.states[1]) + first, b, n, packed);
        if (part.copy == copies::to_bf16) store_copy<bf16>(part.copy16, first, x, n, packed);
        if (part.copy == copies::to_f16) store_copy<f16>(part.copy16, first, x, n, packed);
    }
}

template <typename T>
__global__ void lamb_direction_kernel(const lamb_direction_rule<T> rule, const range part, T* direction, T clip) {
    for (std::int64_t i = cuda::thread_number(); i < cuda::groups_of(part.count); i += cuda::threads()) {
        const std::int64_t first = i * group;
        const int n = cuda::size_of_group(i, part.count);
        const bool packed = part.packs && n == group;
        T x[group], g[group], a[group], b[group], r[group];
        cuda::load(x, static_cast<const T*>(part.value) + first, n, packed);
        cuda::load(g, static_cast<const T*>(part.gradient) + first, n, packed);
        cuda::load(a, static_cast<const T*>(part.states[0]) + first, n, packed);
        cuda::load(b, static_cast<const T*>(part.states[1]) + first, n, packed);
        for (int k = 0; k < group; ++k) r[k] = rule(x[k], g[k] * clip, a[k], b[k]);
        cuda::store(static_cast<T*>(part.states[0]) + first, a, n, packed);
        cuda::store(static_cast<T*>(part.states[1]) + first, b, n, packed);
        cuda::store(direction + first, r, n, packed);
    }
}

copies copy_of(const update_range& part) {
    if (!is_16bit(part.value_type) || part.copy16 == nullptr) return copies::none;
    return part.value_type == dtype::bf16 ? copies::to_bf16 : copies::to_f16;
}

template <typename T>
range as_range(const update_range& part, int states) {
    range made = {part.value, part.copy16, part.gradient, {part.states[0], part.states[1]}, part.count, 0, copy_of(part), true};
    made.packs = cuda::in_packs(static_cast<const T*>(part.value)) && cuda::in_packs(static_cast<const T*>(part.gradient)) &&
                 (made.copy == copies::none || cuda::in_packs(static_cast<const bf16*>(part.copy16)));
    for (int k = 0; k < states; ++k) made.packs = made.packs && cuda::in_packs(static_cast<const T*>(made.states[k]));
    return made;
}

template <typename T>
void note(cuda::touches& memory, const range& part, int states) {
    const std::int64_t bytes = part.count * static_cast<std::int64_t>(sizeof(T));
    memory.updates(part.value, bytes).reads(part.gradient, bytes);
    for (int k = 0; k < states; ++k) memory.updates(part.states[k], bytes);
    if (part.copy != copies::none) memory.writes(part.copy16, part.count * size_of(dtype::bf16));
}

// Launches as often as `most` ranges are full; those with masters of type T.
template <int most, typename T, typename Rule>
void launch_update(const cuda::queue& on, const Rule& made, const hyper& numbers, double clip, std::span<const update_range> parts) {
    ranges<most> all = {};
    cuda::touches memory;
    const auto flush = [&] {
        cuda::launch("update", on, all.groups, cuda::usual_blocks, update_kernel<Rule, T, most>, memory, made, all, static_cast<T>(clip),
                     static_cast<T>(numbers.lower), static_cast<T>(numbers.upper));
        all.number = 0;
        all.groups = 0;
        memory = {};
    };
    for (const auto& part : parts) {
        if (part.count == 0 || size_of(sum_type(part.value_type)) != sizeof(T)) continue;
        require_states(part, Rule::states);
        range& next = all.at[all.number++];
        next = as_range<T>(part, Rule::states);
        next.first_group = all.groups;
        all.groups += cuda::groups_of(part.count);
        note<T>(memory, next, Rule::states);
        if (all.number == most) flush();
    }
    flush();
}

template <typename T>
void update_masters_of(const cuda::queue& on, kind which, const hyper& numbers, double clip, std::int64_t step,
                       std::span<const update_range> parts) {
    constexpr int many = 256;
    with_rule<T>(which, numbers, step, [&](rule, const auto& made) {
        if (parts.size() == 1) launch_update<1, T>(on, made, numbers, clip, parts);
        else launch_update<many, T>(on, made, numbers, clip, parts);
    });
}

}  // namespace

void update(const cuda::queue& on, kind which, const hyper& numbers, double clip_factor, std::int64_t step,
            std::span<const update_range> parts) {
    require_one_pass(which);
    for (const auto& part : parts) require_parameters(part.value_type);
    update_masters_of<float>(on, which, numbers, clip_factor, step, parts);
    update_masters_of<double>(on, which, numbers, clip_factor, step, parts);
}

void lamb_direction(const cuda::queue& on, const hyper& numbers, double clip_factor, std::int64_t step, const update_range& part,
                    void* direction) {
    if (part.count == 0) return;
    require_states(part, 2);
    vector::with_sum(sum_type(part.value_type), [&]<typename T>() {
        auto* to = static_cast<T*>(direction);
        range made = as_range<T>(part, 2);
        made.packs = made.packs && cuda::in_packs(to);
        const std::int64_t bytes = part.count * static_cast<std::int64_t>(sizeof(T));
        cuda::touches memory;
        memory.reads(part.value, bytes).reads(part.gradient, bytes).updates(part.states[0], bytes).updates(part.states[1], bytes).writes(to, bytes);
        cuda::launch("lamb_direction", on, cuda::groups_of(part.count), cuda::usual_blocks, lamb_direction_kernel<T>, memory,
                     lamb_direction_rule<T>::from(numbers, step), made, to, static_cast<T>(clip_factor));
    });
}

void lamb_apply(const cuda::queue& on, const hyper& numbers, double trust, const update_range& part, const void* direction) {
    update_range with_direction = part;
    with_direction.gradient = direction;
    vector::with_sum(sum_type(part.value_type), [&]<typename T>() {
        launch_update<1, T>(on, lamb_apply_rule<T>::from(numbers, trust), numbers, 1, std::span(&with_direction, 1));
    });
}

}  // namespace zero::optimizer
