// Conversion, accumulation and ordered sums on a device. Each element is computed by one thread as the host's loops compute it
// (vector_kernels.inc). Not here: norms and dot products (norm_cuda.cu).
#include "device/kernel.hpp"
#include "tensor/elements.hpp"
#include "tensor/vector_cuda.hpp"

namespace zero::vector {

namespace {

using cuda::group;
using cuda::usual_blocks;

template <typename To, typename From>
__global__ void convert_kernel(To* to, const From* from, std::int64_t count, bool packs) {
    for (std::int64_t i = cuda::thread_number(); i < cuda::groups_of(count); i += cuda::threads()) {
        const int n = cuda::size_of_group(i, count);
        From x[group];
        To y[group];
        cuda::load(x, from + i * group, n, packs && n == group);
        for (int k = 0; k < group; ++k) narrow(widen(x[k]), y[k]);
        cuda::store(to + i * group, y, n, packs && n == group);
    }
}

// How a factor enters, as in the host's loops: not at all, in the type of the element, or in double.
enum class multiply { not_at_all, single, wide };

template <typename Sum, typename From>
__global__ void accumulate_kernel(Sum* sum, const From* from, double factor, multiply how, std::int64_t count, bool assign, bool packs) {
    using wide = decltype(widen(From{}));
    for (std::int64_t i = cuda::thread_number(); i < cuda::groups_of(count); i += cuda::threads()) {
        const int n = cuda::size_of_group(i, count);
        const bool packed = packs && n == group;
        From x[group];
        Sum y[group] = {};
        cuda::load(x, from + i * group, n, packed);
        if (!assign) cuda::load(y, sum + i * group, n, packed);
        for (int k = 0; k < group; ++k) {
            const wide one = widen(x[k]);
            Sum product = static_cast<Sum>(one);
            if (how == multiply::single) product = static_cast<Sum>(one * static_cast<wide>(factor));
            if (how == multiply::wide) product = static_cast<Sum>(static_cast<double>(one) * factor);
            y[k] = assign ? product : y[k] + product;
        }
        cuda::store(sum + i * group, y, n, packed);
    }
}

template <typename Sum, typename T>
ZERO_DEVICE void load_widened(Sum (&to)[group], const void* from, std::int64_t first, int n, bool packed) {
    T x[group];
    cuda::load(x, static_cast<const T*>(from) + first, n, packed);
    for (int k = 0; k < group; ++k) to[k] = static_cast<Sum>(widen(x[k]));
}

template <int most>
struct sources_of_sum {
    const void* data[most];
    unsigned char types[most];
    int number;

