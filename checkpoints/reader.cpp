// Opening a part with all checks, and reading runs of blocks out of it.
#include "reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "crc32c.hpp"
#include "frame.hpp"
#include "tensor/stream_copy.hpp"
#include "tensor/vector.hpp"

namespace zero::checkpoint {
namespace {

constexpr std::int64_t block_bytes = crc32c::block_bytes;
constexpr std::int64_t past_caches_from = block_bytes / 4;  // a piece of a long load: nobody reads it soon

files::file open_part(const files::disk& disk, const std::string& path) {
    try {
        return disk.open(path);
    } catch (const files::failure& problem) {
        if (problem.number() == ENOENT || problem.number() == ENOTDIR || problem.number() == EISDIR)
            damaged("{} is missing", path);
        throw;
    }
}

// Copies what falls both in the frame's stretch and in a wanted region.
struct catcher {
    std::int64_t first = 0, bytes = 0;
    char* to = nullptr;
    void see(std::int64_t offset, const char* data, std::int64_t length) const {
        const std::int64_t low = std::max(first, offset), high = std::min(first + bytes, offset + length);
        if (low < high) std::memcpy(to + (low - first), data + (low - offset), static_cast<std::size_t>(high - low));
    }
};

// The bytes lie in memory as they lie in the file, where an element may begin at any place.
void convert(dtype to_type, std::byte* to, dtype from_type, const std::byte* from, std::int64_t count) {
    alignas(64) std::array<std::byte, 4096> tile;
    const std::int64_t size = size_of(from_type), most = static_cast<std::int64_t>(tile.size()) / size;
    if (reinterpret_cast<std::uintptr_t>(from) % static_cast<std::uintptr_t>(size) == 0)
        return vector::convert(to_type, to, from_type, from, count);
    for (std::int64_t done = 0; done < count; done += most) {
        const std::int64_t now = std::min(most, count - done);
        std::memcpy(tile.data(), from + done * size, static_cast<std::size_t>(now * size));
        vector::convert(to_type, to + done * size_of(to_type), from_type, tile.data(), now);
    }
}

void hand_out(const extent& where, std::int64_t run_first, std::int64_t run_bytes, const std::byte* data,
              const wanted& item, const overwriting& before) {
    const std::int64_t size = size_of(where.type);
    const std::int64_t low = std::max(item.first, run_first / size);
    const std::int64_t high = std::min(item.first + item.count, (run_first + run_bytes) / size);
    if (low >= high || item.to == nullptr) return;
    std::byte* to = item.to + (low - item.first) * size_of(item.type);
    const std::byte* from = data + (low * size - run_first);
    const std::int64_t bytes = (high - low) * size;
    if (before) before(to, (high - low) * size_of(item.type));
    if (item.type == where.type)
        copy_either_way(to, from, bytes, bytes >= past_caches_from);
    else
        convert(item.type, to, where.type, from, high - low);
}

}  // namespace

part_reader::part_reader(const files::disk& disk, const std::string& folder, const manifest& what, int number) {
    const file_entry& entry = what.files.at(static_cast<std::size_t>(number));
    from_ = open_part(disk, files::join(folder, entry.name));
    const std::int64_t bytes = from_.bytes();
    if (bytes != entry.bytes)
        damaged("{} is damaged: it has {} bytes where {} were written", from_.path(), bytes, entry.bytes);
    sums_.resize(static_cast<std::size_t>(entry.blocks));  // at most the file's own bytes
    std::string identity(static_cast<std::size_t>(identity_bytes), '\0');
    const catcher sums{entry.integrity, 4 * entry.blocks, reinterpret_cast<char*>(sums_.data())};
    const catcher names{entry.identity, identity_bytes, identity.data()};
    const std::uint32_t sum =
        sum_frame(what, number, from_, [&](std::int64_t offset, const char* data, std::int64_t length) {
            sums.see(offset, data, length);
            names.see(offset, data, length);
        });
    if (identity != identity_text(what, number))
        damaged("{} is damaged or belongs to another checkpoint: its identity is not that of the manifest",
                from_.path());
    if (sum != entry.frame) damaged("{} is damaged: the checksum of its frame is wrong", from_.path());
}

std::vector<read_run> runs_of(const extent& where, std::span<const wanted> items, std::int64_t most_bytes) {
    const std::int64_t size = size_of(where.type), most = std::max<std::int64_t>(1, most_bytes / block_bytes);
    std::vector<read_run> runs;
    std::int64_t next_block = 0;
    std::size_t item = 0, oldest = 0;
    while (item < items.size()) {
        // From the first block that is still needed, as long as the next items touch or follow it.
        const std::int64_t low = std::max(items[item].first * size / block_bytes, next_block);
        std::int64_t high = low;  // one past the last
        while (item < items.size() && high - low < most && items[item].first * size / block_bytes <= high) {
            const std::int64_t end = blocks_of((items[item].first + items[item].count) * size);
            high = std::max(high, std::min(end, low + most));
            if (end > high) break;
            ++item;
        }
        if (high <= low) continue;
        const std::int64_t first = low * block_bytes, past = std::min(high * block_bytes, where.bytes());
        runs.push_back({first, past - first, oldest});
        while (oldest < items.size() && (items[oldest].first + items[oldest].count) * size <= past) ++oldest;
        next_block = high;
    }
    return runs;
}

void check_and_hand_out(const part_reader& from, const extent& where, std::span<const wanted> items, const read_run& run,
                        const std::byte* data, std::int64_t had, const overwriting& before) {
    if (had != run.bytes) damaged("{} is damaged: it ends too early", from.path());
    const std::int64_t size = size_of(where.type);
    std::size_t oldest = run.oldest;
    for (std::int64_t done = 0; done < run.bytes; done += block_bytes) {
        const std::int64_t first = run.first + done, bytes = std::min(block_bytes, run.bytes - done);
        if (crc32c::of(data + done, static_cast<std::size_t>(bytes)) != from.block_sum(where.block + first / block_bytes))
            damaged("{} is damaged: {} differs from what was written, near byte {}", from.path(), where.dataset,
                    where.offset + first);
        while (oldest < items.size() && (items[oldest].first + items[oldest].count) * size <= first) ++oldest;
        for (std::size_t k = oldest; k < items.size() && items[k].first * size < first + bytes; ++k)
            hand_out(where, first, bytes, data + done, items[k], before);
    }
}

void read(const part_reader& from, const extent& where, std::span<const wanted> items, const read_run& run,
          std::byte* scratch) {
    std::byte* const data = files::file::aligned(scratch, where.offset + run.first);
    check_and_hand_out(from, where, items, run, data, from.read(data, run.bytes, where.offset + run.first));
}

}  // namespace zero::checkpoint
