// Copies of what was there, in large pieces of memory; nothing for zeros.
#include "undo.hpp"

#include <algorithm>
#include <cstring>

#include "tensor/stream_copy.hpp"

namespace zero::checkpoint {
namespace {

constexpr std::int64_t piece_bytes = std::int64_t{64} << 20;

// Ends at the first tile with anything in it.
bool all_zeros(const std::byte* data, std::int64_t bytes) noexcept {
    constexpr std::int64_t words = 512, tile = words * 8;
    std::int64_t done = 0;
    for (; done + tile <= bytes; done += tile) {
        std::uint64_t any = 0;
        for (std::int64_t k = 0; k < words; ++k) {
            std::uint64_t word = 0;
            std::memcpy(&word, data + done + 8 * k, 8);
            any |= word;
        }
        if (any != 0) return false;
    }
    return std::all_of(data + done, data + bytes, [](std::byte one) { return one == std::byte{0}; });
}

}  // namespace

std::byte* undo::room_for(std::int64_t bytes) {
    if (pieces_.empty() || pieces_.back().bytes() - used_ < bytes) {
        pieces_.emplace_back(book_, purpose::checkpoint, std::max(bytes, std::min(piece_bytes, expected_)),
                             memory_kind::untouched);
        used_ = 0;
    }
    std::byte* const room = pieces_.back().data() + used_;
    used_ += bytes;
    return room;
}

void undo::keep(std::byte* place, std::int64_t bytes) {
    std::byte* copy = nullptr;
    if (!all_zeros(place, bytes)) {
        {
            const std::scoped_lock alone(guard_);
            copy = room_for(bytes);
        }
        copy_either_way(copy, place, bytes, true);
    }
    const std::scoped_lock alone(guard_);
    kept_.push_back({place, bytes, copy});
}

void undo::put_back() noexcept {
    // Backwards: a place may have been overwritten twice.
    std::for_each(kept_.rbegin(), kept_.rend(), [](const stretch& one) {
        if (one.copy == nullptr)
            std::memset(one.place, 0, static_cast<std::size_t>(one.bytes));
        else
            std::memcpy(one.place, one.copy, static_cast<std::size_t>(one.bytes));
    });
    forget();
}

void undo::forget() noexcept {
    kept_.clear();
    pieces_.clear();
    used_ = 0;
}

}  // namespace zero::checkpoint
