// Three lanes of device memory between two streams. See device_update.hpp.
#include "offload/device_update.hpp"

#include <utility>

namespace zero::offload {

std::int64_t lane_bytes(std::int64_t largest_part, std::int64_t sub_group) noexcept {
    if (largest_part == 0) return 0;
    return 3 * widest * tile_of(largest_part, sub_group) + 2 * compute::cuda_result_bytes;  // and of the two streams
}

std::int64_t lane_bytes_on_host(std::int64_t largest_part) noexcept { return largest_part == 0 ? 0 : 2 * compute::cuda_result_bytes; }

device_update::device_update(compute::processor& device, ledger& book, std::int64_t largest_part, std::int64_t sub_group)
    : device_(device), tile_elements_(tile_of(largest_part, sub_group)) {
    if (largest_part == 0) return;
    up_ = device.beside();
    down_ = device.beside();
    const std::int64_t each = widest * tile_elements_;
    memory_ = device.take(book, purpose::communication, static_cast<std::int64_t>(lanes_.size()) * each);
    for (std::size_t k = 0; k < lanes_.size(); ++k) lanes_[k].value = memory_.data() + static_cast<std::int64_t>(k) * each;
}

device_update::~device_update() {
    if (up_) up_->settle();
    if (down_) down_->settle();
}

void device_update::pass(const optimizer::update_range& mine, std::size_t part, changes what, const action& act, lane& through) {
    const bool has_copy = mine.copy16 != nullptr;
    const std::int64_t bytes = mine.count * size_of(has_copy ? mine.value_type : sum_type(mine.value_type));
    void* const home = has_copy ? mine.copy16 : mine.value;
    if (through.down) up_->follow(*through.down);  // what still leaves the lane
    if (!has_copy) up_->start_copy(through.value, home, bytes);
    through.up = up_->take_note();
    device_.follow(*through.up);
    auto here = mine;
    (has_copy ? here.copy16 : here.value) = through.value;
    act(device_, here, part);
    down_->follow(*device_.take_note());
    if (what == changes::values) down_->start_copy(home, through.value, bytes);
    through.down = down_->take_note();
}

void device_update::start(std::span<const optimizer::update_range> parts, changes what, const action& act) {
    const auto tiles = tiles_of(parts.size(), [&](std::size_t k) { return parts[k].count; }, tile_elements_);
    if (tiles.empty()) return;
    up_->follow(*device_.take_note());
    for (std::size_t k = 0; k < tiles.size(); ++k)
        pass(piece_of(parts[tiles[k].part], tiles[k].first, tiles[k].count), tiles[k].part, what, act, lanes_[k % lanes_.size()]);
    last_ = down_->take_note();
    device_.follow(*last_);
}

// Whoever looks at the values next may be the host.
void device_update::finish() {
    if (const auto last = std::exchange(last_, nullptr)) last->wait();
}

}  // namespace zero::offload
