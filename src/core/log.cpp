// Where log lines go and which are dropped. Not here: what is worth a line.
#include "core/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace zero {

namespace {

constexpr std::string_view words[] = {"error", "warning", "info", "debug"};

std::optional<log_level> parse_level(std::string_view text) {
    for (int level = 0; level < 4; ++level) {
        const bool is_number = text.size() == 1 && text[0] == static_cast<char>('0' + level);
        if (is_number || text == words[level]) return static_cast<log_level>(level);
    }
    return std::nullopt;
}

}  // namespace

log::log(int rank) : rank_(rank) {
    const char* wanted = std::getenv("ZERO_LOG_LEVEL");
    if (wanted == nullptr || *wanted == '\0') return;
    to_stderr_ = true;
    if (const auto level = parse_level(wanted)) {
        most_ = *level;
    } else {
        warning("ZERO_LOG_LEVEL is '{}'; give error, warning, info or debug (0 to 3): taken as info", wanted);
    }
}

void log::redirect(sink target) {
    target_ = std::move(target);
}

bool log::listens(log_level which) const noexcept {
    return which <= most_ && (target_ || to_stderr_);
}

void log::write(log_level which, const std::string& text) {
    if (!listens(which)) return;
    if (target_) {
        target_(which, text);
        return;
    }
    // One call per line, so that lines of several ranks do not mix.
    const std::string line = formatted("zero rank {} {}: {}\n", rank_, words[static_cast<std::size_t>(which)], text);
    std::fwrite(line.data(), 1, line.size(), stderr);
}

void log::once(log_level which, const std::string& text) {
    if (!listens(which)) return;  // not remembered: a listener that comes later still hears it
    if (said_.insert(text).second) write(which, text);
}

}  // namespace zero
