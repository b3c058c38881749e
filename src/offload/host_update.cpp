// Three lanes of locked memory between two streams. See host_update.hpp.
#include "offload/host_update.hpp"

#include <algorithm>
#include <vector>

namespace zero::offload {

namespace {

constexpr std::int64_t widest = 8;                   // bytes of an element of a sum
constexpr std::int64_t largest_tile = 1 << 20;       // elements: a copy at the link's full rate, in the host's outer caches
constexpr std::int64_t aligned = 64;                 // elements

std::int64_t tile_of(std::int64_t largest_part, std::int64_t sub_group) noexcept {
    const std::int64_t most = std::max(aligned, std::min(largest_tile, sub_group) / aligned * aligned);
    return std::min(most, (largest_part + aligned - 1) / aligned * aligned);
}

}  // namespace

std::int64_t staging_bytes(std::int64_t largest_part, std::int64_t sub_group) noexcept {
    if (largest_part == 0) return 0;
    return 3 * 2 * widest * tile_of(largest_part, sub_group) + 2 * compute::cuda_result_bytes;  // and of the two streams
}

std::int64_t device_bytes(std::int64_t largest_part) noexcept { return largest_part == 0 ? 0 : 2 * compute::cuda_result_bytes; }

host_update::host_update(compute::processor& device, crew& threads, ledger& book, std::int64_t largest_part, std::int64_t sub_group)
    : device_(device), threads_(threads), tile_elements_(tile_of(largest_part, sub_group)) {
    if (largest_part == 0) return;
    down_ = device.beside();
    up_ = device.beside();
    host_ = compute::make_host(threads);
    const std::int64_t each = widest * tile_elements_;
    staging_ = device.take(book, purpose::communication, static_cast<std::int64_t>(lanes_.size()) * 2 * each, memory_kind::pinned);
    std::byte* next = staging_.data();
    for (lane& one : lanes_) {
        one.gradient = next;
        one.value = next + each;
        next += 2 * each;
    }
}

host_update::~host_update() {
    if (down_) down_->settle();
    if (up_) up_->settle();
}

namespace {

std::byte* at(const void* data, std::int64_t first, dtype type) {
    return static_cast<std::byte*>(const_cast<void*>(data)) + first * size_of(type);
}

}  // namespace

void host_update::bring_down(const tile& what, lane& through) {
    const auto& range = what.of->range;
    const dtype sum = sum_type(range.value_type);
    if (through.up) down_->follow(*through.up);  // what still leaves the lane
    down_->start_copy(through.gradient, at(range.gradient, what.first, sum), what.count * size_of(sum));
    if (!what.of->value_here) down_->start_copy(through.value, at(range.value, what.first, sum), what.count * size_of(sum));
    through.down = down_->take_note();
}

void host_update::update(optimizer::kind which, const optimizer::hyper& numbers, double clip_factor, std::int64_t step, const tile& what,
                         lane& through) {
    const auto& given = *what.of;
    const dtype sum = sum_type(given.range.value_type);
    through.down->wait();
    auto mine = given.range;
    mine.gradient = through.gradient;
    mine.value = given.value_here ? at(given.range.value, what.first, sum) : through.value;
    const bool copies = given.range.copy16 != nullptr;
    if (copies) mine.copy16 = given.copy_here ? at(given.range.copy16, what.first, given.range.value_type) : through.value;
    for (auto& state : mine.states)
        if (state != nullptr) state = at(state, what.first, sum);
    mine.count = what.count;
    constexpr std::int64_t worth_a_thread = 1 << 15;
    threads_.share(what.count, worth_a_thread, [&](int, std::int64_t first, std::int64_t count) {
        auto piece = mine;
        piece.gradient = at(mine.gradient, first, sum);
        piece.value = at(mine.value, first, sum);
        if (copies) piece.copy16 = at(mine.copy16, first, given.range.value_type);
        for (auto& state : piece.states)
            if (state != nullptr) state = at(state, first, sum);
        piece.count = count;
        host_->update(which, numbers, clip_factor, step, piece);
    });
    if (copies && !given.copy_here)
        up_->start_copy(at(given.range.copy16, what.first, given.range.value_type), through.value, what.count * size_of(given.range.value_type));
    if (!given.value_here) up_->start_copy(at(given.range.value, what.first, sum), through.value, what.count * size_of(sum));
    through.up = up_->take_note();
}

void host_update::run(optimizer::kind which, const optimizer::hyper& numbers, double clip_factor, std::int64_t step,
                      std::span<const part> parts) {
    std::vector<tile> tiles;
    for (const part& one : parts)
        for (std::int64_t first = 0; first < one.range.count; first += tile_elements_)
            tiles.push_back({&one, first, std::min(tile_elements_, one.range.count - first)});
    if (tiles.empty()) return;
    const auto before = device_.take_note();
    down_->follow(*before);
    up_->follow(*before);
    const std::size_t lanes = lanes_.size();
    for (std::size_t k = 0; k < std::min(lanes, tiles.size()); ++k) bring_down(tiles[k], lanes_[k]);
    for (std::size_t k = 0; k < tiles.size(); ++k) {
        update(which, numbers, clip_factor, step, tiles[k], lanes_[k % lanes]);
        if (k + lanes < tiles.size()) bring_down(tiles[k + lanes], lanes_[k % lanes]);
    }
    device_.follow(*up_->take_note());
}

}  // namespace zero::offload
