// Overlaps of ranges, and look-ups by name.
#include "reshard.hpp"

#include <algorithm>

namespace zero::checkpoint {

void add_range(demand& all, const vector_entry& from, std::int64_t first, std::int64_t count, dtype type,
               std::byte* to) {
    const auto& pieces = from.pieces;
    auto at = std::upper_bound(pieces.begin(), pieces.end(), first,
                               [](std::int64_t value, const piece& one) { return value < one.first; });
    if (at != pieces.begin()) --at;
    for (; at != pieces.end() && at->first < first + count; ++at) {
        const std::int64_t low = std::max(first, at->first), high = std::min(first + count, at->first + at->count);
        if (low >= high) continue;
        std::byte* target = to == nullptr ? nullptr : to + (low - first) * size_of(type);
        all[at->extent].push_back({at->offset + (low - at->first), high - low, type, target});
    }
}

void sort(demand& all) {
    for (auto& [extent, items] : all)
        std::sort(items.begin(), items.end(), [](const wanted& a, const wanted& b) { return a.first < b.first; });
}

catalogue::catalogue(const manifest& what, int model) {
    for (const tensor_entry& one : what.tensors)
        if (one.model == model) tensors_.emplace(one.name, &one);
}

const tensor_entry* catalogue::tensor(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second;
}

const vector_entry* find_vector(const tensor_entry& in, const std::string& state) {
    for (const vector_entry& one : in.vectors)
        if (one.state == state) return &one;
    return nullptr;
}

const attachment_entry* find_attachment(const manifest& what, const std::string& name, int model, int rank) {
    for (const attachment_entry& one : what.attachments)
        if (one.name == name && one.model == model && (!one.per_rank || one.rank == rank)) return &one;
    return nullptr;
}

}  // namespace zero::checkpoint
