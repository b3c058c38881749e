// From JSON, text and numbers to checked values; see convert.hpp. Numbers are strict (no 5.5 for an integer, no "5" for
// a number) except that an integer may be written as a real number with an integral value: 5e8.
#include "config/convert.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include "core/error.hpp"

namespace zero::config {
namespace {

bool equal_any_case(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

struct bound {
    bool given = false, excluded = false;
    std::string_view digits;
};
bound parse_bound(std::string_view text) {
    if (text.empty()) return {};
    const bool excluded = text[0] == '>' || text[0] == '<';
    return {true, excluded, excluded ? text.substr(1) : text};
}

template <typename number>
number to_number(std::string_view digits) {
    number parsed{};
    std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
    return parsed;
}

template <typename number>
bool in_range(const option& row, number given) {
    const bound least = parse_bound(row.least), most = parse_bound(row.most);
    if (least.given) {
        const number edge = to_number<number>(least.digits);
        if (given < edge || (least.excluded && given == edge)) return false;
    }
    if (most.given) {
        const number edge = to_number<number>(most.digits);
        if (given > edge || (most.excluded && given == edge)) return false;
    }
    return true;
}

[[noreturn]] void refuse(const option& row, const std::string& shown, const std::string& given) {
    fail(code::config, "{} is {}: it must be {}", shown, shortened(given), expectation(row));
}

std::string range_text(const option& row) {
    const bound least = parse_bound(row.least), most = parse_bound(row.most);
    std::string text;
    if (least.given)
        text += formatted(" {} {}", least.excluded ? "above" : most.given ? "from" : "of at least", least.digits);
    if (most.given)
        text += formatted(" {} {}", most.excluded ? "below" : least.given ? "to" : "of at most", most.digits);
    if (least.given && most.given && most.excluded)
        text = formatted(" from {} to below {}", least.digits, most.digits);
    if (least.given && most.given && least.excluded)
        text = formatted(" above {} and at most {}", least.digits, most.digits);
    return text;
}

value integer_from_json(const option& row, const std::string& shown, const json& given) {
    if (given.is_number_unsigned()) {
        const auto number = given.get<std::uint64_t>();
        if (number > static_cast<std::uint64_t>(INT64_MAX)) refuse(row, shown, dump(given));
        return from_integer(row, shown, static_cast<std::int64_t>(number));
    }
    if (given.is_number_integer()) return from_integer(row, shown, given.get<std::int64_t>());
    if (given.is_number_float()) return from_real(row, shown, given.get<double>());
    refuse(row, shown, dump(given));
}

double checked_real(const option& row, const std::string& shown, double given) {
    if (!std::isfinite(given) || !in_range(row, given)) refuse(row, shown, formatted("{}", given));
    return given;
}

value reals_from_json(const option& row, const std::string& shown, const json& given) {
    if (!given.is_array() || given.size() != 2) refuse(row, shown, dump(given));
    std::vector<double> numbers;
    for (const json& each : given) {
        if (!each.is_number() || !std::isfinite(each.get<double>()) || !in_range(row, each.get<double>())) {
            refuse(row, shown, dump(given));
        }
        numbers.push_back(each.get<double>());
    }
    return numbers;
}

value text_value(const option& row, const std::string& shown, const std::string& given) {
    constexpr std::size_t longest_text = 4096;
    if (row.words.empty()) {
        const bool printable =
            std::none_of(given.begin(), given.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
        require(printable && given.size() <= longest_text, code::config,
                "{} must be a text of at most {} bytes without control characters", shown, longest_text);
        return given;
    }
    const std::string word = spelling(row.words, given);
    if (word.empty()) refuse(row, shown, "\"" + given + "\"");
    return word;
}

}  // namespace

std::vector<std::string> words_of(std::string_view list) {
    std::vector<std::string> words;
    while (!list.empty()) {
        const std::size_t bar = list.find('|');
        words.emplace_back(list.substr(0, bar));
        list = bar == std::string_view::npos ? std::string_view() : list.substr(bar + 1);
    }
    return words;
}

std::string spelling(std::string_view list, std::string_view word) {
    for (std::string_view known : words_of(list)) {
        if (known.starts_with('!')) known.remove_prefix(1);
        if (equal_any_case(known, word)) return std::string(known);
    }
    return "";
}

bool is_refused_word(const option& row, const std::string& word) {
    const auto words = words_of(row.words);
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view each) { return each.starts_with('!') && each.substr(1) == word; });
}

std::string shown_words(const option& row, bool refused_too) {
    std::string text;
    for (std::string_view each : words_of(row.words)) {
        const bool refused = each.starts_with('!');
        if (refused && !refused_too) continue;
        if (refused) each.remove_prefix(1);
        text += (text.empty() ? "" : ", ") + std::string(each);
    }
    return text;
}

std::string expectation(const option& row) {
    std::string text;
    switch (row.type) {
        case kind::boolean:
            text = "true or false";
            break;
        case kind::integer:
            text = "an integer" + range_text(row);
            break;
        case kind::real:
            text = "a number" + range_text(row);
            break;
        case kind::reals:
            text = "an array of two numbers, each" + range_text(row);
            break;
        case kind::text:
            text = row.words.empty() ? "a text" : "one of " + shown_words(row, false);
            break;
        case kind::object:
            text = "JSON";
            break;
    }
    if (row.type == kind::integer && !row.words.empty()) text += " or one of " + shown_words(row, false);
    return row.automatic ? text + ", or \"auto\"" : text;
}

bool is_auto(const option& row, const value& what) {
    const auto* text = std::get_if<std::string>(&what);
    return row.automatic && row.type != kind::text && text != nullptr && *text == "auto";
}

value from_integer(const option& row, const std::string& shown, std::int64_t given) {
    if (row.type == kind::real) return checked_real(row, shown, static_cast<double>(given));
    if (row.type == kind::boolean) {
        if (given != 0 && given != 1) fail(code::config, "{} is {}: it must be 0 (false) or 1 (true)", shown, given);
        return given == 1;
    }
    if (row.type != kind::integer || !in_range(row, given)) refuse(row, shown, formatted("{}", given));
    return given;
}

value from_real(const option& row, const std::string& shown, double given) {
    if (row.type == kind::real) return checked_real(row, shown, given);
    constexpr double beyond = 9223372036854775808.0;  // 2^63
    const bool integral = std::isfinite(given) && given == std::floor(given) && given < beyond && given >= -beyond;
    if (row.type != kind::integer || !integral) refuse(row, shown, formatted("{}", given));
    return from_integer(row, shown, static_cast<std::int64_t>(given));
}

value from_json(const option& row, const std::string& shown, const json& given) {
    if (row.automatic && given.is_string() && given.get_ref<const std::string&>() == "auto") return std::string("auto");
    switch (row.type) {
        case kind::boolean:
            if (!given.is_boolean()) refuse(row, shown, dump(given));
            return given.get<bool>();
        case kind::integer:
            if (given.is_string()) {
                const std::string word = spelling(row.words, given.get_ref<const std::string&>());
                if (!word.empty()) return from_text(row, shown, word);
            }
            return integer_from_json(row, shown, given);
        case kind::real:
            if (!given.is_number()) refuse(row, shown, dump(given));
            return checked_real(row, shown, given.get<double>());
        case kind::reals:
            return reals_from_json(row, shown, given);
        case kind::text:
            if (!given.is_string()) refuse(row, shown, dump(given));
            return text_value(row, shown, given.get_ref<const std::string&>());
        case kind::object:
            return dump(given);
    }
    fail(code::internal, "{} has a type that the parser does not know", shown);
}

value from_text(const option& row, const std::string& shown, const std::string& given) {
    if (row.type == kind::text) return text_value(row, shown, given);
    if (row.automatic && given == "auto") return std::string("auto");
    if (row.type == kind::boolean && (given == "0" || given == "1")) return given == "1";
    if (row.type == kind::integer && !row.words.empty()) {
        const std::string word = spelling(row.words, given);
        const auto words = words_of(row.words);
        const auto at = std::find(words.begin(), words.end(), word);
        if (at != words.end()) return from_integer(row, shown, at - words.begin());
    }
    json parsed;
    if (!parse_value(given, parsed)) refuse(row, shown, "\"" + given + "\"");
    return from_json(row, shown, parsed);
}

value standard_value(const option& row) {
    return from_json(row, std::string(row.path), json::parse(row.standard));
}

json to_json(const option& row, const value& what) {
    if (row.type == kind::object) return json::parse(std::get<std::string>(what));
    return std::visit([](const auto& each) { return json(each); }, what);
}

std::string show(const option& row, const value& what) {
    return dump(to_json(row, what));
}

}  // namespace zero::config
