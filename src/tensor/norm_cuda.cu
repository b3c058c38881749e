// Squares and products on a device: divided, summed in atoms and tested in one pass over memory. The atoms are those of the host
// (vector_kernels.inc), and what they are added to is exact, so the total does not depend on which thread took which atom.
#include "device/kernel.hpp"
#include "tensor/division.hpp"
#include "tensor/elements.hpp"
#include "tensor/exact_window.hpp"
#include "tensor/vector_cuda.hpp"

namespace zero::vector {

namespace {

constexpr int atom_groups(std::size_t element_bytes) { return 64 / static_cast<int>(element_bytes) / cuda::group; }
constexpr int few_blocks = 2;  // per multiprocessor: each thread has 64 bytes under way, and fewer of them share the limbs

ZERO_DEVICE bool is_finite(double value) {
    return (__builtin_bit_cast(std::uint64_t, value) >> 52 & 0x7ffu) != 0x7ffu;
}

// What a thread knows of the sum.
struct taker {
    device_sum* shared;
    exact_window window{};
    bool finite = true;

    ZERO_DEVICE void spill(const exact_window& what) const {
        for (int i = 0; i < exact_window::pieces; ++i)
            if (what.piece(i) != 0) cuda::add_atomically(&shared->limbs[what.base / 32 + i], what.piece(i));
    }
    ZERO_DEVICE void add(double value) {
        window.add(value, [this](const exact_window& what) { spill(what); });
    }
    // One thread of each warp has the words of all of them, where they stand at the same place; else each has its own.
    ZERO_DEVICE void finish() {
        bool mine = window.base >= 0;
#ifdef __CUDA_ARCH__
        constexpr unsigned all = 0xffffffffu;
        const int highest = __reduce_max_sync(all, window.base);
        if (__all_sync(all, window.base == highest || window.base < 0)) {
            for (int distance = 16; distance > 0; distance /= 2) {
                window.add_words(__shfl_down_sync(all, window.low, distance), __shfl_down_sync(all, window.middle, distance),
                                 __shfl_down_sync(all, window.high, distance));
            }
            window.base = highest;
            mine = threadIdx.x % 32 == 0 && highest >= 0;
        }
#endif
        if (mine) spill(window);
        if (!finite) shared->not_finite = 1;  // all write the same
    }
};

// The sum of an atom by the tree (k, k+8), (k, k+4), (k, k+2), (k, k+1); term(k) gives its numbers in double.
template <typename T, typename Term>
ZERO_DEVICE double atom_sum(const Term& term) {
    double part[8];
    for (int k = 0; k < 8; ++k) {
        part[k] = term(k);
        if constexpr (sizeof(T) == 4) part[k] = part[k] + term(k + 8);
    }
    for (int k = 0; k < 4; ++k) part[k] = part[k] + part[k + 4];
    return (part[0] + part[2]) + (part[1] + part[3]);
}

template <division how>
ZERO_DEVICE float divided(float x, double divisor) {
    if constexpr (how == division::multiply) return x * static_cast<float>(divisor);
    else if constexpr (how == division::divide) return x / static_cast<float>(divisor);
    else if constexpr (how == division::divide_wide) return static_cast<float>(static_cast<double>(x) / divisor);
    else return x;
}
template <division how>
ZERO_DEVICE double divided(double x, double divisor) {
    if constexpr (how == division::multiply) return x * divisor;
    else if constexpr (how == division::none) return x;
    else return x / divisor;
}

template <typename T>
struct atom {
    static constexpr int groups = atom_groups(sizeof(T)), size = groups * cuda::group;
    T at[groups][cuda::group];

