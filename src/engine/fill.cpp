// zero_fill: constant or random values from a counter-based generator, so that no rank ever needs the whole tensor and
// the values depend on seed, name and element alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/error.hpp"
#include "engine/run.hpp"
#include "engine/turn.hpp"
#include "tensor/vector.hpp"

namespace zero {

namespace {

// splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): its finalizer as a hash.
std::uint64_t mixed(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

double unit(std::uint64_t key, std::uint64_t counter) noexcept {  // [0, 1), 53 bits
    return static_cast<double>(mixed(key ^ mixed(counter)) >> 11) * 0x1p-53;
}

enum class fill_kind { constant, uniform, normal };

double element(fill_kind kind, double a, double b, std::uint64_t key, std::int64_t index) noexcept {
    const auto i = static_cast<std::uint64_t>(index);
    if (kind == fill_kind::constant) return a;
    if (kind == fill_kind::uniform) return a + (b - a) * unit(key, i);
    const double radius = std::sqrt(-2 * std::log(1 - unit(key, 2 * i)));  // Box and Muller, 1958
    return a + b * radius * std::cos(2 * std::numbers::pi * unit(key, 2 * i + 1));
}

}  // namespace

void engine::fill(int id, const std::string& kind, double a, double b, std::uint64_t seed) {
    std::int64_t bits[2];
    std::memcpy(bits, &a, sizeof a);
    std::memcpy(bits + 1, &b, sizeof b);
    fill_kind which = fill_kind::constant;
    std::int64_t open = 0;
    buffer aside;  // for a device
    agreement_->enter(calls::fill(digest_of({id, bits[0], bits[1], static_cast<std::int64_t>(seed)}, kind)), [&] {
        checked(id, "zero_fill");
        if (kind == "uniform") which = fill_kind::uniform;
        else if (kind == "normal") which = fill_kind::normal;
        else require(kind == "constant", code::argument, "zero_fill: kind '{}' is not constant, uniform or normal", kind);
        require(std::isfinite(a) && (which == fill_kind::constant || std::isfinite(b)), code::argument, "zero_fill: a and b must be finite");
        require(which != fill_kind::uniform || a <= b, code::argument, "zero_fill: uniform values in [{}, {}) are none: give the smaller bound first", a, b);
        require(which != fill_kind::normal || b >= 0, code::argument, "zero_fill: the deviation {} is negative", b);
        open = stage_->copies().any_open() ? 1 : 0;
        if (!work_->on_host()) aside = buffer(ledger_, purpose::communication, 1 << 20);
    }, {&open, 1});
    const turn order(*this);
    const auto& t = registry_.at(id);
    const auto& seat = layout_.where(id);
    auto& memory = stage_->memory();
    const std::uint64_t key = mixed(seed ^ digest(t.name));
    const auto write = [&](dtype type, std::byte* to, std::int64_t begin, std::int64_t count) {  // into host memory
        std::array<double, 512> tile;
        for (std::int64_t done = 0; done < count; done += static_cast<std::int64_t>(tile.size())) {
            const std::int64_t n = std::min(count - done, static_cast<std::int64_t>(tile.size()));
            for (std::int64_t i = 0; i < n; ++i) tile[static_cast<std::size_t>(i)] = element(which, a, b, key, begin + done + i);
            std::byte* place = to + done * size_of(type);
            if (is_16bit(t.type)) {  // as its fp32 master is rounded
                std::array<float, 512> single;
                vector::convert(dtype::f32, single.data(), dtype::f64, tile.data(), n);
                vector::convert(type, place, dtype::f32, single.data(), n);
            } else {
                vector::convert(type, place, dtype::f64, tile.data(), n);
            }
        }
    };
    const auto fill_range = [&](partition::range part, dtype type, auto&& address) {
        const std::int64_t first = std::max<std::int64_t>(0, part.first - seat.offset);
        const std::int64_t end = std::min(t.count, part.first + part.count - seat.offset);
        if (end <= first) return;
        if (work_->on_host()) return write(type, address(first), first, end - first);
        const std::int64_t room = aside.bytes() / size_of(type);
        for (std::int64_t at = first; at < end; at += room) {
            const std::int64_t n = std::min(room, end - at);
            write(type, aside.data(), at, n);
            work_->copy(address(at), aside.data(), n * size_of(type));
        }
    };
    before_renewal(open != 0, [&] {
        fill_range(memory.written_values(seat.bucket), t.type, [&](std::int64_t i) { return memory.value(id, i); });
        if (memory.has_master(seat.bucket))
            fill_range(memory.states_part(seat.bucket), dtype::f32, [&](std::int64_t i) { return memory.vector(id, "master", i); });
        ranks_->fence();
    });
    stage_->values_changed(open != 0);
}

}  // namespace zero
