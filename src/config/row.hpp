// How a row of the table is written: a constructor per type and one small function per column that differs from the
// usual. Only table.cpp and its sibling sections include this.
#pragma once
#include "config/options.hpp"

namespace zero::config {

struct row : option {
    constexpr row from(std::string_view bound) const { row r = *this; r.least = bound; return r; }
    constexpr row to(std::string_view bound) const { row r = *this; r.most = bound; return r; }
    constexpr row autom() const { row r = *this; r.automatic = true; return r; }
    constexpr row run_time() const { row r = *this; r.when = change::run_time; return r; }
    constexpr row by_init() const { row r = *this; r.when = change::by_init; return r; }
    constexpr row in(std::string_view which) const { row r = *this; r.stages = which; return r; }
    constexpr row of(std::string_view types) const { row r = *this; r.owners = types; return r; }
    constexpr row named(std::string_view list) const { row r = *this; r.words = list; return r; }
    constexpr row means(std::string_view key) const { row r = *this; r.renamed = key; return r; }
    constexpr row instead(std::string_view what) const { row r = *this; r.advice = what; return r; }
    constexpr row no_effect(std::string_view why) const {
        row r = *this;
        r.support = answer::no_effect;
        r.advice = why;
        return r;
    }
    constexpr row only_default(std::string_view why) const {
        row r = no_effect(why);
        r.anyway = true;
        return r;
    }
    constexpr row unsupported(std::string_view what) const {
        row r = *this;
        r.support = answer::unsupported;
        r.advice = what;
        return r;
    }
};

constexpr row make(kind type, std::string_view path, std::string_view standard, std::string_view text) {
    option made{};
    made.path = path;
    made.type = type;
    made.standard = standard;
    made.text = text;
    made.stages = "0123";
    return row{made};
}
constexpr row flag(std::string_view path, std::string_view standard, std::string_view text) {
    return make(kind::boolean, path, standard, text);
}
constexpr row integer(std::string_view path, std::string_view standard, std::string_view text) {
    return make(kind::integer, path, standard, text).from("0");
}
constexpr row real(std::string_view path, std::string_view standard, std::string_view text) {
    return make(kind::real, path, standard, text).from("0");
}
constexpr row word(std::string_view path, std::string_view standard, std::string_view words, std::string_view text) {
    return make(kind::text, path, standard, text).named(words);
}
constexpr row pair(std::string_view path, std::string_view standard, std::string_view text) {
    return make(kind::reals, path, standard, text).from("0").to("<1");
}
constexpr row object(std::string_view path, std::string_view text) { return make(kind::object, path, "", text); }

}  // namespace zero::config
