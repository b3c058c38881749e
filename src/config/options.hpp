// The one table of options and a set of their values. Every key has one row (table.cpp): path, type, default, range,
// whether it may change at run time, what this build does with it, one line of text. The parser, the error messages,
// the environment names, docs/options.md and the man page come from that table.
// Not here: what the options do. `settings.hpp` turns a set into the typed numbers that the rest of the library reads.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace zero::config {

// reals: two numbers (betas); object: any JSON, not read
enum class kind { boolean, integer, real, text, reals, object };
enum class change { before_commit, run_time, by_init };  // by_init: zero_init reads it
enum class answer {
    honoured,
    no_effect,     // accepted, said once in the log, with the reason in `advice`
    unsupported,   // anything but the default is ZERO_ERR_UNSUPPORTED with a sentence that names the key and `advice`
};

struct option {
    std::string_view path;          // "zero_optimization.reduce_bucket_size"
    kind type;
    std::string_view standard;      // default, as JSON text; "" = none (key absent, null allowed)
    std::string_view least, most;   // range, as JSON numbers; "" = open; ">0" and "<1" exclude the bound
    std::string_view words;         // text: allowed words, "|" between, any case; "!" before a word: known, but not in
                                    // this build; "" = any text. integer: names of 0, 1, 2 ...
    bool automatic;                 // "auto" is allowed
    change when;
    answer support;
    std::string_view text;
    bool anyway;                    // no_effect: the default is what happens anyway, so only another value is said
    std::string_view advice;        // no_effect: why; unsupported (or a "!" word): what to do instead
    std::string_view stages;        // stages in which it matters: "0123"
    std::string_view owners;        // optimizer or scheduler types that have this key, "|" between; "" = no such limit
    std::string_view renamed;       // an old name: the key (or keys, "|" between) that it means
};
std::span<const option> table() noexcept;
const option* find(std::string_view path) noexcept;              // null when unknown; "groups.3.lr" finds "groups.*.lr"
std::string nearest(std::string_view path);                      // the known key with the smallest edit distance
std::string environment_name(std::string_view path);             // ZERO_ZERO_OPTIMIZATION_STAGE

using value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

// Values over the table: default < file < environment < set(). Keys of groups ("groups.<n>.lr") are rows of the table
// under "groups.*." and are kept per group. A call that throws changes nothing.
class options {
public:
    options() = default;

    // Path of a JSON file, JSON text (first non-blank is '{'), or empty. Reads the environment too when asked.
    // Throws code::config (key named, nearest known key for unknown ones), code::unsupported, code::io (file).
    void read(const std::string& file_or_text, bool with_environment = true);
    // Options of one parameter group; the group becomes known.
    void add_group(const std::string& json, int group);

    void set(const std::string& path, std::int64_t number);      // booleans: 0 or 1
    void set(const std::string& path, double number);
    // JSON text for arrays and booleans, else the word itself.
    void set(const std::string& path, const std::string& text);

    bool has(const std::string& path) const;                     // set by anyone, not just the default
    bool is_auto(const std::string& path) const;
    // An "auto" value reads as the default. Throw code::config for an unknown key, another type, or no value at all.
    bool boolean(const std::string& path) const;
    std::int64_t integer(const std::string& path) const;         // booleans read as 0 and 1
    double real(const std::string& path) const;                  // integers too
    // Other types as JSON text, so that any key can be shown.
    std::string text(const std::string& path) const;
    std::vector<double> reals(const std::string& path) const;
    bool is_run_time(const std::string& path) const;             // throws code::config for an unknown path
    bool is_read_by_init(const std::string& path) const;         // likewise
    const std::map<std::string, value>& given() const noexcept { return values_; }

    // Everything that was set, sorted: saved, compared over ranks.
    std::string as_json() const;
    std::string as_lines() const;                                // the same, a line each: "zero_optimization.stage = 2"
    // "no effect" and unknown top-level keys, one line each.
    std::vector<std::string> notices() const;
    // Of those, what is probably a slip: a name close to a known one.
    const std::vector<std::string>& doubts() const noexcept { return doubts_; }

private:
    friend class reader;
    void accept(const std::string& path, const option& row, const value& what);
    void note(const std::string& line);
    void doubt(const std::string& line, const std::string& meant);
    value current(const std::string& path) const;

    std::map<std::string, value> values_;
    std::vector<std::string> notices_, doubts_;
    int groups_ = 1;                                             // groups 0 .. groups_-1 exist
};

}  // namespace zero::config
