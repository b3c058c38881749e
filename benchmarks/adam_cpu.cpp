// AdamW on one core against the roof of its own mix: a plain loop that reads and writes the same streams (four read,
// three written, and the 16-bit copy) and computes next to nothing. Same buffers, same run, taking turns. In the caches
// the arithmetic is the limit: one IEEE square root and one IEEE divide per element, measured alone in the nearest
// cache. "of bound" is against the slower of the two limits. Options: --json, --rounds N (9), --smallest MiB (1),
// --largest MiB (256) of parameters.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

#include "optimizer/optimizer.hpp"
#include "support/measure.hpp"
#include "tensor/vector.hpp"

namespace {

using zero::dtype;

#if defined(__x86_64__)
#define ZERO_ROOF __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ZERO_ROOF
#endif

#define ZERO_ROOF_LOOP(name, type)                                                                            \
    ZERO_ROOF void name(type* __restrict p, type* __restrict m, type* __restrict v, const type* __restrict g, \
                        long count) {                                                                         \
        for (long i = 0; i < count; ++i) {                                                                    \
            p[i] = p[i] * type(0.5) + g[i];                                                                   \
            m[i] = m[i] * type(0.5) + g[i];                                                                   \
            v[i] = v[i] * type(0.5) + g[i];                                                                   \
        }                                                                                                     \
    }
ZERO_ROOF_LOOP(roof_single, float)
ZERO_ROOF_LOOP(roof_double, double)

ZERO_ROOF void roof_mixed(float* __restrict p, float* __restrict m, float* __restrict v, const float* __restrict g,
                          std::uint16_t* __restrict copy, long count) {
    for (long i = 0; i < count; ++i) {
        const float x = p[i] * 0.5f + g[i];
        p[i] = x;
        m[i] = m[i] * 0.5f + g[i];
        v[i] = v[i] * 0.5f + g[i];
        copy[i] = static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, x) >> 16);
    }
}

#define ZERO_ARITHMETIC_LOOP(name, type, root)                                                                \
    ZERO_ROOF void name(type* __restrict x, const type* __restrict v, const type* __restrict g, long count) { \
        for (long i = 0; i < count; ++i) x[i] = g[i] / (root(v[i]) + type(1e-8));                             \
    }
ZERO_ARITHMETIC_LOOP(arithmetic_single, float, __builtin_sqrtf)
ZERO_ARITHMETIC_LOOP(arithmetic_double, double, __builtin_sqrt)

// Starts are staggered so that equal offsets of two streams do not fall on the same cache sets.
class stream {
public:
    stream(std::size_t bytes, int number)
        : memory_(std::aligned_alloc(4096, (bytes + 16384 + 4095) / 4096 * 4096)),
          at_(static_cast<char*>(memory_.get()) + 1088 * number) {}
    template <typename T>
    T* as() const {
        return reinterpret_cast<T*>(at_);
    }

private:
    struct release {
        void operator()(void* memory) const { std::free(memory); }
    };
    std::unique_ptr<void, release> memory_;
    char* at_;
};

struct buffers {
    explicit buffers(std::size_t bytes)
        : value(bytes, 0), first(bytes, 1), second(bytes, 2), gradient(bytes, 3), copy(bytes / 2, 4) {}
    stream value, first, second, gradient, copy;
};

template <typename T>
void fill(const buffers& all, long count) {
    for (long i = 0; i < count; ++i) {
        all.gradient.as<T>()[i] = static_cast<T>(0.01 + 0.001 * static_cast<double>(i % 97));
        all.value.as<T>()[i] = all.first.as<T>()[i] = all.second.as<T>()[i] = all.gradient.as<T>()[i];
    }
    std::memset(all.copy.as<char>(), 0, static_cast<std::size_t>(count) * sizeof(T) / 2);
}

