// A set of values over the table: reading files, text and environment, setting, getting. See options.hpp.
#include "config/options.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "config/checks.hpp"
#include "config/convert.hpp"
#include "config/json.hpp"
#include "config/nearest.hpp"
#include "core/error.hpp"

namespace zero::config {
namespace {

[[noreturn]] void refuse_unknown(const std::string& path) {
    fail(code::config, "unknown key \"{}\"; the nearest known key is \"{}\"", shortened(path), nearest(path));
}

const option& known(const std::string& path) {
    const option* row = find(path);
    if (row == nullptr) refuse_unknown(path);
    return *row;
}

bool is_section(const std::string& path) {
    const std::string start = path + ".";
    if (path.starts_with("groups.")) return path.find('.', sizeof "groups.") == std::string::npos;
    const auto rows = table();
    return std::any_of(rows.begin(), rows.end(), [&](const option& row) { return row.path.starts_with(start); });
}

// The known section whose name is closest.
std::string nearest_section(const std::string& path) {
    std::string best;
    for (const option& row : table()) {
        const std::string name(row.path.substr(0, row.path.find('.')));
        if (name.size() == row.path.size()) continue;
        if (best.empty() || edit_distance(path, name) < edit_distance(path, best)) best = name;
    }
    return best;
}

// Sections of DeepSpeed that this library only tolerates: a key that is new there is said, not refused.
bool is_lenient(const std::string& section) {
    return section.empty() || section == "aio" || section == "comms_logger" || section == "csv_monitor";
}

// Defaults that depend on other keys.
bool derived_default(const options& from, const std::string& path, value& what) {
    const bool adagrad = path.starts_with("optimizer.params.") && from.text("optimizer.type") == "Adagrad";
    if (path == "zero_optimization.overlap_comm") {
        what = from.integer("zero_optimization.stage") == 3;
    } else if (path == "optimizer.params.lr" && adagrad) {
        what = 1e-2;
    } else if (path == "optimizer.params.eps" && adagrad) {
        what = 1e-10;
    } else if (path == "gradient_accumulation_steps") {
        what = std::int64_t{1};
    } else {
        return false;
    }
    return true;
}

// An old name reads and writes the key that it means; cpu_offload: true means device "cpu".
value translate(const option& target, const value& what) {
    if (target.type != kind::text) return what;
    return std::string(std::get<bool>(what) ? "cpu" : "none");
}

}  // namespace

// One JSON text being read into options.
class reader {
public:
    explicit reader(options& target) : target_(target) {}

    void walk(const json& section, const std::string& prefix) {
        for (const auto& [key, given] : section.items()) {
            const std::string name = prefix.empty() && key == "bfloat16" ? "bf16" : key;  // old name of the section
            take(prefix.empty() ? name : prefix + "." + name, prefix, given);
        }
    }

    void environment() {
        std::set<std::string> known{"ZERO_LOG_LEVEL"};
        for (const option& row : table()) {
            std::string path(row.path);
            const std::size_t star = path.find('*');
            if (star != std::string::npos) {
                known.insert(environment_name(path));
                path.replace(star, 1, "0");  // only group 0 exists when a context begins
            }
            const std::string name = environment_name(path);
            known.insert(name);
            const char* text = std::getenv(name.c_str());
            if (text == nullptr || *text == '\0') continue;
            const std::string shown = formatted("{} (environment variable {})", path, name);
            target_.accept(path, row, from_text(row, shown, text));
        }
        misspelt_variables(known);
    }

private:
    // Variables that begin like ours and are none of ours.
    void misspelt_variables(const std::set<std::string>& known) {
        for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
            const std::string_view entry(*one);
            const std::string name(entry.substr(0, std::min<std::size_t>(entry.find('='), 96)));
            if (!name.starts_with("ZERO_") || known.count(name) != 0) continue;
            for (const std::string& right : known) {
                if (edit_distance(name, right) > 2) continue;
                target_.doubt(formatted("environment variable {} is unknown and ignored", name), right);
                break;
            }
        }
    }

