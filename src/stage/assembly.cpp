// Memory and form of what is being built up. See assembly.hpp.
#include "stage/assembly.hpp"

#include <algorithm>
#include <array>

#include "tensor/stream_copy.hpp"

namespace zero::stage {

namespace {

constexpr std::int64_t short_width = 2;

}  // namespace

assembly::assembly(const context& all, storage& memory, holds how) : all_(all), memory_(memory), how_(how) {
    places_.resize(static_cast<std::size_t>(all.buckets()));
    std::int64_t largest = 0;
    int trainable = 0;
    for (int b = 0; b < all.buckets(); ++b) {
        const auto& bucket = all.bucket(b);
        if (!bucket.trainable) continue;
        ++trainable;
        largest = std::max(largest, bucket.padded * size_of(sum_type(bucket.type)));
        place_of(b).short_at = room_for_short(b);
    }
    if (how_ == holds::whole_sums) return;
    for (int i = 0; i < std::min(ring_size, trainable); ++i) {
        ring_.push_back(visible_buffer(all, largest));
        free_.push_back(&ring_.back());
    }
}

// Sums arrive in the sum type in the own slice; where that lies in the same memory, the short form needs half of the
// memory beside it, in one piece. The middle one of an odd number of ranks has no such half.
std::int64_t assembly::room_for_short(int bucket) const {
    const auto& b = all_.bucket(bucket);
    if (!is_16bit(b.type) || !all_.work.on_host() || all_.alone() || all_.how.reproducible || !all_.how.communication_type.empty()) return -1;
    if (how_ == holds::ring) return 0;
    const auto own = all_.own_slice(bucket);
    if (own.first * 2 >= b.padded) return 0;
    return (own.first + own.count) * 2 <= b.padded ? b.padded * short_width : -1;
}

void assembly::begin(bool one_micro_step) {
    short_forms_ = one_micro_step || how_ == holds::ring;  // sums of several micro-steps are wide sooner or later
    for (auto& p : places_) p.open = p.staging != nullptr;
}

void assembly::open(int bucket) {
    auto& p = place_of(bucket);
    if (p.open) return;
    if (how_ == holds::ring) {
        if (free_.empty()) {  // buckets came out of order
            ring_.push_back(visible_buffer(all_, ring_.front().bytes()));
            free_.push_back(&ring_.back());
            all_.logger.once(log_level::info, "gradients are handed over out of the usual order: more staging buckets are kept");
        }
        p.staging = free_.back();
        free_.pop_back();
    }
    p.open = true;
    const auto& b = all_.bucket(bucket);
    p.form = short_forms_ && p.short_at >= 0 ? b.type : sum_type(b.type);
    clear_gaps(bucket);
}

void assembly::close(int bucket) {
    auto& p = place_of(bucket);
    if (p.staging != nullptr) free_.push_back(p.staging);
    p.staging = nullptr;
    p.open = false;
}

std::byte* assembly::base(int bucket) const {
    const auto& p = place_of(bucket);
    std::byte* memory = p.staging != nullptr ? p.staging->data() : memory_.gradients(bucket);
    return is_short(bucket) ? memory + p.short_at : memory;
}

std::byte* assembly::at(int tensor) const {
    const auto& seat = all_.space.where(tensor);
    return base(seat.bucket) + seat.offset * size_of(form(seat.bucket));
}

// Small pieces of a large bucket are on their way out of the caches when they are wanted; large pieces are cleared past the
// caches by memset itself.
void assembly::clear(int tensor) {
    constexpr std::int64_t large = 1 << 20;
    const int bucket = all_.space.where(tensor).bucket;
    const std::int64_t width = size_of(form(bucket)), bytes = all_.tensors.at(tensor).count * width;
    all_.work.clear(at(tensor), bytes, bytes < large && all_.bucket(bucket).padded * width >= longer_than_caches);
}

void assembly::clear_gaps(int bucket) {
    const auto& b = all_.bucket(bucket);
    const std::int64_t width = size_of(form(bucket));
    std::byte* start = base(bucket);
    std::int64_t end = 0;
    for (int id : b.tensors) {
        const std::int64_t next = all_.space.where(id).offset;
        all_.work.clear(start + end * width, (next - end) * width);
        end = next + all_.tensors.at(id).count;
    }
    all_.work.clear(start + end * width, (b.padded - end) * width);
}

// The wide form overlaps the short one: from the far end towards it, so that nothing is overwritten before it was read.
void assembly::widen(int bucket) {
    constexpr std::int64_t tile = 2048;
    std::array<std::uint16_t, tile> aside;
    const auto& b = all_.bucket(bucket);
    const std::byte* narrow = base(bucket);
    auto& p = place_of(bucket);
    p.form = sum_type(b.type);
    std::byte* wide = base(bucket);
    const std::int64_t tiles = (b.padded + tile - 1) / tile;
    for (std::int64_t k = 0; k < tiles; ++k) {
        const std::int64_t first = (p.short_at == 0 ? tiles - 1 - k : k) * tile, n = std::min(tile, b.padded - first);
        all_.work.copy(aside.data(), narrow + first * short_width, n * short_width);
        all_.work.convert(p.form, wide + first * size_of(p.form), b.type, aside.data(), n);
    }
}

}  // namespace zero::stage
