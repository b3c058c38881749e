// Edit distance between keys, for "did you mean". Not here: which keys exist (table.cpp).
#pragma once
#include <string_view>

namespace zero::config {

int edit_distance(std::string_view a, std::string_view b);  // Levenshtein: insertions, deletions, replacements
// Distance of a wrong path to a known key; a right last word in the wrong section counts little.
int key_distance(std::string_view wrong, std::string_view known);
std::string_view last_word(std::string_view path) noexcept;

}  // namespace zero::config
