// zero-ckpt verify: all checksums of one checkpoint, with a bar on a terminal.
#include "checkpoints/verify.hpp"

#include <fmt/format.h>

#include "answer.hpp"
#include "progress.hpp"
#include "tool.hpp"

namespace zero::tool {
namespace {

std::int64_t data_bytes(const std::string& folder) {
    try {
        return checkpoint::read_manifest(files::disk(), folder).head.bytes;
    } catch (const error&) {
        return 0;  // verify says what is wrong
    }
}

}  // namespace

int verify(const options& what) {
    const std::string folder = checkpoint_at(what.path);
    if (folder.empty()) {
        fmt::print(stderr, "zero-ckpt: there is no checkpoint in {}\n", what.path);
        return nothing_there;
    }
    checkpoint::verification found;
    {
        progress bar(what.full ? data_bytes(folder) : 0);
        found = checkpoint::verify(files::disk(), folder, what.full, [&](std::int64_t done) { bar.update(done); });
    }
    if (what.json) {
        print_json({{"folder", folder},
                    {"fine", found.problems.empty()},
                    {"full", found.full},
                    {"bytes", found.bytes},
                    {"problems", found.problems}});
    } else if (found.problems.empty()) {
        fmt::print("{}: fine ({})\n", folder,
                   found.full ? size_text(static_cast<double>(found.bytes)) + " of data and all else summed"
                              : "manifest, lengths, frames, index; --full sums the data too");
    } else {
        for (const std::string& problem : found.problems) fmt::print("{}\n", problem);
    }
    return found.problems.empty() ? fine : damaged_found;
}

}  // namespace zero::tool
