// Reading whole tensors of content.hpp out of the parts.
#include "content.hpp"

#include <algorithm>

#include "checkpoints/threads.hpp"
#include "checkpoints/verify.hpp"
#include "tool.hpp"

namespace zero::tool {
namespace {

constexpr std::size_t most_open = 64;  // descriptors are few where jobs are large
using checkpoint::request_bytes;

}  // namespace

content::content(const std::string& path) : folder_(checkpoint_at(path)) {
    require(!folder_.empty(), code::checkpoint, "there is no checkpoint in {}", path);
    what_ = checkpoint::read_manifest(disk_, folder_);
}

std::string shown_name(const checkpoint::manifest& in, const checkpoint::tensor_entry& of) {
    return in.head.model_ranks > 1 ? formatted("model-{}/{}", of.model, of.name) : of.name;
}

const checkpoint::part_reader& content::part(int number) {
    const auto found = parts_.find(number);
    if (found != parts_.end()) return found->second;
    if (parts_.size() >= most_open) parts_.clear();
    return parts_.try_emplace(number, disk_, folder_, what_, number).first->second;
}

void content::read(const checkpoint::vector_entry& from, std::int64_t first, std::int64_t count, dtype type,
                   std::byte* to) {
    scratch_.resize(static_cast<std::size_t>(request_bytes + files::file::direct_unit));
    const auto after = std::partition_point(from.pieces.begin(), from.pieces.end(),
                                            [&](const auto& one) { return one.first + one.count <= first; });
    for (auto one = after; one != from.pieces.end() && one->first < first + count; ++one) {
        const checkpoint::extent& where = what_.extents[static_cast<std::size_t>(one->extent)];
        const std::int64_t low = std::max(first, one->first), high = std::min(first + count, one->first + one->count);
        const checkpoint::wanted item{one->offset + (low - one->first), high - low, type,
                                      to + (low - first) * size_of(type)};
        for (const checkpoint::read_run& run : checkpoint::runs_of(where, {&item, 1}, request_bytes))
            checkpoint::read(part(where.file), where, {&item, 1}, run, scratch_.data());
    }
}

void content::each_chunk(const checkpoint::vector_entry& from, std::int64_t count, dtype type, const taker& take) {
    chunk_.resize(static_cast<std::size_t>(std::min(count, chunk_elements) * size_of(type)));
    for (std::int64_t first = 0; first < count; first += chunk_elements) {
        const std::int64_t now = std::min(chunk_elements, count - first);
        read(from, first, now, type, chunk_.data());
        take(first, now, chunk_.data());
    }
}

}  // namespace zero::tool
