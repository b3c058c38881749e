// The same calls on the host's processor and on a device's (of the emulation, or a real one), over equal memory; what they leave must be equal, to
// the bit, but for the payload of NaN, which differs between processors.
#pragma once
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "compute/processor.hpp"
#include "core/error.hpp"
#include "tensor/vector.hpp"

namespace both_processors {

using namespace zero;

constexpr dtype all_types[] = {dtype::f32, dtype::f64, dtype::bf16, dtype::f16};
constexpr dtype sum_types[] = {dtype::f32, dtype::f64};
constexpr std::int64_t counts[] = {0, 1, 3, 4, 7, 16, 33, 1000, 5003};
constexpr std::int64_t shifts[] = {0, 1, 3};  // elements by which a vector starts off its alignment

// Random doubles; `wild`: also what is rare: zeros of both signs, subnormals, infinities, NaN, the ends of ranges.
inline std::vector<double> numbers(std::int64_t count, unsigned seed, bool wild) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, 2);
    std::vector<double> made(static_cast<std::size_t>(count));
    for (auto& x : made) x = normal(random);
    constexpr double infinite = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    const double rare[] = {0.0, -0.0, 1e-42, -6e-8, 65519.9, 65520, -3e38, 4e38, 5e-324, 1e308, 1.0 + 0x1p-11, infinite, -infinite, nan};
    for (std::size_t i = seed % 3; wild && i < made.size(); i += 5) made[i] = rare[(i / 5) % std::size(rare)];
    return made;
}

struct processors {
    ledger book;
    crew alone{1};
    std::unique_ptr<compute::processor> host = compute::make_host(alone), device = compute::make_cuda(0, book);

    template <typename Call>
    void each(const Call& call) {
        call(*host);
        call(*device);
    }
};

// A vector in both memories, which starts `shift` elements off a multiple of 64 bytes and has room around it.
class twin {
public:
    twin(processors& of, dtype type, const std::vector<double>& values, std::int64_t shift = 0)
        : of_(of), type_(type), count_(static_cast<std::int64_t>(values.size())), shift_(shift), bytes_((count_ + shift + 16) * size_of(type)),
          host_(of.host->take(of.book, purpose::states, bytes_)), device_(of.device->take(of.book, purpose::states, bytes_)) {
        vector::convert(type, at(*of.host), dtype::f64, values.data(), count_);
        of.device->copy(device_.data(), host_.data(), bytes_);
    }
    std::byte* at(const compute::processor& which) const {
        return (which.on_host() ? host_ : device_).data() + shift_ * size_of(type_);
    }
    // Throughout, with the room around.
    bool equal() const {
        std::vector<std::byte> there(static_cast<std::size_t>(bytes_));
        of_.device->copy(there.data(), device_.data(), bytes_);
        for (std::int64_t first = 0; first < bytes_; first += size_of(type_)) {
            const auto width = static_cast<std::size_t>(size_of(type_));
            if (std::memcmp(host_.data() + first, there.data() + first, width) == 0) continue;
            double a = 0, b = 0;
            vector::convert(dtype::f64, &a, type_, host_.data() + first, 1);
            vector::convert(dtype::f64, &b, type_, there.data() + first, 1);
            if (std::isnan(a) && std::isnan(b)) continue;
            UNSCOPED_INFO("element " << first / size_of(type_) - shift_ << ": " << a << " on the host, " << b << " on the device");
            return false;
        }
        return true;
    }

private:
    processors& of_;
    dtype type_;
    std::int64_t count_, shift_, bytes_;
    buffer host_, device_;
};

inline bool equal(compute::totals a, compute::totals b) {
    a.squares.normalize();
    b.squares.normalize();
    return a.finite == b.finite && std::equal(a.squares.data().begin(), a.squares.data().end(), b.squares.data().begin());
}

}  // namespace both_processors
