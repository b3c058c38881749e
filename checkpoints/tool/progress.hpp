// zero-ckpt: a bar with the rate on stderr, where that is a terminal.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "tool.hpp"

namespace zero::tool {

class progress {
public:
    explicit progress(std::int64_t total) : total_(total), shown_(::isatty(STDERR_FILENO) != 0), start_(clock::now()) {}
    ~progress() {
        if (drawn_) std::fputs("\r\033[K", stderr);
    }
    progress(const progress&) = delete;
    progress& operator=(const progress&) = delete;

    void update(std::int64_t done) {
        done_ = done;
        const clock::time_point now = clock::now();
        if (!shown_ || total_ <= 0 || now - last_ < std::chrono::milliseconds(100)) return;
        last_ = now;
        drawn_ = true;
        const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_)),
                     seconds = std::chrono::duration<double>(now - start_).count();
        const int filled = static_cast<int>(part * 40);
        fmt::print(stderr, "\r\033[K[{:#<{}}{:.<{}}] {:3.0f} %  {}/s", "", filled, "", 40 - filled, 100 * part,
                   size_text(static_cast<double>(done) / std::max(seconds, 1e-3)));
        std::fflush(stderr);
    }
    void add(std::int64_t bytes) { update(done_ + bytes); }

private:
    using clock = std::chrono::steady_clock;
    std::int64_t total_, done_ = 0;
    bool shown_, drawn_ = false;
    clock::time_point start_, last_{};
};

}  // namespace zero::tool
