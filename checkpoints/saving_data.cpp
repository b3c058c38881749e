// The bytes of a save: each rank brings its own extents to its part, through one buffer, summing while copying.
#include <algorithm>

#include "crc32c.hpp"
#include "device/memory.hpp"
#include "frame.hpp"
#include "saving.hpp"

namespace zero::checkpoint {
namespace {

constexpr std::int64_t request_bytes = std::int64_t{8} << 20;  // per write; a multiple of the block

// Gives the bytes of a stream one after the other.
class source {
public:
    explicit source(const stream& run) : run_(run), element_(size_of(run.type)) {}

    // Copies the next `bytes` and returns their checksum.
    std::uint32_t take(std::byte* to, std::int64_t bytes) {
        std::uint32_t sum = 0;
        while (bytes > 0) {
            const stream_piece& part = run_.pieces[piece_];
            const std::int64_t now = std::min(bytes, part.count * element_ - done_);
            sum =
                crc32c::copy(sum, to, static_cast<const std::byte*>(part.data) + done_, static_cast<std::size_t>(now));
            to += now;
            bytes -= now;
            done_ += now;
            if (done_ == part.count * element_) {
                ++piece_;
                done_ = 0;
            }
        }
        return sum;
    }

private:
    const stream& run_;
    std::int64_t element_;
    std::size_t piece_ = 0;
    std::int64_t done_ = 0;
};

}  // namespace

void saving::write_extent(files::file& to, const extent& where, const stream& run, std::byte* scratch,
                          std::int64_t capacity) {
    source from(run);
    for (std::int64_t done = 0; done < where.bytes(); done += capacity) {
        const std::int64_t now = std::min(capacity, where.bytes() - done);
        for (std::int64_t block = 0; block < now; block += crc32c::block_bytes)
            sums_.push_back(from.take(scratch + block, std::min(crc32c::block_bytes, now - block)));
        to.write(scratch, now, where.offset + done);
    }
}

void saving::write_integrity(files::file& to) {
    if (sums_.empty()) return;
    const std::size_t first =
        static_cast<std::size_t>(plan_.first_extent_of_rank[static_cast<std::size_t>(ranks_.rank())]);
    to.write(sums_.data(), static_cast<std::int64_t>(4 * sums_.size()),
             part().integrity + 4 * plan_.skeleton.extents[first].block);
}

void saving::write() {
    const auto all = [&] {
        std::int64_t largest = 0;
        for (const stream& run : mine_.streams) largest = std::max(largest, run.count * size_of(run.type));
        const std::int64_t blocks = blocks_of(std::min(largest, request_bytes));
        const buffer scratch(book_, purpose::checkpoint,
                             largest < crc32c::block_bytes ? largest : blocks * crc32c::block_bytes);
        files::file to = disk_.open(staged(part().name), true);
        std::size_t number =
            static_cast<std::size_t>(plan_.first_extent_of_rank[static_cast<std::size_t>(ranks_.rank())]);
        for (const stream& run : mine_.streams)
            write_extent(to, plan_.skeleton.extents[number++], run, scratch.data(), blocks * crc32c::block_bytes);
        write_integrity(to);
        to.sync();
        to.close();
    };
    phase("writing the data", all);
}

std::uint32_t saving::frame_sum() const {
    const files::file from = disk_.open(staged(part().name));
    return sum_frame(plan_.skeleton, file_number(), from);
}

}  // namespace zero::checkpoint
