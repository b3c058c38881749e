// What one key cannot know alone; see checks.hpp.
#include "config/checks.hpp"

#include "config/convert.hpp"
#include "core/error.hpp"

namespace zero::config {
namespace {

void check_nvme(const options& from, const std::string& section) {
    if (from.text(section + ".device") != "nvme") return;
    const std::string path = section + ".nvme_path";
    require(from.has(path) && !from.text(path).empty(), code::config, "{}.device is \"nvme\", so {} must name a folder",
            section, path);
}

void require_key(const options& from, const std::string& path) {
    require(from.has(path), code::config, "{} must be given for scheduler type {}", path, from.text("scheduler.type"));
}

void check_schedule(const options& from) {
    if (!from.has("scheduler.type")) return;
    const std::string type = from.text("scheduler.type");
    if (type == "WarmupDecayLR" || type == "WarmupCosineLR") require_key(from, "scheduler.params.total_num_steps");
    if (type == "OneCycle") {
        require_key(from, "scheduler.params.cycle_min_lr");
        require_key(from, "scheduler.params.cycle_max_lr");
    }
}

}  // namespace

void check_words(const options& from) {
    check_nvme(from, "zero_optimization.offload_optimizer");
    check_nvme(from, "zero_optimization.offload_param");
    for (const auto& [path, what] : from.given()) {
        const option& row = *find(path);
        const auto* word = std::get_if<std::string>(&what);
        if (word == nullptr || row.type != kind::text || !is_refused_word(row, *word)) continue;
        fail(code::unsupported, "{} is \"{}\", which this build does not have: {}", path, *word, row.advice);
    }
}

void check_owners(const options& from) {
    for (const auto& [path, what] : from.given()) {
        const option& row = *find(path);
        const bool schedule = path.starts_with("scheduler.params.");
        require(!schedule || from.has("scheduler.type"), code::config, "{} is given, but scheduler.type is not", path);
        if (row.owners.empty()) continue;
        const std::string section = schedule ? "scheduler.type" : "optimizer.type";
        const std::string type = from.text(section);
        require(!spelling(row.owners, type).empty(), code::config,
                "{} does not belong to {} {}: remove it, or choose a type that has it ({})", path, section, type,
                row.owners);
    }
    check_schedule(from);
}

}  // namespace zero::config
