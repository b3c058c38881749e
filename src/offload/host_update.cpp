// Three lanes of locked memory between two streams. See host_update.hpp.
#include "offload/host_update.hpp"

namespace zero::offload {

std::int64_t staging_bytes(std::int64_t largest_part, std::int64_t sub_group) noexcept {
    if (largest_part == 0) return 0;
    return 3 * 2 * widest * tile_of(largest_part, sub_group) + 2 * compute::cuda_result_bytes;  // and of the two streams
}

std::int64_t device_bytes(std::int64_t largest_part) noexcept { return largest_part == 0 ? 0 : 2 * compute::cuda_result_bytes; }

host_update::host_update(compute::processor& device, crew& threads, ledger& book, std::int64_t largest_part, std::int64_t sub_group)
    : device_(device), tile_elements_(tile_of(largest_part, sub_group)) {
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

void host_update::bring_down(const part& of, const tile& what, lane& through) {
    const dtype sum = sum_type(of.range.value_type);
    if (through.up) down_->follow(*through.up);  // what still leaves the lane
    down_->start_copy(through.gradient, at(of.range.gradient, what.first, sum), what.count * size_of(sum));
    if (!of.value_here) down_->start_copy(through.value, at(of.range.value, what.first, sum), what.count * size_of(sum));
    through.down = down_->take_note();
}

void host_update::update(const part& of, const tile& what, changes which, const action& act, lane& through) {
    const auto there = piece_of(of.range, what.first, what.count);
    const dtype sum = sum_type(there.value_type);
    through.down->wait();
    auto mine = there;
    mine.gradient = through.gradient;
    if (!of.value_here) mine.value = through.value;
    if (mine.copy16 != nullptr && !of.copy_here) mine.copy16 = through.value;
    act(*host_, mine, what.part);
    if (which == changes::gradient) {
        up_->start_copy(const_cast<void*>(there.gradient), through.gradient, what.count * size_of(sum));
    } else {
        if (mine.copy16 != there.copy16) up_->start_copy(there.copy16, through.value, what.count * size_of(there.value_type));
        if (!of.value_here) up_->start_copy(there.value, through.value, what.count * size_of(sum));
    }
    through.up = up_->take_note();
}

void host_update::run(std::span<const part> parts, changes what, const action& act, const compute::note& ready) {
    const auto tiles = tiles_of(parts.size(), [&](std::size_t k) { return parts[k].range.count; }, tile_elements_);
    if (tiles.empty()) return;
    down_->follow(ready);
    up_->follow(ready);
    const std::size_t lanes = lanes_.size();
    for (std::size_t k = 0; k < std::min(lanes, tiles.size()); ++k) bring_down(parts[tiles[k].part], tiles[k], lanes_[k]);
    for (std::size_t k = 0; k < tiles.size(); ++k) {
        update(parts[tiles[k].part], tiles[k], what, act, lanes_[k % lanes]);
        if (k + lanes < tiles.size()) bring_down(parts[tiles[k + lanes].part], tiles[k + lanes], lanes_[k % lanes]);
    }
    device_.follow(*up_->take_note());
}

}  // namespace zero::offload