    template <typename Sum>
    ZERO_DEVICE void load(Sum (&to)[group], int which, std::int64_t first, int n, bool packed) const {
        switch (types[which]) {
            case element_f32: return load_widened<Sum, float>(to, data[which], first, n, packed);
            case element_f64: return load_widened<Sum, double>(to, data[which], first, n, packed);
            case element_bf16: return load_widened<Sum, bf16>(to, data[which], first, n, packed);
            default: return load_widened<Sum, f16>(to, data[which], first, n, packed);
        }
    }
};

// The target may be a source: it is read, at the same place, before it is written.
template <typename Sum, int most>
__global__ void ordered_sum_kernel(Sum* target, bool add, const __grid_constant__ sources_of_sum<most> sources, std::int64_t count,
                                   bool packs) {
    for (std::int64_t i = cuda::thread_number(); i < cuda::groups_of(count); i += cuda::threads()) {
        const int n = cuda::size_of_group(i, count);
        const bool packed = packs && n == group;
        Sum sum[group], one[group];
        sources.load(sum, 0, i * group, n, packed);
        for (int which = 1; which < sources.number; ++which) {
            sources.load(one, which, i * group, n, packed);
            for (int k = 0; k < group; ++k) sum[k] = sum[k] + one[k];
        }
        if (add) {
            cuda::load(one, target + i * group, n, packed);
            for (int k = 0; k < group; ++k) sum[k] = one[k] + sum[k];
        }
        cuda::store(target + i * group, sum, n, packed);
    }
}

template <typename Sum, typename Narrow>
__global__ void round_through_kernel(Sum* data, std::int64_t count) {
    for (std::int64_t i = cuda::thread_number(); i < count; i += cuda::threads()) {
        Narrow shorter;
        narrow(widen(data[i]), shorter);
        narrow(widen(shorter), data[i]);
    }
}

template <int most, typename Sum>
void sum_of(const cuda::queue& on, Sum* target, bool add, const void* const* sources, const dtype* types, int ranks, std::int64_t count) {
    sources_of_sum<most> all = {};
    cuda::touches memory;
    bool packs = cuda::in_packs(target);
    all.number = ranks;
    for (int k = 0; k < ranks; ++k) {
        all.data[k] = sources[k];
        all.types[k] = static_cast<unsigned char>(element_of(types[k]));
        with_element(types[k], [&]<typename T>() { packs = packs && cuda::in_packs(static_cast<const T*>(sources[k])); });
        memory.reads(sources[k], count * size_of(types[k]));
    }
    memory.updates(target, count * static_cast<std::int64_t>(sizeof(Sum)));
    cuda::launch("ordered_sum", on, cuda::groups_of(count), usual_blocks, ordered_sum_kernel<Sum, most>, memory, target, add, all, count,
                 packs);
}

}  // namespace

void convert(const cuda::queue& on, dtype to_type, void* to, dtype from_type, const void* from, std::int64_t count) {
    if (count == 0 || (to_type == from_type && to == from)) return;
    const auto memory = cuda::touches().reads(from, count * size_of(from_type)).writes(to, count * size_of(to_type));
    with_element(to_type, [&]<typename To>() {
        with_element(from_type, [&]<typename From>() {
            auto* target = static_cast<To*>(to);
            const auto* source = static_cast<const From*>(from);
            cuda::launch("convert", on, cuda::groups_of(count), usual_blocks, convert_kernel<To, From>, memory, target, source, count,
                         cuda::in_packs(target) && cuda::in_packs(source));
        });
    });
}

void accumulate(const cuda::queue& on, dtype sum_type, void* sum, dtype from_type, const void* from, double factor, std::int64_t count,
                bool assign) {
    if (count == 0) return;
    auto memory = cuda::touches().reads(from, count * size_of(from_type));
    if (assign) memory.writes(sum, count * size_of(sum_type));
    else memory.updates(sum, count * size_of(sum_type));
    const bool single = sum_type == dtype::f32 && from_type != dtype::f64 && static_cast<double>(static_cast<float>(factor)) == factor;
    const multiply how = factor == 1 ? multiply::not_at_all : single ? multiply::single : multiply::wide;
    with_sum(sum_type, [&]<typename Sum>() {
        with_element(from_type, [&]<typename From>() {
            auto* target = static_cast<Sum*>(sum);
            const auto* source = static_cast<const From*>(from);
            cuda::launch("accumulate", on, cuda::groups_of(count), usual_blocks, accumulate_kernel<Sum, From>, memory, target, source, factor,
                         how, count, assign, cuda::in_packs(target) && cuda::in_packs(source));
        });
    });
}

void ordered_sum(const cuda::queue& on, dtype sum_type, void* target, bool add, const void* const* sources, const dtype* types, int ranks,
                 std::int64_t count) {
    if (count == 0) return;
    constexpr int usual = 16;  // short arguments for all that is not huge
    with_sum(sum_type, [&]<typename Sum>() {
        if (ranks <= usual) sum_of<usual>(on, static_cast<Sum*>(target), add, sources, types, ranks, count);
        else sum_of<most_sources>(on, static_cast<Sum*>(target), add, sources, types, ranks, count);
    });
}

void round_through(const cuda::queue& on, dtype shorter, dtype sum_type, void* data, std::int64_t count) {
    const auto memory = cuda::touches().updates(data, count * size_of(sum_type));
    with_sum(sum_type, [&]<typename Sum>() {
        with_element(shorter, [&]<typename Narrow>() {
            cuda::launch("round_through", on, count, usual_blocks, round_through_kernel<Sum, Narrow>, memory, static_cast<Sum*>(data), count);
        });
    });
}

}  // namespace zero::vector
