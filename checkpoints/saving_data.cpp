// The bytes of a save: each rank brings its own extents to its part in long requests, several under way at once, each
// by a thread that sums while it copies into aligned memory; or copies all first and does this behind the caller's
// back.
#include <algorithm>
#include <filesystem>

#include "crc32c.hpp"
#include "frame.hpp"
#include "saving.hpp"
#include "tensor/stream_copy.hpp"
#include "transfers.hpp"

namespace zero::checkpoint {
namespace {

constexpr std::int64_t unit = files::file::direct_unit;

// The bytes of a stream from some place on.
class source {
public:
    source(const stream& run, std::int64_t first) : pieces_(run.pieces), element_(size_of(run.type)), done_(first) {
        while (piece_ < pieces_.size() && done_ >= length()) next();
    }

    // Where the next `bytes` lie one behind the other in memory: there; else null.
    const std::byte* in_one(std::int64_t bytes) const {
        source at = *this;
        const std::byte* const start = at.place();
        for (std::int64_t had = at.length() - at.done_; had < bytes; had += at.length()) {
            at.done_ = at.length();
            at.next();
            if (at.place() != start + had) return nullptr;
        }
        return start;
    }

    // Copies the next `bytes` and returns their checksum.
    std::uint32_t take(std::byte* to, std::int64_t bytes) {
        std::uint32_t sum = 0;
        while (bytes > 0) {
            const std::int64_t now = std::min(bytes, length() - done_);
            sum = crc32c::copy(sum, to, place(), static_cast<std::size_t>(now));
            to += now;
            bytes -= now;
            done_ += now;
            if (done_ == length()) next();
        }
        return sum;
    }

private:
    std::int64_t length() const { return pieces_[piece_].count * element_; }
    const std::byte* place() const { return static_cast<const std::byte*>(pieces_[piece_].data) + done_; }
    void next() {
        done_ -= length();
        ++piece_;
    }

