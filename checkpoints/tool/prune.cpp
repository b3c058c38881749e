// zero-ckpt prune: removes old checkpoints, each renamed to .trash-<uuid> first, so that none is ever half there. Never the
// newest nor the one of LATEST; staging folders of jobs and damaged checkpoints are left alone and do not count.
#include <fmt/format.h>

#include "answer.hpp"
#include "checkpoints/directory.hpp"
#include "checkpoints/verify.hpp"
#include "tool.hpp"

namespace zero::tool {
namespace {

std::string latest_of(const files::disk& disk, const std::string& directory) {
    const std::string path = files::join(directory, checkpoint::latest_name);
    if (!disk.look(path).exists) return "";
    const std::string text = disk.read_text(path, 4096);
    return text.substr(0, text.find('\n'));
}

// The quick checks: an older one must not go because a damaged one was counted.
bool sound(const files::disk& disk, const std::string& folder) {
    const checkpoint::verification found = checkpoint::verify(disk, folder, false);
    for (const std::string& problem : found.problems) fmt::print(stderr, "zero-ckpt: {}\n", problem);
    return found.problems.empty();
}

}  // namespace

int prune(const options& what) {
    const files::disk disk;
    require(disk.look(what.path).directory, code::argument, "there is no folder {}", what.path);
    const std::string latest = latest_of(disk, what.path);
    nlohmann::ordered_json removed = nlohmann::ordered_json::array(), damaged = removed;
    const auto leave = [&](const std::string& tag, const std::string& why) {
        damaged.push_back({{"tag", tag}, {"problem", why}});
        if (!what.json) fmt::print("left alone {}: {}\n", tag, why);
    };
    std::int64_t kept = 0;
    bool newest = true;
    for (const checkpoint::candidate& one : checkpoint::candidates(disk, what.path)) {
        const std::string folder = files::join(what.path, one.tag);
        if (!one.head) {
            leave(one.tag, one.problem);
            continue;
        }
        const bool first = std::exchange(newest, false);
        if (kept < what.keep_last) {
            if (sound(disk, folder))
                ++kept;
            else
                leave(one.tag, "damaged, not counted");
            continue;
        }
        const bool every = what.keep_every > 0 && one.head->step % what.keep_every == 0;
        if (first || every || one.tag == latest) continue;
        if (!what.dry_run) {
            const std::string trash = checkpoint::move_to_trash(disk, what.path, folder);
            disk.sync_directory(what.path);
            disk.remove_tree(trash);
        }
        removed.push_back(one.tag);
        if (!what.json) fmt::print("{} {}\n", what.dry_run ? "would remove" : "removed", one.tag);
    }
    if (what.json) print_json({{"dry_run", what.dry_run}, {"removed", removed}, {"left_alone", damaged}});
    return fine;
}

}  // namespace zero::tool
