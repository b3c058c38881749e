// Reading JSON strictly; see json.hpp.
#include "config/json.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <vector>

#include "core/error.hpp"

namespace zero::config {
namespace {

// Follows the parser through nested objects and refuses a key that an object already has.
class strict_walk {
public:
    explicit strict_walk(const std::string& source) : source_(source) {}

    bool operator()(int depth, json::parse_event_t event, const json& parsed) {
        using at = json::parse_event_t;
        if (event == at::object_start || event == at::array_start) {
            require(depth < deepest_json, code::config, "{} is nested deeper than {} levels", source_, deepest_json);
            levels_.push_back({});
        } else if (event == at::object_end || event == at::array_end) {
            levels_.pop_back();
        } else if (event == at::key) {
            add(parsed.get_ref<const std::string&>());
        }
        return true;
    }

private:
    struct level {
        std::set<std::string> keys;
        std::string current;
    };

    void add(const std::string& key) {
        level& here = levels_.back();
        here.current = key;
        if (here.keys.insert(key).second) return;
        std::string path;
        for (const level& each : levels_) {
            if (each.current.empty()) continue;
            path += (path.empty() ? "" : ".") + each.current;
        }
        fail(code::config, "{} has the key \"{}\" twice: keep one of them", source_, shortened(path));
    }

    const std::string& source_;
    std::vector<level> levels_;
};

// nlohmann's texts start with "[json.exception.parse_error.101] "; the rest is a sentence.
std::string without_tag(const char* what) {
    const char* end = std::strchr(what, ']');
    return what[0] == '[' && end != nullptr && end[1] == ' ' ? end + 2 : what;
}

struct closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

std::string file_content(const std::string& path) {
    std::error_code ignored;
    require(!std::filesystem::is_directory(path, ignored), code::io,
            "the configuration \"{}\" is a folder: give a JSON file or JSON text", shortened(path));
    errno = 0;
    const std::unique_ptr<std::FILE, closer> file(std::fopen(path.c_str(), "rb"));
    require(file != nullptr, code::io,
            "the configuration \"{}\" is neither JSON text (which starts with '{{') nor a file that can be read: {}",
            shortened(path), std::strerror(errno));
    std::string text;
    std::vector<char> block(std::size_t{1} << 16);
    while (text.size() <= largest_json) {
        const std::size_t got = std::fread(block.data(), 1, block.size(), file.get());
        text.append(block.data(), got);
        if (got < block.size()) break;
    }
    require(std::ferror(file.get()) == 0, code::io, "the configuration file \"{}\" cannot be read: {}", shortened(path),
            std::strerror(errno));
    return text;
}

}  // namespace

json parse_object(const std::string& text, const std::string& source) {
    require(text.size() <= largest_json, code::config, "{} is larger than {} MiB", source, largest_json >> 20);
    // The parser takes a NUL for the end of its input; what stands behind it would be ignored in silence.
    require(text.find('\0') == std::string::npos, code::config, "{} holds a NUL byte", source);
    json parsed;
    try {
        constexpr bool throws = true, comments = true;
        parsed = json::parse(text, strict_walk(source), throws, comments);
    } catch (const json::exception& wrong) {
        fail(code::config, "{} is not valid JSON: {}", source, shortened(without_tag(wrong.what())));
    }
    require(parsed.is_object(), code::config, "{} must be a JSON object", source);
    return parsed;
}

bool parse_value(const std::string& text, json& value) {
    if (text.size() > largest_json || text.find('\0') != std::string::npos) return false;
    bool too_deep = false;
    const auto depth_only = [&](int depth, json::parse_event_t, const json&) {
        too_deep = too_deep || depth > deepest_json;
        return !too_deep;
    };
    value = json::parse(text, depth_only, false);
    return !too_deep && !value.is_discarded();
}

std::string configuration_text(const std::string& file_or_text, std::string& source) {
    require(file_or_text.find('\0') == std::string::npos, code::config, "the configuration holds a NUL byte");
    const std::size_t first = file_or_text.find_first_not_of(" \t\r\n");
    source = "the configuration text";
    if (first == std::string::npos) return "{}";
    if (file_or_text[first] == '{') return file_or_text;
    require(file_or_text.find('\n') == std::string::npos, code::config,
            "the configuration \"{}\" is neither JSON text (which starts with '{{') nor the name of a file",
            shortened(file_or_text));
    source = formatted("the configuration file \"{}\"", shortened(file_or_text));
    return file_content(file_or_text);
}

std::string shortened(const std::string& text) {
    constexpr std::size_t longest = 160;
    std::string shown;
    for (const char c : text.substr(0, longest)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
            shown += '?';
        } else {
            shown += c;
        }
    }
    return text.size() > longest ? shown + "..." : shown;
}

std::string dump(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace zero::config