    std::span<const stream_piece> pieces_;
    std::int64_t element_;
    std::size_t piece_ = 0;
    std::int64_t done_ = 0;  // of the piece
};

std::int64_t scratch_bytes(std::int64_t bytes) {
    return std::min(bytes, request_bytes) + unit;  // of one lane
}

}  // namespace

struct saving::portion {
    const stream* run;
    std::int64_t first, bytes;  // of the stream
    std::int64_t offset;        // in the file
    std::int64_t block;         // its first sum, of this rank's
};

std::vector<saving::portion> saving::portions() const {
    std::vector<portion> all;
    std::int64_t block = 0;
    std::size_t number = first_extent();
    for (const stream& run : mine_.streams) {
        const extent& where = plan_.skeleton.extents[number++];
        for (std::int64_t done = 0; done < where.bytes(); done += request_bytes) {
            const std::int64_t now = std::min(request_bytes, where.bytes() - done);
            all.push_back({&run, done, now, where.offset + done, block});
            block += blocks_of(now);
        }
    }
    return all;
}

std::int64_t saving::own_bytes() const {
    std::int64_t bytes = 0;
    for (const stream& run : mine_.streams) bytes += run.count * size_of(run.type);
    return bytes;
}

// Sums a portion and tells where it lies for the file: in its place, or copied.
const std::byte* saving::prepare(const portion& one, std::byte* scratch) {
    source from(*one.run, one.first);
    const std::byte* data = from.in_one(one.bytes);
    const bool as_it_lies = data != nullptr && (scratch == nullptr || files::file::lies_right(data, one.offset));
    if (as_it_lies) {
        for (std::int64_t done = 0; done < one.bytes; done += crc32c::block_bytes)
            sums_[static_cast<std::size_t>(one.block + done / crc32c::block_bytes)] =
                crc32c::of(data + done, static_cast<std::size_t>(std::min(crc32c::block_bytes, one.bytes - done)));
    } else {
        std::byte* copy = files::file::aligned(scratch, one.offset);
        for (std::int64_t done = 0; done < one.bytes; done += crc32c::block_bytes)
            sums_[static_cast<std::size_t>(one.block + done / crc32c::block_bytes)] =
                from.take(copy + done, std::min(crc32c::block_bytes, one.bytes - done));
        data = copy;
    }
    return data;
}

void saving::write_integrity(files::file& to) {
    if (sums_.empty()) return;
    to.write(sums_.data(), static_cast<std::int64_t>(4 * sums_.size()),
             part().integrity + 4 * plan_.skeleton.extents[first_extent()].block);
}

// No communication, no HDF5, no ledger. `scratch` may be null where all streams lie in one.
void saving::bring_to_disk(std::byte* scratch, int lanes) {
    files::file to = disk_.open(staged(part().name), true);
    const std::vector<portion> all = portions();
    if (own_bytes() >= direct_from) to.go_direct();
    sums_.assign(static_cast<std::size_t>(all.empty() ? 0 : all.back().block + blocks_of(all.back().bytes)), 0);
    const auto next = [&](int lane, std::size_t k) {
        require(!given_up_, code::state, "the save was given up");
        const std::byte* data = prepare(all[k], scratch == nullptr ? nullptr : scratch + lane * scratch_bytes(own_bytes()));
        return transfer{&to, true, const_cast<std::byte*>(data), all[k].bytes, all[k].offset};
    };
    carry_out(lanes, all.size(), next, [](int, std::size_t, std::int64_t) {});
    write_integrity(to);
    to.sync();
    to.close();
}

std::int64_t saving::copy_bytes() const {
    std::int64_t bytes = 0;
    for (const stream& run : mine_.streams) bytes += run.count * size_of(run.type) + unit;
    return bytes;
}

// From here on the streams are the copies.
void saving::take_copies(std::byte* to) {
    const bool past_caches = own_bytes() >= longer_than_caches;
    std::size_t number = first_extent();
    for (stream& run : mine_.streams) {
        to = files::file::aligned(to, plan_.skeleton.extents[number++].offset);
        for (stream_piece& part : run.pieces) {
            const std::int64_t bytes = part.count * size_of(run.type);
            copy_either_way(to, part.data, bytes, past_caches);
            part.data = to;
            to += bytes;
        }
    }
}

void saving::write_behind(buffer& kept) {
    phase("copying the data", [&] {
        // The caller may change the working directory before the save is through.
        std::error_code unknown;
        const std::filesystem::path whole = std::filesystem::absolute(what_.directory, unknown);
        if (!unknown) what_.directory = whole.string();
        if (kept.bytes() < copy_bytes()) {
            kept = buffer();
            kept = buffer(book_, purpose::checkpoint, copy_bytes());
        }
        take_copies(kept.data());
    });
    // Where the system gives no thread, write() does it.
    behind_.start([this, lanes = lanes_for(own_bytes())] { bring_to_disk(nullptr, lanes); });
}

// The index does not wait for the data: rank 0 makes it while another thread brings them to disk. Short data go first, so that
// a save of little makes its calls in one order (the sweeps count on it).
void saving::write() {
    phase("writing the data and the index", [&] {
        const bool indexes = ranks_.rank() == 0;
        if (behind_.started()) {
            if (indexes) write_index();
            behind_.join();
            if (behind_.failure()) std::rethrow_exception(behind_.failure());
            return;
        }
        const int lanes = lanes_for(own_bytes());
        const buffer scratch(book_, purpose::checkpoint, own_bytes() == 0 ? 0 : lanes * scratch_bytes(own_bytes()),
                             memory_kind::untouched);
        const auto data = [&] { bring_to_disk(scratch.data(), lanes); };
        helper beside;
        if (!indexes || own_bytes() < direct_from || !beside.start(data)) data();
        if (!indexes) return;
        try {
            write_index();
        } catch (...) {
            given_up_.store(true);  // the thread need not go on
            throw;
        }
        beside.join();
        if (beside.failure()) std::rethrow_exception(beside.failure());
    });
}

std::uint32_t saving::frame_sum() const {
    const files::file from = disk_.open(staged(part().name));
    return sum_frame(plan_.skeleton, file_number(), from);
}

}  // namespace zero::checkpoint
