// The verbs of vector.hpp over the kernels of the chosen instruction set: which loop fits these types, and how blocks
// of atoms enter an exact sum cheaply. Not here: the loops (vector_kernels.inc).
#include "tensor/vector.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "core/error.hpp"
#include "tensor/division.hpp"
#include "tensor/elements.hpp"
#include "tensor/stream_copy.hpp"
#include "tensor/vector_kernels.hpp"

namespace zero::vector {

const kernels* compiled_kernels(zero::instruction_set which) noexcept {
    if (which == zero::instruction_set::avx512) return avx512_kernels();
    return which == zero::instruction_set::avx2 ? avx2_kernels() : baseline_kernels();
}

int element_of(dtype type) {
    switch (type) {
        case dtype::f32: return element_f32;
        case dtype::f64: return element_f64;
        case dtype::bf16: return element_bf16;
        case dtype::f16: return element_f16;
        default: fail(code::internal, "vector: elements of {} cannot be computed with", name(type));
    }
}

void require_sum_type(dtype type) {
    require(type == dtype::f32 || type == dtype::f64, code::internal, "vector: sums are kept in fp32 or fp64, not {}", name(type));
}

namespace {

const kernels& loops() noexcept {
    return *compiled_kernels(chosen_instruction_set());
}

int sum_element_of(dtype type) {
    require_sum_type(type);
    return element_of(type);
}

const void* advance(const void* data, dtype type, std::int64_t elements) {
    return static_cast<const char*>(data) + elements * size_of(type);
}
void* advance(void* data, dtype type, std::int64_t elements) {
    return static_cast<char*>(data) + elements * size_of(type);
}

// --- ordered sums ---

bool all_of_type(const dtype* types, int ranks, dtype type) {
    return std::all_of(types, types + ranks, [&](dtype t) { return t == type; });
}

// Sums of any number of sources of any type, a block at a time: the block's sums stay in the nearest cache. The block
// is written when every source has been read, so the target may be a source.
void blocked_sum(dtype sum_type, void* target, bool add, const void* const* sources, const dtype* types, int ranks,
                 std::int64_t count) {
    constexpr std::int64_t block = 1024;
    alignas(64) double room[block];
    const kernels& run = loops();
    const int sum = sum_element_of(sum_type);
    for (std::int64_t first = 0; first < count; first += block) {
        const std::int64_t part = std::min(block, count - first);
        run.assign[sum][element_of(types[0])](room, advance(sources[0], types[0], first), 1, part);
        for (int k = 1; k < ranks; ++k)
            run.add[sum][element_of(types[k])](room, advance(sources[k], types[k], first), 1, part);
        void* to = advance(target, sum_type, first);
        if (add)
            run.add[sum][sum](to, room, 1, part);
        else
            std::memcpy(to, room, static_cast<std::size_t>(part * size_of(sum_type)));
    }
}

// --- exact sums of atoms ---

struct atom_block {
    alignas(64) double atoms[block_atoms];
};

double power_of_two(int exponent) noexcept {  // of a normal number
    return __builtin_bit_cast(double, static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// All atoms are finite. Their largest being below 2^(e+1), two grids of spacing 2^(e-40) and 2^(e-82) take 83 bits of
// each atom; 512 multiples of a grid below 2^(e+1) add without rounding (41 + 9 bits). What is finer stays as a rest
// and goes round again, so nothing is lost however far the atoms lie apart.
void fold_atoms(const kernels& run, double* atoms, std::int64_t count, double largest, exact_sum& sum) {
    static_assert(block_atoms <= 512, "41 bits of an atom and 9 of the count leave room below 53");
    while (largest > 0) {
        const int exponent = std::ilogb(largest);
        if (exponent > 1000 || exponent < -900) {  // the grids' names would leave the range of double
            for (std::int64_t i = 0; i < count; ++i)
                if (atoms[i] != 0) sum.add(atoms[i]);
            return;
        }
        double sums[2];
        largest = run.split(atoms, count, power_of_two(exponent - 40 + 52) * 1.5,
                            power_of_two(exponent - 82 + 52) * 1.5, sums);
        sum.add(sums[0]);
        sum.add(sums[1]);
    }
}

// Stands for a square or product beyond the range of double, so that value() is infinite too.
void add_overflow(exact_sum& sum) {
    constexpr double half = 0x1p1023;
    sum.add(half);
    sum.add(half);
}

// The slow way through one atom whose sum is not finite. term(i) gives the terms and says whether they may enter.
template <typename Term>
bool add_terms_one_by_one(std::int64_t count, exact_sum& sum, Term term) {
    bool finite = true;
    for (std::int64_t i = 0; i < count; ++i) finite = term(i, sum) && finite;
    return finite;
}

// A block with an atom that is not finite: good atoms enter as they are, the others term by term.
template <typename Term>
bool add_poisoned_block(const double* atoms, std::int64_t count, std::int64_t atom_size, exact_sum& sum, Term term) {
    bool finite = true;
    for (std::int64_t first = 0; first < count; first += atom_size) {
        const double atom = atoms[first / atom_size];
        if (std::isfinite(atom)) {
            sum.add(atom);
        } else {
            const auto shifted = [&](std::int64_t i, exact_sum& to) { return term(first + i, to); };
            finite = add_terms_one_by_one(std::min(atom_size, count - first), sum, shifted) && finite;
        }
    }
    return finite;
}

template <typename T>
bool add_square(T element, exact_sum& sum) {
    const double wide = static_cast<double>(element);
    if (!std::isfinite(wide)) return false;
    if (std::isfinite(wide * wide))
        sum.add(wide * wide);
    else
        add_overflow(sum);
    return true;
}

template <typename T>
bool add_product(T a, T b, exact_sum& sum) {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    if (!std::isfinite(product)) return false;
    sum.add(product);
    return true;
}

template <typename T>
bool divide_and_norm_of(T* data, double divisor, std::int64_t count, exact_sum& squares) {
    constexpr std::int64_t atom_size = atom(sizeof(T) == 8 ? dtype::f64 : dtype::f32), block = block_atoms * atom_size;
    const kernels& run = loops();
    double number = 1;
    const division how = how_to_divide<T>(divisor, number);
    const auto square = run.squares[sizeof(T) == 8 ? element_f64 : element_f32][static_cast<int>(how)];
    atom_block room;
    bool finite = true;
    for (std::int64_t first = 0; first < count; first += block) {
        const std::int64_t part = std::min(block, count - first);
        T* from = data + first;
        const double largest = square(from, number, part, room.atoms);
        if (std::isfinite(largest)) {
            fold_atoms(run, room.atoms, (part + atom_size - 1) / atom_size, largest, squares);
        } else {
            finite = add_poisoned_block(room.atoms, part, atom_size, squares,
                                        [&](std::int64_t i, exact_sum& sum) { return add_square(from[i], sum); }) &&
                     finite;
        }
    }
    return finite;
}

template <typename T>
bool dot_of(const T* a, const T* b, std::int64_t count, exact_sum& products) {
    constexpr std::int64_t atom_size = atom(sizeof(T) == 8 ? dtype::f64 : dtype::f32), block = block_atoms * atom_size;
    const kernels& run = loops();
    const auto multiply = run.products[sizeof(T) == 8 ? element_f64 : element_f32];
    atom_block room;
    bool finite = true;
    for (std::int64_t first = 0; first < count; first += block) {
        const std::int64_t part = std::min(block, count - first);
        const T *left = a + first, *right = b + first;
        const double largest = multiply(left, right, part, room.atoms);
        if (std::isfinite(largest)) {
            fold_atoms(run, room.atoms, (part + atom_size - 1) / atom_size, largest, products);
        } else {
            finite = add_poisoned_block(
                         room.atoms, part, atom_size, products,
                         [&](std::int64_t i, exact_sum& sum) { return add_product(left[i], right[i], sum); }) &&
                     finite;
        }
    }
    return finite;
}

}  // namespace

void convert(dtype to_type, void* to, dtype from_type, const void* from, std::int64_t count) {
    const int target = element_of(to_type), source = element_of(from_type);
    if (count == 0) return;
    if (target == source)
        std::memmove(to, from, static_cast<std::size_t>(count * size_of(to_type)));
    else
        loops().convert[target][source](to, from, count);
}

void accumulate(dtype sum_type, void* sum, dtype from_type, const void* from, double factor, std::int64_t count,
                bool assign) {
    const std::int64_t bytes = count * size_of(sum_type);
    if (assign && factor == 1 && from_type == sum_type && bytes >= longer_than_caches) return stream_copy(sum, from, bytes);
    const kernels& run = loops();
    const auto& table = assign ? run.assign : run.add;
    table[sum_element_of(sum_type)][element_of(from_type)](sum, from, factor, count);
}

void ordered_sum(dtype sum_type, void* target, bool add, const void* const* sources, const dtype* types, int ranks,
                 std::int64_t count) {
    require(ranks >= 1, code::internal, "ordered_sum: no source");
    const int sum = sum_element_of(sum_type);
    const bool same = all_of_type(types, ranks, sum_type);
    if (same && ranks == 1 && add && target != sources[0]) {
        loops().add[sum][sum](target, sources[0], 1, count);
    } else if (same && ranks >= 2 && ranks <= kernels::most_same) {
        loops().same_sum[sum][ranks](target, add, sources, 0, count);
    } else if (sum_type == dtype::f32 && is_16bit(types[0]) && ranks <= kernels::most_same && all_of_type(types, ranks, types[0])) {
        loops().short_sum[element_of(types[0]) - element_bf16][ranks](target, add, sources, 0, count);
    } else if (ranks == 1 && !add && target != sources[0]) {
        convert(sum_type, target, types[0], sources[0], count);
    } else {
        blocked_sum(sum_type, target, add, sources, types, ranks, count);
    }
}

bool add_unrounded(double* sums, dtype from_type, const void* from, std::int64_t count) {
    return loops().add_unrounded[element_of(from_type)](sums, from, count);
}

bool exact_add(double* upper, double* lower, double* rest, dtype from_type, const void* from, std::int64_t count) {
    return loops().exact_add[element_of(from_type)](upper, lower, rest, from, count);
}

void round_sum(dtype sum_type, void* to, const double* upper, const double* lower, std::int64_t count) {
    loops().round_sum[sum_element_of(sum_type)](to, upper, lower, count);
}

bool divide_and_norm(dtype type, void* data, double divisor, std::int64_t count, exact_sum& squares) {
    if (sum_element_of(type) == element_f64)
        return divide_and_norm_of(static_cast<double*>(data), divisor, count, squares);
    return divide_and_norm_of(static_cast<float*>(data), divisor, count, squares);
}

void divide(dtype type, void* data, double divisor, std::int64_t count) {
    const auto element = sum_element_of(type);
    double number = 1;
    const division how = element == element_f64 ? how_to_divide<double>(divisor, number) : how_to_divide<float>(divisor, number);
    if (how != division::none) loops().divide[element][static_cast<int>(how)](data, number, count);
}

bool dot(dtype type, const void* a, const void* b, std::int64_t count, exact_sum& products) {
    if (sum_element_of(type) == element_f64)
        return dot_of(static_cast<const double*>(a), static_cast<const double*>(b), count, products);
    return dot_of(static_cast<const float*>(a), static_cast<const float*>(b), count, products);
}

const char* instruction_set() noexcept {
    return name(chosen_instruction_set());
}

bool use_instruction_set(const char* wanted) noexcept {
    for (const auto which :
         {zero::instruction_set::baseline, zero::instruction_set::avx2, zero::instruction_set::avx512}) {
        if (std::string_view(wanted) == name(which)) return choose_instruction_set(which);
    }
    return false;
}

}  // namespace zero::vector