    void take(const std::string& path, const std::string& prefix, const json& given) {
        const option* row = find(path);
        if (row != nullptr) return leaf(path, *row, given);
        if (is_section(path)) return section(path, given);
        if (!is_lenient(prefix)) refuse_unknown(path);
        const std::string line = formatted("unknown key \"{}\" is ignored", shortened(path));
        const std::string start = path.substr(0, 96), key = nearest(path), near_section = prefix.empty() ? nearest_section(start) : "";
        if (key_distance(start, key) <= 3) target_.doubt(line, key);
        else if (!near_section.empty() && edit_distance(start, near_section) <= 3) target_.doubt(line, near_section);
        else target_.note(line);
    }

    void section(const std::string& path, const json& given) {
        if (given.is_null()) return;
        if (path == "zero_optimization" && given.is_boolean()) {  // DeepSpeed's oldest form
            return take("zero_optimization.stage", path, json(given.get<bool>() ? 1 : 0));
        }
        require(given.is_object(), code::config, "{} is {}: it must be a section {{...}}", path,
                shortened(dump(given)));
        if (path.starts_with("groups.")) check_group(path);
        walk(given, path);
    }

    void check_group(const std::string& path) {
        const std::string number = path.substr(sizeof "groups." - 1);
        require(find(path + ".lr") != nullptr && std::stoi(number) < target_.groups_, code::config,
                "{} does not exist: groups are numbered from 0 and made by zero_group", shortened(path));
    }

    void leaf(const std::string& path, const option& row, const json& given) {
        if (given.is_null()) {
            require(row.standard.empty(), code::config, "{} is null: it must be {}", path, expectation(row));
            return;
        }
        for (const std::string& meant : row.renamed.empty() ? std::vector<std::string>{path} : words_of(row.renamed)) {
            const auto [at, first] = sources_.emplace(meant, path);
            require(first, code::config, "\"{}\" and \"{}\" give the same option twice: keep one of them", at->second,
                    path);
        }
        const bool old_stage = path == "zero_optimization.stage" && given.is_boolean();
        target_.accept(path, row, from_json(row, path, old_stage ? json(given.get<bool>() ? 1 : 0) : given));
    }

    options& target_;
    std::map<std::string, std::string> sources_;  // option -> the key that gave it
};

void options::note(const std::string& line) {
    if (std::find(notices_.begin(), notices_.end(), line) == notices_.end()) notices_.push_back(line);
}

void options::doubt(const std::string& line, const std::string& meant) {
    const std::string whole = formatted("{}; did you mean \"{}\"?", line, meant);
    note(whole);
    if (std::find(doubts_.begin(), doubts_.end(), whole) == doubts_.end()) doubts_.push_back(whole);
}

void options::accept(const std::string& path, const option& row, const value& what) {
    if (!row.renamed.empty()) {
        for (const std::string& meant : words_of(row.renamed)) {
            const option& target = *find(meant);
            const bool number = target.type == kind::integer && !std::holds_alternative<std::string>(what);
            accept(meant, target,
                   number ? from_integer(target, path, std::get<std::int64_t>(what)) : translate(target, what));
        }
        return;
    }
    const bool usual = !row.standard.empty() && standard_value(row) == what;
    if (row.support == answer::unsupported && !usual) {
        fail(code::unsupported, "{} = {} is not possible in this build: {}", path, shortened(show(row, what)),
             row.advice);
    }
    const bool asks = !row.anyway && std::holds_alternative<bool>(what) && std::get<bool>(what);
    if (row.support == answer::no_effect && (!usual || asks))
        note(formatted("{} has no effect: {}", path, row.advice));
    values_[path] = what;
}

void options::read(const std::string& file_or_text, bool with_environment) {
    std::string source;
    const std::string text = configuration_text(file_or_text, source);
    options next = *this;
    reader reading(next);
    reading.walk(parse_object(text, source), "");
    if (with_environment) reading.environment();
    check_words(next);
    check_owners(next);
    *this = std::move(next);
}

void options::add_group(const std::string& text, int group) {
    const std::string source = formatted("the options of group {}", group);
    const bool blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
    options next = *this;
    next.groups_ = std::max(next.groups_, group + 1);
    reader reading(next);
    reading.walk(parse_object(blank ? "{}" : text, source), formatted("groups.{}", group));
    *this = std::move(next);
}

