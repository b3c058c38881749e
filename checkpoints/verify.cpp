// All checks of a load, over everything instead of what one rank needs; goes on after a problem.
#include "verify.hpp"

#include <algorithm>

#include "crc32c.hpp"
#include "reader.hpp"
#include "threads.hpp"

namespace zero::checkpoint {
namespace {

class verifier {
public:
    verifier(const files::disk& disk, const std::string& folder, bool full,
             const std::function<void(std::int64_t)>& progress)
        : disk_(disk), folder_(folder), progress_(progress) {
        found_.full = full;
    }

    verification run() {
        attempt([&] { what_ = read_manifest(disk_, folder_); });
        if (!found_.problems.empty()) return found_;
        attempt([&] { check_index(); });
        for (std::size_t file = 0; file < what_.files.size(); ++file)
            attempt([&] { check_part(static_cast<int>(file)); });
        return found_;
    }

private:
    void attempt(const std::function<void()>& part) {
        try {
            part();
        } catch (const damage& problem) {
            found_.problems.push_back(problem.what());
        }
    }

    void check_index() {
        const std::string path = files::join(folder_, index_name);
        const files::status found = disk_.look(path);
        if (!found.exists) damaged("{} is missing", path);
        if (found.bytes != what_.index_bytes)
            damaged("{} is damaged: it has {} bytes where {} were written", path, found.bytes, what_.index_bytes);
        if (crc32c::of(disk_.read_text(path, found.bytes)) != what_.index_sum)
            damaged("{} is damaged: its checksum is wrong", path);
    }

    void check_part(int number) {
        const part_reader part(disk_, folder_, what_, number);
        if (!found_.full) return;
        for (const extent& where : what_.extents)
            if (where.file == number) attempt([&] { check_extent(part, where); });
    }

    void check_extent(const part_reader& part, const extent& where) {
        const wanted only{0, where.count, where.type, nullptr};
        scratch_.resize(static_cast<std::size_t>(std::min(request_bytes, where.bytes()) + files::file::direct_unit));
        for (const read_run& run : runs_of(where, {&only, 1}, request_bytes)) {
            read(part, where, {&only, 1}, run, scratch_.data());
            found_.bytes += run.bytes;
            if (progress_) progress_(found_.bytes);
        }
    }

    const files::disk& disk_;
    const std::string& folder_;
    const std::function<void(std::int64_t)>& progress_;
    manifest what_;
    verification found_;
    std::vector<std::byte> scratch_;
};

}  // namespace

manifest read_manifest(const files::disk& disk, const std::string& folder) {
    const std::string path = files::join(folder, manifest_name);
    if (!disk.look(path).exists)
        fail(code::checkpoint, "{} is missing: there is no complete checkpoint in {}", path, folder);
    return from_text(disk.read_text(path, most_manifest_bytes), path);
}

verification verify(const files::disk& disk, const std::string& folder, bool full,
                    const std::function<void(std::int64_t)>& progress) {
    return verifier(disk, folder, full, progress).run();
}

}  // namespace zero::checkpoint
