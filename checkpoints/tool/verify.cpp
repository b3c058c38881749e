// zero-ckpt verify: all checksums of one checkpoint, with a bar on a terminal.
#include "checkpoints/verify.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tool.hpp"

namespace zero::tool {
namespace {

using clock = std::chrono::steady_clock;

class bar {
public:
    bar(std::int64_t total, bool shown) : total_(total), shown_(shown), start_(clock::now()) {}
    ~bar() {
        if (drawn_) fmt::print(stderr, "\r\033[K");
    }
    bar(const bar&) = delete;
    bar& operator=(const bar&) = delete;

    void update(std::int64_t done) {
        const clock::time_point now = clock::now();
        if (!shown_ || total_ <= 0 || now - last_ < std::chrono::milliseconds(100)) return;
        last_ = now;
        drawn_ = true;
        const double part = static_cast<double>(done) / static_cast<double>(total_),
                     seconds = std::chrono::duration<double>(now - start_).count();
        const int filled = static_cast<int>(part * 40);
        fmt::print(stderr, "\r\033[K[{:#<{}}{:.<{}}] {:3.0f} %  {}/s", "", filled, "", 40 - filled, 100 * part,
                   size_text(static_cast<double>(done) / std::max(seconds, 1e-3)));
        std::fflush(stderr);
    }

private:
    std::int64_t total_;
    bool shown_, drawn_ = false;
    clock::time_point start_, last_{};
};

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
        bar progress(what.full ? data_bytes(folder) : 0, ::isatty(STDERR_FILENO) != 0);
        found = checkpoint::verify(files::disk(), folder, what.full, [&](std::int64_t done) { progress.update(done); });
    }
    if (what.json) {
        const nlohmann::ordered_json all{{"folder", folder},
                                         {"fine", found.problems.empty()},
                                         {"full", found.full},
                                         {"bytes", found.bytes},
                                         {"problems", found.problems}};
        fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
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