void roof(dtype type, const buffers& b, long count) {
    if (type == dtype::f64) {
        roof_double(b.value.as<double>(), b.first.as<double>(), b.second.as<double>(), b.gradient.as<double>(), count);
    } else if (type == dtype::f32) {
        roof_single(b.value.as<float>(), b.first.as<float>(), b.second.as<float>(), b.gradient.as<float>(), count);
    } else {
        roof_mixed(b.value.as<float>(), b.first.as<float>(), b.second.as<float>(), b.gradient.as<float>(),
                   b.copy.as<std::uint16_t>(), count);
    }
}

void arithmetic(dtype type, const buffers& b, long count) {
    constexpr long block = 512;
    for (long done = 0; done < count; done += block) {
        if (type == dtype::f64)
            arithmetic_double(b.value.as<double>(), b.second.as<double>(), b.gradient.as<double>(), block);
        else
            arithmetic_single(b.value.as<float>(), b.second.as<float>(), b.gradient.as<float>(), block);
    }
}

zero::optimizer::update_range range(dtype type, const buffers& b, long count) {
    zero::optimizer::update_range part;
    part.value_type = type;
    part.value = b.value.as<void>();
    part.copy16 = zero::is_16bit(type) ? b.copy.as<void>() : nullptr;
    part.gradient = b.gradient.as<void>();
    part.states = {b.first.as<void>(), b.second.as<void>()};
    part.count = count;
    return part;
}

void measure(benchmark::report& report, dtype type, const buffers& b, long mebibytes, int rounds) {
    const long master = zero::size_of(zero::sum_type(type)), count = (mebibytes << 20) / master;
    const long per_element = 7 * master + (zero::is_16bit(type) ? 2 : 0);
    if (type == dtype::f64)
        fill<double>(b, count);
    else
        fill<float>(b, count);
    zero::optimizer::hyper numbers;
    numbers.weight_decay = 0.01;
    const auto part = range(type, b, count);
    const long repeats = std::max(1L, 32 / mebibytes);
    std::int64_t step = 0;
    const auto update = [&] {
        ++step;
        for (long i = 0; i < repeats; ++i)
            zero::optimizer::update(zero::optimizer::kind::adam, numbers, 0.9, step, part);
    };
    const auto limit = [&] {
        for (long i = 0; i < repeats; ++i) roof(type, b, count);
    };
    const auto compute = [&] {
        for (long i = 0; i < repeats; ++i) arithmetic(type, b, count);
    };
    const auto times = benchmark::interleave(rounds, {update, limit, compute});
    const auto fraction = times.speedup(0, 1);
    const double of_arithmetic = times.speedup(0, 2).median;
    const double gigabytes = static_cast<double>(per_element * count * repeats) / 1e9;
    report.add({{"type", zero::is_16bit(type) ? std::string(zero::name(type)) + " + fp32" : zero::name(type)},
                {"MiB", mebibytes},
                {"bytes/element", per_element},
                {"GB/s", gigabytes / times.time(0).median},
                {"roof GB/s", gigabytes / times.time(1).median},
                {"arithmetic GB/s", gigabytes / times.time(2).median},
                {"of bound", std::max(fraction.median, of_arithmetic)},
                {"of roof", fraction.median},
                {"10 %", fraction.low},
                {"90 %", fraction.high},
                {"roof drift", times.drift(1)},
                {"note", times.disturbed(1) ? "disturbed: void" : ""}});
}

}  // namespace

int main(int count, char** texts) {
    const benchmark::arguments options(count, texts);
    const long smallest = options.number("--smallest", 1), largest = options.number("--largest", 256);
    const int rounds = static_cast<int>(options.number("--rounds", 9));
    benchmark::report report(std::string("adam_cpu: AdamW against the roof of its streams, one core, ") +
                             zero::vector::instruction_set());
    const buffers all(static_cast<std::size_t>(largest) << 20);
    for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16}) {
        for (long mebibytes = smallest; mebibytes <= largest; mebibytes *= 4)
            measure(report, type, all, mebibytes, rounds);
    }
    report.print(options.has("--json"));
}
