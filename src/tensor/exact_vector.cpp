// Block by block by the fast loops; elements whose terms do not fit in two doubles one by one. See exact_vector.hpp.
#include "tensor/exact_vector.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "core/exact_sum.hpp"
#include "tensor/vector.hpp"

namespace zero {

namespace {

constexpr std::int64_t block = 256;  // elements; what a block needs stays in the nearest cache

const void* element_of(const void* data, dtype type, std::int64_t index) {
    return static_cast<const std::byte*>(data) + index * size_of(type);
}

double wide(const void* data, dtype type, std::int64_t index) {
    double value;
    vector::convert(dtype::f64, &value, type, element_of(data, type, index), 1);
    return value;
}

// The parts of the exact total, rounded once into `target`. Where some are infinite or NaN, these alone decide.
void round_total(dtype sum_type, void* target, std::span<const double> parts) {
    exact_sum total;
    double outside = 0, beyond = 0;
    for (const double part : parts) {
        if (std::isfinite(part)) total.add(part);
        else outside += part;
    }
    const bool finite = outside == 0;
    const double nearest = finite ? total.value() : outside;
    if (finite && sum_type == dtype::f32) {  // which side of `nearest` the total is on decides a tie between floats
        total.add(-nearest);
        beyond = total.value();
    }
    vector::round_sum(sum_type, target, &nearest, &beyond, 1);
}

// Starts sums with the first terms.
void begin(double* upper, double* lower, const void* terms, dtype type, std::int64_t count) {
    vector::convert(dtype::f64, upper, type, terms, count);
    std::fill_n(lower, count, 0.0);
}

bool all_zero(const double* data, std::int64_t count) {
    long long bits = 0;
    for (std::int64_t i = 0; i < count; ++i) bits |= __builtin_bit_cast(long long, data[i]) & 0x7fffffffffffffff;
    return bits == 0;
}

}  // namespace

namespace vector {

namespace {

// One block. Elements that do not fit in two doubles are done again, from all their terms.
void sum_block(dtype sum_type, void* target, const void* const* sources, const dtype* types, int ranks, std::int64_t first,
               std::int64_t count) {
    alignas(64) double upper[block], lower[block], rest[block], sums[block];
    std::array<bool, block> slow{};
    bool any_slow = false;
    begin(upper, lower, element_of(sources[0], types[0], first), types[0], count);
    for (int k = 1; k < ranks; ++k) {
        if (exact_add(upper, lower, rest, types[k], element_of(sources[k], types[k], first), count)) continue;
        any_slow = true;
        for (std::int64_t i = 0; i < count; ++i)
            if (rest[i] != 0) slow[static_cast<std::size_t>(i)] = true;  // also for NaN
    }
    round_sum(sum_type, sums, upper, lower, count);
    std::vector<double> terms(any_slow ? static_cast<std::size_t>(ranks) : 0);
    for (std::int64_t i = 0; any_slow && i < count; ++i) {
        if (!slow[static_cast<std::size_t>(i)]) continue;
        for (int k = 0; k < ranks; ++k) terms[static_cast<std::size_t>(k)] = wide(sources[k], types[k], first + i);
        round_total(sum_type, reinterpret_cast<std::byte*>(sums) + i * size_of(sum_type), terms);
    }
    std::memcpy(static_cast<std::byte*>(target) + first * size_of(sum_type), sums, static_cast<std::size_t>(count * size_of(sum_type)));
}

}  // namespace

// Of one or two terms the plain sum is the exact one rounded once: that is what a processor's addition is.
void order_free_sum(dtype sum_type, void* target, const void* const* sources, const dtype* types, int ranks, std::int64_t count) {
    if (ranks <= 2) return ordered_sum(sum_type, target, false, sources, types, ranks, count);
    for (std::int64_t first = 0; first < count; first += block)
        sum_block(sum_type, target, sources, types, ranks, first, std::min(block, count - first));
}

}  // namespace vector

std::vector<double*> exact_vector::further() {
    const std::lock_guard<std::mutex> lock(guard_);
    std::vector<double*> levels;
    for (const auto& level : further_) levels.push_back(level.get());
    return levels;
}

std::int64_t exact_vector::further_bytes() {
    return static_cast<std::int64_t>(further().size() * sizeof(double)) * count_;
}

exact_vector::exact_vector(double* upper, double* lower, std::int64_t count)
    : upper_(upper), lower_(lower), count_(count), has_lower_(static_cast<std::size_t>((count + block - 1) / block)) {
    for (auto& some : has_lower_) some.store(true, std::memory_order_relaxed);  // for all that is known
}

struct exact_vector::terms {
    const void* const* sources;
    const dtype* types;
    int number;
    std::int64_t first, count;  // of the elements of every source
    bool anew;
    int next() const noexcept { return anew ? 1 : 0; }  // the first one that is added to something
    const void* from(int k) const { return element_of(sources[k], types[k], first); }
};

void exact_vector::add(std::int64_t first, const void* const* sources, const dtype* types, int ranks, std::int64_t count, bool anew) {
    if (anew)
        for (double* level : further()) std::fill_n(level + first, count, 0.0);
    for (std::int64_t done = 0, n = 0; done < count; done += n) {
        const std::int64_t at = first + done;
        n = std::min(block - at % block, count - done);
        const terms these{sources, types, ranks, done, n, anew};
        if (!add_quickly(at, these)) add_carefully(at, these);
    }
}

// Where all sums fit in one double, which is the usual case, only that one is read and written; else two. Nothing is written
// before all have turned out to fit: false, when some need more.
bool exact_vector::add_quickly(std::int64_t at, const terms& these) {
    alignas(64) double upper[block], lower[block], rest[block];
    const std::int64_t n = these.count;
    auto& some = has_lower_[static_cast<std::size_t>(at / block)];
    const bool there = some.load(std::memory_order_relaxed), whole = n == block || (at % block == 0 && at + n == count_);
    const auto start = [&] {
        if (these.anew) vector::convert(dtype::f64, upper, these.types[0], these.from(0), n);
        else std::copy_n(upper_ + at, n, upper);
    };
    start();
    bool fit = !there;
    for (int k = these.next(); fit && k < these.number; ++k) fit = vector::add_unrounded(upper, these.types[k], these.from(k), n);
    if (!fit) {
        if (!there) start();
        if (there && !these.anew) std::copy_n(lower_ + at, n, lower);
        else std::fill_n(lower, n, 0.0);
        for (int k = these.next(); k < these.number; ++k)
            if (!vector::exact_add(upper, lower, rest, these.types[k], these.from(k), n)) return false;
        const bool zero = all_zero(lower, n);
        if (there || !zero) std::copy_n(lower, n, lower_ + at);
        if (!zero) some.store(true, std::memory_order_relaxed);
        else if (whole) some.store(false, std::memory_order_relaxed);
    }
    std::copy_n(upper, n, upper_ + at);
    return true;
}

// Elements that do not fit in two doubles one by one.
void exact_vector::add_carefully(std::int64_t at, const terms& these) {
    alignas(64) double upper_before[block], lower_before[block], rest[block];
    const std::int64_t n = these.count;
    double *upper = upper_ + at, *lower = lower_ + at;
    if (these.anew) begin(upper, lower, these.from(0), these.types[0], n);
    has_lower_[static_cast<std::size_t>(at / block)].store(true, std::memory_order_relaxed);
    for (int k = these.next(); k < these.number; ++k) {
        std::copy_n(upper, n, upper_before);
        std::copy_n(lower, n, lower_before);
        if (vector::exact_add(upper, lower, rest, these.types[k], these.from(k), n)) continue;
        for (std::int64_t i = 0; i < n; ++i) {
            if (rest[i] == 0) continue;  // not for NaN: a sum left the range of double on the way, or was outside
            upper[i] = upper_before[i];
            lower[i] = lower_before[i];
            add_slowly(at + i, wide(these.sources[k], these.types[k], these.first + i));
        }
    }
}

// The total in as few doubles as hold it, the largest first. What is infinite or NaN stays so.
void exact_vector::add_slowly(std::int64_t element, double term) {
    const std::lock_guard<std::mutex> lock(guard_);
    double &upper = upper_[element], &lower = lower_[element];
    if (!std::isfinite(upper) || !std::isfinite(term)) {
        upper += term;
        lower = 0;
        for (auto& level : further_) level[static_cast<std::size_t>(element)] = 0;
        return;
    }
    exact_sum total;
    for (const double part : {upper, lower, term}) total.add(part);
    for (const auto& level : further_) total.add(level[static_cast<std::size_t>(element)]);
    for (std::size_t k = 0;; ++k) {
        constexpr double most = std::numeric_limits<double>::max();
        const double part = std::clamp(total.value(), -most, most);
        if (k == further_.size() + 2) {
            if (part == 0) return;
            further_.push_back(std::make_unique<double[]>(static_cast<std::size_t>(count_)));
        }
        (k == 0 ? upper : k == 1 ? lower : further_[k - 2][static_cast<std::size_t>(element)]) = part;
        total.add(-part);
    }
}

void exact_vector::round(dtype sum_type, void* target, std::int64_t first, std::int64_t count) {
    alignas(64) const double none[block] = {};
    for (std::int64_t done = 0, n = 0; done < count; done += n) {
        const std::int64_t at = first + done;
        n = std::min(block - at % block, count - done);
        const bool some = has_lower_[static_cast<std::size_t>(at / block)].load(std::memory_order_relaxed);
        vector::round_sum(sum_type, static_cast<std::byte*>(target) + done * size_of(sum_type), upper_ + at, some ? lower_ + at : none, n);
    }
    const auto levels = further();
    std::vector<double> parts(levels.size() + 2);
    for (std::int64_t i = first; !levels.empty() && i < first + count; ++i) {
        if (std::all_of(levels.begin(), levels.end(), [i](const double* level) { return level[i] == 0; })) continue;
        parts[0] = upper_[i];
        parts[1] = lower_[i];
        for (std::size_t k = 0; k < levels.size(); ++k) parts[k + 2] = levels[k][i];
        round_total(sum_type, static_cast<std::byte*>(target) + (i - first) * size_of(sum_type), parts);
    }
}

}  // namespace zero
