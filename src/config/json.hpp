// Reading JSON strictly: no key twice in one object at any depth, bounded depth and size, errors as sentences.
// Not here: what the keys mean (options.cpp).
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace zero::config {

using json = nlohmann::json;

constexpr int deepest_json = 64;
constexpr std::size_t largest_json = std::size_t{64} << 20;  // bytes

// The object in `text`; `source` names it in errors ("the configuration file x.json"). Throws code::config.
json parse_object(const std::string& text, const std::string& source);
// One JSON value, as in an environment variable or zero_set_text; false when it is none.
bool parse_value(const std::string& text, json& value);

// The text of a configuration: `file_or_text` itself when its first non-blank is '{', else the file's content; "{}"
// when blank. `source` receives what it was. Throws code::config, code::io.
std::string configuration_text(const std::string& file_or_text, std::string& source);

std::string shortened(const std::string& text);  // for messages: printable, at most about 100 bytes
std::string dump(const json& value);             // never throws on bad UTF-8

}  // namespace zero::config
