// Looking up keys: exactly, by the nearest spelling, and their environment names.
// Not here: the rows themselves (table.cpp).
#include "config/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <vector>

#include "config/options.hpp"

namespace zero::config {
namespace {

constexpr std::size_t longest_compared = 96;  // a wrong key may be megabytes long; its start is enough

// "groups.12.lr" -> {"groups.*.lr", "12"}; leading zeros are no group number, so that each group has one spelling.
struct starred {
    std::string path;
    std::string number;
};
starred star(std::string_view path) {
    constexpr std::string_view section = "groups.";
    if (!path.starts_with(section)) return {std::string(path), ""};
    const std::size_t end = path.find('.', section.size());
    if (end == std::string_view::npos) return {std::string(path), ""};
    const std::string_view number = path.substr(section.size(), end - section.size());
    const bool digits = !number.empty() && number.size() <= 9 &&
                        std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || (number.size() > 1 && number[0] == '0')) return {std::string(path), ""};
    return {"groups.*" + std::string(path.substr(end)), std::string(number)};
}

// A right last word in the wrong section counts little.
int last_word_distance(std::string_view wrong, std::string_view known) {
    constexpr int wrong_section = 2;
    return edit_distance(last_word(wrong), last_word(known)) + wrong_section;
}

}  // namespace

const option* find(std::string_view path) noexcept {
    static const std::unordered_map<std::string_view, const option*> index = [] {
        std::unordered_map<std::string_view, const option*> made;
        for (const option& row : table()) made.emplace(row.path, &row);
        return made;
    }();
    if (path.size() > longest_compared || path.find('*') != std::string_view::npos) return nullptr;
    const auto at = index.find(path);
    if (at != index.end()) return at->second;
    const starred group = star(path);
    const auto in_group = index.find(group.path);
    return in_group != index.end() ? in_group->second : nullptr;
}

int edit_distance(std::string_view a, std::string_view b) {
    std::vector<int> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        int diagonal = row[0];
        row[0] = static_cast<int>(i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const int above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

std::string_view last_word(std::string_view path) noexcept {
    const std::size_t dot = path.rfind('.');
    return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

int key_distance(std::string_view wrong, std::string_view known) {
    return std::min(edit_distance(wrong, known), last_word_distance(wrong, known));
}

std::string nearest(std::string_view path) {
    const starred wrong = star(path.substr(0, longest_compared));
    const option* best = nullptr;
    int smallest = 0, smallest_full = 0;
    for (const option& row : table()) {
        const int full = edit_distance(wrong.path, row.path);
        const int distance = std::min(full, last_word_distance(wrong.path, row.path));
        if (best == nullptr || distance < smallest || (distance == smallest && full < smallest_full)) {
            best = &row;
            smallest = distance;
            smallest_full = full;
        }
    }
    std::string key(best->path);
    const std::size_t at = key.find('*');
    if (at != std::string::npos) key.replace(at, 1, wrong.number.empty() ? "<n>" : wrong.number);
    return key;
}

std::string environment_name(std::string_view path) {
    std::string name = "ZERO_";
    for (const char c : path) {
        name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    return name;
}

}  // namespace zero::config