    ZERO_DEVICE static int elements(std::int64_t left, int g) {
        const std::int64_t n = left - g * cuda::group;
        return n < 0 ? 0 : n < cuda::group ? static_cast<int>(n) : cuda::group;
    }
    ZERO_DEVICE void load(const T* from, std::int64_t left, bool packs) {
        for (int g = 0; g < groups; ++g) cuda::load(at[g], from + g * cuda::group, elements(left, g), packs && left >= size);
    }
    ZERO_DEVICE void store(T* to, std::int64_t left, bool packs) const {
        for (int g = 0; g < groups; ++g) cuda::store(to + g * cuda::group, at[g], elements(left, g), packs && left >= size);
    }
    ZERO_DEVICE double wide(int k) const { return static_cast<double>(at[k / cuda::group][k % cuda::group]); }
};

template <typename T, division how>
__global__ void squares_kernel(T* data, double divisor, std::int64_t count, bool packs, device_sum* into) {
    constexpr int size = atom<T>::size;
    taker sum{into};
    for (std::int64_t i = cuda::thread_number(); i * size < count; i += cuda::threads()) {
        atom<T> x;
        const std::int64_t left = count - i * size;
        x.load(data + i * size, left, packs);
        if constexpr (how != division::none) {
            for (auto& part : x.at)
                for (T& one : part) one = divided<how>(one, divisor);
            x.store(data + i * size, left, packs);
        }
        const double total = atom_sum<T>([&](int k) { return x.wide(k) * x.wide(k); });
        if (is_finite(total)) {
            sum.add(total);
            continue;
        }
        for (int k = 0; k < size && k < left; ++k) {  // one by one, as on the host, from memory: x stays in registers
            const double wide = static_cast<double>(data[i * size + k]), square = wide * wide;
            sum.finite = sum.finite && is_finite(wide);
            if (!is_finite(wide)) continue;
            if (is_finite(square)) sum.add(square);
            for (int half = 0; !is_finite(square) && half < 2; ++half) sum.add(0x1p1023);  // beyond the range of double
        }
    }
    sum.finish();
}

template <typename T>
__global__ void products_kernel(const T* a, const T* b, std::int64_t count, bool packs, device_sum* into) {
    constexpr int size = atom<T>::size;
    taker sum{into};
    for (std::int64_t i = cuda::thread_number(); i * size < count; i += cuda::threads()) {
        atom<T> x, y;
        const std::int64_t left = count - i * size;
        x.load(a + i * size, left, packs);
        y.load(b + i * size, left, packs);
        const double total = atom_sum<T>([&](int k) { return x.wide(k) * y.wide(k); });
        if (is_finite(total)) {
            sum.add(total);
            continue;
        }
        for (int k = 0; k < size && k < left; ++k) {
            const double product = static_cast<double>(a[i * size + k]) * static_cast<double>(b[i * size + k]);
            if (is_finite(product)) sum.add(product);
            else sum.finite = false;
        }
    }
    sum.finish();
}

template <typename T>
void squares_of(const cuda::queue& on, T* data, double divisor, std::int64_t count, device_sum* squares) {
    double number = 1;
    const division how = how_to_divide<T>(divisor, number);
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    auto memory = cuda::touches().updates(squares, sizeof(device_sum));
    if (how == division::none) memory.reads(data, bytes);
    else memory.updates(data, bytes);
    const auto run = [&](void (*kernel)(T*, double, std::int64_t, bool, device_sum*)) {
        cuda::launch("divide_and_norm", on, (count + atom<T>::size - 1) / atom<T>::size, few_blocks, kernel, memory, data, number, count,
                     cuda::in_packs(data), squares);
    };
    switch (how) {
        case division::none: return run(squares_kernel<T, division::none>);
        case division::multiply: return run(squares_kernel<T, division::multiply>);
        case division::divide: return run(squares_kernel<T, division::divide>);
        default: return run(squares_kernel<T, division::divide_wide>);
    }
}

}  // namespace

void divide_and_norm(const cuda::queue& on, dtype type, void* data, double divisor, std::int64_t count, device_sum* squares) {
    with_sum(type, [&]<typename T>() { squares_of(on, static_cast<T*>(data), divisor, count, squares); });
}

void dot(const cuda::queue& on, dtype type, const void* a, const void* b, std::int64_t count, device_sum* products) {
    const std::int64_t bytes = count * size_of(type);
    const auto memory = cuda::touches().reads(a, bytes).reads(b, bytes).updates(products, sizeof(device_sum));
    with_sum(type, [&]<typename T>() {
        const auto *left = static_cast<const T*>(a), *right = static_cast<const T*>(b);
        cuda::launch("dot", on, (count + atom<T>::size - 1) / atom<T>::size, few_blocks, products_kernel<T>, memory, left, right, count,
                     cuda::in_packs(left) && cuda::in_packs(right), products);
    });
}

}  // namespace zero::vector