namespace {
void check_group_exists(const std::string& path, int groups) {
    constexpr std::string_view section = "groups.";
    if (!path.starts_with(section)) return;
    const int number = std::stoi(path.substr(section.size()));
    require(number < groups, code::config, "{} cannot be set: group {} does not exist, zero_group makes groups", path,
            number);
}
}  // namespace

void options::set(const std::string& path, std::int64_t number) {
    const option& row = known(path);
    check_group_exists(path, groups_);
    options next = *this;
    next.accept(path, row, from_integer(row, path, number));
    check_words(next);
    *this = std::move(next);
}

void options::set(const std::string& path, double number) {
    const option& row = known(path);
    check_group_exists(path, groups_);
    options next = *this;
    next.accept(path, row, from_real(row, path, number));
    check_words(next);
    *this = std::move(next);
}

void options::set(const std::string& path, const std::string& text) {
    require(text.find('\0') == std::string::npos, code::config, "the value of {} holds a NUL byte", shortened(path));
    const option& row = known(path);
    check_group_exists(path, groups_);
    options next = *this;
    next.accept(path, row, from_text(row, path, text));
    check_words(next);
    *this = std::move(next);
}

bool options::has(const std::string& path) const {
    const option& row = known(path);
    return values_.contains(row.renamed.empty() ? path : words_of(row.renamed).front());
}

bool options::is_auto(const std::string& path) const {
    const option& row = known(path);
    const auto at = values_.find(path);
    return at != values_.end() && config::is_auto(row, at->second);
}

value options::current(const std::string& path) const {
    const option& row = known(path);
    if (!row.renamed.empty()) {
        const std::string meant = words_of(row.renamed).front();
        if (row.type == kind::boolean && find(meant)->type == kind::text) return text(meant) != "none";
        return current(meant);
    }
    const auto at = values_.find(path);
    if (at != values_.end() && !config::is_auto(row, at->second)) return at->second;
    value derived;
    if (derived_default(*this, path, derived)) return derived;
    require(!row.standard.empty(), code::config, "{} is not set and has no default", path);
    return standard_value(row);
}

bool options::boolean(const std::string& path) const {
    const value what = current(path);
    require(std::holds_alternative<bool>(what), code::config, "{} is not true or false", path);
    return std::get<bool>(what);
}

std::int64_t options::integer(const std::string& path) const {
    const value what = current(path);
    if (const auto* flag = std::get_if<bool>(&what)) return *flag ? 1 : 0;
    require(std::holds_alternative<std::int64_t>(what), code::config, "{} is not an integer", path);
    return std::get<std::int64_t>(what);
}

double options::real(const std::string& path) const {
    const value what = current(path);
    if (const auto* number = std::get_if<std::int64_t>(&what)) return static_cast<double>(*number);
    require(std::holds_alternative<double>(what), code::config, "{} is not a number", path);
    return std::get<double>(what);
}

std::string options::text(const std::string& path) const {
    const option& row = known(path);
    if (row.type == kind::text && row.standard.empty() && !has(path)) return "";
    const value what = current(path);
    return row.type == kind::text ? std::get<std::string>(what) : show(row, what);
}

std::vector<double> options::reals(const std::string& path) const {
    const value what = current(path);
    require(std::holds_alternative<std::vector<double>>(what), code::config, "{} is not an array of numbers", path);
    return std::get<std::vector<double>>(what);
}

bool options::is_run_time(const std::string& path) const {
    return known(path).when == change::run_time;
}

bool options::is_read_by_init(const std::string& path) const {
    return known(path).when == change::by_init;
}

std::string options::as_json() const {
    json all = json::object();
    for (const auto& [path, what] : values_) {
        json* place = &all;
        for (std::size_t from = 0; from != std::string::npos;) {
            const std::size_t dot = path.find('.', from);
            place = &(*place)[path.substr(from, dot == std::string::npos ? dot : dot - from)];
            from = dot == std::string::npos ? dot : dot + 1;
        }
        *place = to_json(*find(path), what);
    }
    return dump(all);
}

std::string options::as_lines() const {
    std::string all;
    for (const auto& [path, what] : values_) all += formatted("{} = {}\n", path, show(*find(path), what));
    return all;
}

std::vector<std::string> options::notices() const {
    return notices_;
}

}  // namespace zero::config
