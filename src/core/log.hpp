// Log lines of one context: to the caller's function, or to stderr when ZERO_LOG_LEVEL is set, or nowhere.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "core/text.hpp"

namespace zero {

enum class log_level : int { error = 0, warning = 1, info = 2, debug = 3 };

class log {
public:
    using sink = std::function<void(log_level, const std::string&)>;

    explicit log(int rank);                 // reads ZERO_LOG_LEVEL once
    void level(log_level most) noexcept { most_ = most; }  // how much; where to is not changed by it
    void redirect(sink target);             // empty: back to the default
    bool listens(log_level which) const noexcept;
    void write(log_level which, const std::string& text);
    void once(log_level which, const std::string& text);  // the same text a second time is dropped

    template <typename... Args>
    void info(fmt::format_string<Args...> format, Args&&... args) {
        if (listens(log_level::info)) write(log_level::info, formatted(format, std::forward<Args>(args)...));
    }
    template <typename... Args>
    void warning(fmt::format_string<Args...> format, Args&&... args) {
        if (listens(log_level::warning)) write(log_level::warning, formatted(format, std::forward<Args>(args)...));
    }

private:
    int rank_;
    log_level most_ = log_level::info;
    bool to_stderr_ = false;
    sink target_;
    std::set<std::string> said_;
};

}  // namespace zero
