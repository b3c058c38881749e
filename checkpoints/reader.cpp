// Opening a part with all checks, and reading runs of blocks out of it.
#include "reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "crc32c.hpp"
#include "frame.hpp"
#include "tensor/vector.hpp"

namespace zero::checkpoint {
namespace {

constexpr std::int64_t block_bytes = crc32c::block_bytes;

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

void hand_out(const extent& where, std::int64_t run_first, std::int64_t run_bytes, const std::byte* data,
              const wanted& item) {
    const std::int64_t size = size_of(where.type);
    const std::int64_t low = std::max(item.first, run_first / size);
    const std::int64_t high = std::min(item.first + item.count, (run_first + run_bytes) / size);
    if (low >= high || item.to == nullptr) return;
    std::byte* to = item.to + (low - item.first) * size_of(item.type);
    const std::byte* from = data + (low * size - run_first);
    if (item.type == where.type)
        std::memcpy(to, from, static_cast<std::size_t>((high - low) * size));
    else
        vector::convert(item.type, to, where.type, from, high - low);
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

void part_reader::read(void* to, std::int64_t bytes, std::int64_t offset) const {
    if (from_.read(to, bytes, offset) != bytes) damaged("{} is damaged: it ends too early", from_.path());
}

std::int64_t read_extent(const part_reader& from, const extent& where, std::span<const wanted> items,
                         std::span<std::byte> scratch) {
    const std::int64_t size = size_of(where.type), room = static_cast<std::int64_t>(scratch.size()) / block_bytes;
    const std::int64_t most = std::max<std::int64_t>(1, room);
    std::int64_t total = 0, next_block = 0;
    std::size_t item = 0, oldest = 0;
    while (item < items.size()) {
        // A run of blocks: from the first that is still needed, as long as the next items touch or follow it.
        const std::int64_t low = std::max(items[item].first * size / block_bytes, next_block);
        std::int64_t high = low;  // one past the last
        while (item < items.size() && high - low < most && items[item].first * size / block_bytes <= high) {
            const std::int64_t end = blocks_of((items[item].first + items[item].count) * size);
            high = std::max(high, std::min(end, low + most));
            if (end > high) break;
            ++item;
        }
        if (high > low) {
            const std::int64_t first = low * block_bytes, bytes = std::min(high * block_bytes, where.bytes()) - first;
            from.read(scratch.data(), bytes, where.offset + first);
            for (std::int64_t block = low; block < high; ++block) {
                const std::int64_t at = block * block_bytes - first;
                if (crc32c::of(scratch.data() + at, static_cast<std::size_t>(std::min(block_bytes, bytes - at))) !=
                    from.block_sum(where.block + block))
                    damaged("{} is damaged: {} differs from what was written, near byte {}", from.path(), where.dataset,
                            where.offset + first + at);
            }
            for (std::size_t k = oldest; k < items.size() && items[k].first * size < first + bytes; ++k)
                hand_out(where, first, bytes, scratch.data(), items[k]);
            while (oldest < items.size() && (items[oldest].first + items[oldest].count) * size <= first + bytes)
                ++oldest;
            total += bytes;
            next_block = high;
        }
    }
    return total;
}

}  // namespace zero::checkpoint
