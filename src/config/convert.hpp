// From JSON, text and numbers to a checked value of one row of the table. Not here: where values are kept
// (options.cpp).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "config/json.hpp"
#include "config/options.hpp"

namespace zero::config {

// `shown` names the key in errors (with the environment variable where it came from one). All throw code::config.
value from_json(const option& row, const std::string& shown, const json& given);
value from_text(const option& row, const std::string& shown, const std::string& given);
value from_integer(const option& row, const std::string& shown, std::int64_t given);
value from_real(const option& row, const std::string& shown, double given);

json to_json(const option& row, const value& what);
std::string show(const option& row, const value& what);  // as JSON text
std::string expectation(const option& row);              // "an integer from 0 to 3"
value standard_value(const option& row);                 // of a row that has a default

std::vector<std::string> words_of(std::string_view list);  // of "a|b|c"
bool is_auto(const option& row, const value& what);
// A text value that is one of the row's "!" words: known, but not in this build.
bool is_refused_word(const option& row, const std::string& word);
std::string shown_words(const option& row, bool refused_too);  // "none, cpu, nvme"
// The spelling of the table for a word in any case; "" when the list ("a|!b|c") has it not.
std::string spelling(std::string_view list, std::string_view word);

}  // namespace zero::config
