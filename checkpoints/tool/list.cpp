// zero-ckpt list: one line per checkpoint, from the first lines of the manifests.
#include <fmt/format.h>

#include "answer.hpp"
#include "checkpoints/directory.hpp"
#include "tool.hpp"

namespace zero::tool {
namespace {

void print_entries(const std::vector<checkpoint::candidate>& found) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const checkpoint::candidate& one : found) {
        nlohmann::ordered_json entry{{"tag", one.tag}, {"whole", one.head.has_value()}};
        if (one.head)
            entry.update({{"sequence", one.head->sequence},
                          {"step", one.head->step},
                          {"time", one.head->time},
                          {"ranks", one.head->ranks},
                          {"model_ranks", one.head->model_ranks},
                          {"stage", one.head->stage},
                          {"bytes", one.head->bytes},
                          {"uuid", one.head->uuid}});
        else
            entry["problem"] = one.problem;
        all.push_back(entry);
    }
    print_json(all);
}

void print_table(const std::vector<checkpoint::candidate>& found) {
    std::size_t width = 3;
    for (const checkpoint::candidate& one : found) width = std::max(width, one.tag.size());
    fmt::print("{:<{}}  {:>8}  {:>12}  {:<20}  {:>6}  {:>5}  {:>10}\n", "tag", width, "sequence", "step", "time",
               "ranks", "stage", "data");
    for (const checkpoint::candidate& one : found) {
        if (!one.head) {
            fmt::print("{:<{}}  damaged: {}\n", one.tag, width, one.problem);
            continue;
        }
        const checkpoint::head& head = *one.head;
        const std::string ranks =
            head.model_ranks > 1 ? formatted("{}x{}", head.model_ranks, head.ranks) : formatted("{}", head.ranks);
        fmt::print("{:<{}}  {:>8}  {:>12}  {:<20}  {:>6}  {:>5}  {:>10}\n", one.tag, width, head.sequence, head.step,
                   head.time, ranks, head.stage, size_text(static_cast<double>(head.bytes)));
    }
}

}  // namespace

std::string size_text(double bytes) {
    const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    std::size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
    return unit == 0 ? formatted("{:.0f} B", bytes) : formatted("{:.1f} {}", bytes, units[unit]);
}

std::string checkpoint_at(const std::string& path) {
    const files::disk disk;
    if (!disk.look(path).directory) return "";
    if (disk.look(files::join(path, checkpoint::manifest_name)).exists) return path;
    const std::vector<checkpoint::candidate> found = checkpoint::candidates(disk, path);
    return found.empty() ? "" : files::join(path, found.front().tag);
}

int list(const options& what) {
    const files::disk disk;
    if (!disk.look(what.path).directory) {
        fmt::print(stderr, "zero-ckpt: there is no folder {}\n", what.path);
        return nothing_there;
    }
    const std::vector<checkpoint::candidate> found = checkpoint::candidates(disk, what.path);
    if (what.json)
        print_entries(found);
    else if (!found.empty())
        print_table(found);
    if (found.empty() && !what.json) fmt::print(stderr, "zero-ckpt: there is no checkpoint in {}\n", what.path);
    return found.empty() ? nothing_there : fine;
}

}  // namespace zero::tool
