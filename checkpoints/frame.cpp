// The complement of the extents, and its checksum.
#include "frame.hpp"

#include <algorithm>

#include "crc32c.hpp"

namespace zero::checkpoint {

std::vector<byte_range> frame_of(const manifest& what, int file) {
    std::vector<byte_range> data, frame;
    for (const extent& part : what.extents)
        if (part.file == file) data.push_back({part.offset, part.bytes()});
    std::sort(data.begin(), data.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    data.push_back({what.files[static_cast<std::size_t>(file)].bytes, 0});
    std::int64_t end = 0;
    for (const byte_range& part : data) {
        if (part.first > end) frame.push_back({end, part.first - end});
        end = part.first + part.bytes;
    }
    return frame;
}

std::uint32_t sum_frame(const manifest& what, int number, const files::file& part,
                        const std::function<void(std::int64_t, const char*, std::int64_t)>& seen) {
    constexpr std::int64_t stretch = std::int64_t{1} << 18;
    std::string held;
    std::uint32_t sum = 0;
    for (const byte_range& range : frame_of(what, number))
        for (std::int64_t done = 0; done < range.bytes; done += stretch) {
            const std::int64_t now = std::min(stretch, range.bytes - done);
            held.resize(static_cast<std::size_t>(now));
            if (part.read(held.data(), now, range.first + done) != now)
                damaged("{} is damaged: it ends too early", part.path());
            sum = crc32c::extend(sum, held.data(), held.size());
            if (seen) seen(range.first + done, held.data(), now);
        }
    return sum;
}

}  // namespace zero::checkpoint
