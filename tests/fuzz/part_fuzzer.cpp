// libFuzzer target: a manifest and a part of any bytes. Reading either gives the bytes that have the right checksums, or
// code::checkpoint; it takes no more memory than the file justifies. Input: the manifest, a zero byte, the part.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "checkpoints/frame.hpp"
#include "checkpoints/manifest.hpp"
#include "checkpoints/reader.hpp"

namespace {

using namespace zero;
using namespace zero::checkpoint;

// A folder whose only file is the part: the name in the manifest is given to a file in memory.
struct memory_folder {
    explicit memory_folder(std::string_view bytes) : descriptor(::memfd_create("part", 0)) {
        if (::write(descriptor, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
    }
    ~memory_folder() { ::close(descriptor); }
    memory_folder(const memory_folder&) = delete;
    memory_folder& operator=(const memory_folder&) = delete;
    int descriptor;
};

void read_all(const manifest& what, const part_reader& part, std::size_t file_bytes) {
    for (const extent& where : what.extents) {
        if (where.file != 0) continue;
        if (where.bytes() > static_cast<std::int64_t>(file_bytes)) std::abort();  // the check must have refused it
        std::vector<std::byte> values(static_cast<std::size_t>(where.bytes())),
            scratch((std::size_t{1} << 20) + static_cast<std::size_t>(zero::files::file::direct_unit));
        const wanted all{0, where.count, where.type, values.data()};
        for (const read_run& run : runs_of(where, {&all, 1}, std::int64_t{1} << 20))
            read(part, where, {&all, 1}, run, scratch.data());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    const std::string_view input(reinterpret_cast<const char*>(bytes), count);
    const std::size_t cut = std::min(input.find('\0'), input.size());
    const std::string_view part = input.substr(std::min(cut + 1, input.size()));
    try {
        manifest what = from_json(input.substr(0, cut), "fuzz");
        if (what.files.empty()) return 0;
        const memory_folder folder(part);
        what.files[0].name = std::to_string(folder.descriptor);
        const files::disk disk;
        {
            // Half of the runs pass the frame's checksum, so that the data behind it are reached.
            const files::file open = disk.open("/proc/self/fd/" + what.files[0].name);
            if (count % 2 == 0 && open.bytes() == what.files[0].bytes) what.files[0].frame = sum_frame(what, 0, open);
        }
        const part_reader reader(disk, "/proc/self/fd", what, 0);
        read_all(what, reader, part.size());
    } catch (const error& problem) {
        if (problem.which() != code::checkpoint || *problem.what() == '\0') std::abort();
    }
    return 0;
}
