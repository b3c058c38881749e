// Takes the memory of a stage and answers where an element lives. See storage.hpp.
#include "stage/storage.hpp"

#include <algorithm>

namespace zero::stage {

namespace {

std::byte* at(const buffer& memory, std::int64_t index, dtype type) {
    return memory.data() == nullptr ? nullptr : memory.data() + index * size_of(type);
}

memory_kind pinned_if(bool wanted) { return wanted ? memory_kind::pinned : memory_kind::plain; }

}  // namespace

buffer visible_buffer(const context& all, std::int64_t bytes) {
    if (all.read_by_others() == nullptr || bytes == 0) return all.work.take(all.book, purpose::communication, bytes);
    return all.read_by_others()->own_buffer(all.book, purpose::communication, bytes);
}

storage::storage(const context& all, const coverage& how)
    : all_(all), how_(how),
      states_offloaded_(partition::offloaded_buckets(all.space, !all.work.on_host() && all.how.offload_optimizer ? all.how.offload_ratio : 0)) {}

bool storage::values_in_library(int bucket) const {
    const auto& b = all_.bucket(bucket);
    return b.library_owned || !b.whole_values;
}

partition::range storage::values_part(int bucket) const {
    const auto& b = all_.bucket(bucket);
    return b.whole_values || exists_once(bucket) ? partition::range{0, b.padded} : all_.own_slice(bucket);
}

partition::range storage::written_values(int bucket) const {
    return exists_once(bucket) ? all_.share_of_node(bucket) : values_part(bucket);
}

partition::range storage::states_part(int bucket) const {
    return how_.whole_states ? partition::range{0, all_.bucket(bucket).padded} : all_.own_slice(bucket);
}

partition::range storage::gradient_part(int bucket) const {
    return how_.whole_gradients ? partition::range{0, all_.bucket(bucket).padded} : all_.own_slice(bucket);
}

// Where values lie, or offloaded from there: to locked memory, if that is wanted and to be had.
buffer storage::take(purpose why, std::int64_t bytes, bool offloaded, memory_kind kind) const {
    if (all_.work.on_host() || (offloaded && kind == memory_kind::pinned)) return all_.work.take(all_.book, why, bytes, kind);
    return offloaded ? buffer(all_.book, why, bytes) : all_.work.take(all_.book, why, bytes);
}

void storage::take_values() {
    shelves_.resize(static_cast<std::size_t>(all_.buckets()));
    const auto kind = pinned_if(all_.how.offload_param && all_.how.offload_param_pinned);
    take_values_of_node(kind);
    for (int b = 0; b < all_.buckets(); ++b) {
        if (!values_in_library(b) || exists_once(b)) continue;
        const std::int64_t bytes = values_part(b).count * size_of(all_.bucket(b).type);
        auto& mine = shelves_[static_cast<std::size_t>(b)];
        const bool arrive_here = !all_.work.on_host() && all_.bucket(b).whole_values;
        mine.values = arrive_here ? all_.ranks.take_landing(all_.work, all_.book, purpose::parameters, bytes)
                                  : take(purpose::parameters, bytes, values_offloaded(b), kind);
        mine.first_value = mine.values.data();
    }
}

// All ranks of a node take the same places; each reserves, clears and accounts for its share.
void storage::take_values_of_node(memory_kind kind) {
    const auto bytes_of = [&](int b) { return all_.bucket(b).padded * size_of(all_.bucket(b).type); };  // whole cache lines
    std::int64_t all = 0;
    for (int b = 0; b < all_.buckets(); ++b)
        if (exists_once(b)) all += bytes_of(b);
    if (all == 0) return;
    values_of_node_ = all_.ranks.shared()->take_common(all);
    std::byte* next = values_of_node_->data;
    for (int b = 0; b < all_.buckets(); ++b) {
        if (!exists_once(b) || bytes_of(b) == 0) continue;
        auto& mine = shelves_[static_cast<std::size_t>(b)];
        mine.first_value = next;
        next += bytes_of(b);
        const std::int64_t width = size_of(all_.bucket(b).type), bytes = all_.share_of_node(b).count * width;
        std::byte* share = mine.first_value + all_.share_of_node(b).first * width;
        all_.ranks.shared()->discard(share, bytes);  // of a commit that failed
        all_.ranks.shared()->reserve(share, bytes, kind == memory_kind::pinned);
        mine.values = buffer(all_.book, purpose::parameters, bytes, share, values_of_node_);
    }
}

void storage::take_rest(const std::vector<std::string>& optimizer_states, const std::vector<std::string>& user_states) {
    names_ = optimizer_states;
    optimizer_states_ = optimizer_states.size();
    names_.insert(names_.end(), user_states.begin(), user_states.end());
    const auto kind = pinned_if(all_.how.offload_optimizer && all_.how.offload_optimizer_pinned);
    take_gradients();
    for (int b = 0; b < all_.buckets(); ++b) {
        if (!trainable(b)) continue;
        auto& mine = shelves_[static_cast<std::size_t>(b)];
        const std::int64_t width = size_of(sum_type(all_.bucket(b).type));
        if (has_master(b)) mine.master = take(purpose::master, states_part(b).count * width, states_offloaded(b), kind);
        for (std::size_t s = 0; s < names_.size(); ++s)
            mine.states.push_back(take(purpose::states, states_part(b).count * width, states_offloaded(b), kind));
    }
}

// Whole sums are what the other ranks read from: in the node's memory, where there is such, in one piece.
void storage::take_gradients() {
    std::int64_t all = 0;
    const auto bytes_of = [&](int b) { return gradient_part(b).count * size_of(sum_type(all_.bucket(b).type)); };
    for (int b = 0; b < all_.buckets(); ++b)
        if (trainable(b)) all += bytes_of(b);
    const bool visible = how_.whole_gradients && all_.read_by_others() != nullptr && all > 0;
    const auto together = visible ? all_.read_by_others()->take_own(all) : nullptr;
    std::byte* next = visible ? together->data : nullptr;
    for (int b = 0; b < all_.buckets(); ++b) {
        if (!trainable(b)) continue;
        auto& mine = shelves_[static_cast<std::size_t>(b)].gradients;
        mine = visible && bytes_of(b) > 0 ? buffer(all_.book, purpose::gradients, bytes_of(b), next, together)
                                          : all_.work.take(all_.book, purpose::gradients, bytes_of(b));
        if (visible) next += bytes_of(b);
    }
}

std::byte* storage::value_at(int bucket, std::int64_t offset) const {
    std::byte* first = shelf(bucket).first_value;
    return first == nullptr ? nullptr : first + (offset - values_part(bucket).first) * size_of(all_.bucket(bucket).type);
}

std::byte* storage::gradient_at(int bucket, std::int64_t offset) const {
    return at(shelf(bucket).gradients, offset - gradient_part(bucket).first, sum_type(all_.bucket(bucket).type));
}

std::byte* storage::master_at(int bucket, std::int64_t offset) const {
    return at(shelf(bucket).master, offset - states_part(bucket).first, sum_type(all_.bucket(bucket).type));
}

std::byte* storage::state_at(int bucket, std::size_t state, std::int64_t offset) const {
    return at(shelf(bucket).states[state], offset - states_part(bucket).first, sum_type(all_.bucket(bucket).type));
}

std::byte* storage::value(int tensor, std::int64_t first) const {
    const auto& seat = all_.space.where(tensor);
    if (values_in_library(seat.bucket)) return value_at(seat.bucket, seat.offset + first);
    const auto& t = all_.tensors.at(tensor);
    return t.values == nullptr ? nullptr : static_cast<std::byte*>(t.values) + first * size_of(t.type);
}

std::byte* storage::vector(int tensor, const std::string& name, std::int64_t first) const {
    const auto& seat = all_.space.where(tensor);
    const std::int64_t offset = seat.offset + first;
    if (name == "value" || name == "master")
        return has_master(seat.bucket) ? master_at(seat.bucket, offset) : value(tensor, first);
    if (!trainable(seat.bucket)) return nullptr;
    if (name == "gradient") return gradient_at(seat.bucket, offset);
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) return nullptr;
    return state_at(seat.bucket, static_cast<std::size_t>(found - names_.begin()), offset);
}

dtype storage::vector_type(int tensor, const std::string& name) const {
    const auto& b = all_.bucket(all_.space.where(tensor).bucket);
    return name == "value" && !b.trainable ? b.type : sum_type(b.type);
}

std::vector<stretch> storage::stretches(int bucket, partition::range part) const {
    std::vector<stretch> all;
    if (values_in_library(bucket)) {
        const std::int64_t end = std::min(part.first + part.count, all_.bucket(bucket).used);
        if (end > part.first) all.push_back({part.first, end - part.first, -1, 0});
        return all;
    }
    for (const auto& piece : all_.space.pieces(bucket, part))
        all.push_back({piece.offset, piece.count, piece.tensor, piece.first});
    return all;
}

}  // namespace zero::stage
