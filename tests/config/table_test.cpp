// Walks the table: every row by default, by JSON, by environment and by set(); wrong values are refused by name.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "config/convert.hpp"
#include "config_support.hpp"

using namespace zero;
using namespace zero::config;
using zero::testing::environment_variable;
using zero::testing::refused;
using zero::testing::said;

namespace {

std::string path_of(const option& row) {
    std::string path(row.path);
    const std::size_t star = path.find('*');
    return star == std::string::npos ? path : path.replace(star, 1, "0");
}

void put(json& where, const std::string& path, const json& what) {
    json* place = &where;
    std::size_t from = 0;
    for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', from)) {
        place = &(*place)[path.substr(from, dot - from)];
        from = dot + 1;
    }
    (*place)[path.substr(from)] = what;
}

// A configuration in which the row may be given: the right optimizer or schedule type, and what that needs.
json context(const option& row) {
    json base = json::object();
    const std::string type(row.owners.substr(0, row.owners.find('|')));
    const bool schedule = row.path.starts_with("scheduler.params.");
    if (schedule) {
        put(base, "scheduler.type", type.empty() ? "WarmupLR" : type);
        if (type == "WarmupDecayLR" || type == "WarmupCosineLR") put(base, "scheduler.params.total_num_steps", 77);
        if (type == "OneCycle") {
            put(base, "scheduler.params.cycle_min_lr", 0.001);
            put(base, "scheduler.params.cycle_max_lr", 0.002);
        }
    } else if (!type.empty()) {
        put(base, "optimizer.type", type);
    }
    return base;
}

// A legal value that is not the default (for unsupported rows there is only the default); null: none exists.
json legal(const option& row) {
    const option* meant = row.renamed.empty() ? nullptr : find(row.renamed);
    if (meant != nullptr && meant->support == answer::unsupported) return json::parse(meant->standard);
    if (row.support == answer::unsupported) return row.standard.empty() ? json() : json::parse(row.standard);
    switch (row.type) {
        case kind::boolean:
            return row.standard != "true";
        case kind::integer:
            return row.most == "3" ? 2 : row.most == "1" ? 1 : 7;
        case kind::real:
            return 0.625;
        case kind::reals:
            return json::array({0.5, 0.75});
        case kind::object:
            return json::object({{"a", 1}});
        case kind::text: {
            if (row.words.empty()) return "some where";
            const std::string words = shown_words(row, false);
            const std::size_t comma = words.find(',');
            const bool first_is_default = !row.standard.empty() && comma != std::string::npos;
            const std::string rest = first_is_default ? words.substr(comma + 2) : words;
            return rest.substr(0, rest.find(','));
        }
    }
    return json();
}

json wrong_type(const option& row) {
    switch (row.type) {
        case kind::boolean:
            return "yes";
        case kind::integer:
            return 5.5;
        case kind::real:
            return "0.5";
        case kind::reals:
            return json::array({0.5});
        case kind::text:
            return 7;
        case kind::object:
            return json();
    }
    return json();
}

std::string as_text(const json& what) {
    return what.is_string() ? what.get<std::string>() : what.dump();
}

// What options::text shows for it.
std::string shown(const options& from, const option& row, const std::string& path) {
    return row.type == kind::text ? from.text(path) : json::parse(from.text(path)).dump();
}
std::string expected(const option& row, const json& what) {
    if (row.type == kind::text) return what.get<std::string>();
    if (row.type == kind::real) return json(what.get<double>()).dump();
    return what.dump();
}

options read_json(const json& text) {
    return zero::testing::read(text.dump());
}

}  // namespace

TEST_CASE("every row is complete") {
    std::set<std::string> paths, names;
    for (const option& row : table()) {
        INFO(row.path);
        CHECK(paths.insert(std::string(row.path)).second);
        CHECK(names.insert(environment_name(row.path)).second);
        CHECK(!row.text.empty());
        CHECK(row.stages.find_first_not_of("0123") == std::string_view::npos);
        CHECK((row.support == answer::honoured || !row.advice.empty()));
        CHECK((row.words.find('!') == std::string_view::npos || !row.advice.empty()));
        CHECK(find(path_of(row)) == &row);
        CHECK(nearest(path_of(row) + "x") == path_of(row));
        if (!row.standard.empty()) CHECK_NOTHROW(standard_value(row));
        const std::string_view owner = row.owners.substr(0, row.owners.find('|'));
        const option& types = *find(row.path.starts_with("scheduler") ? "scheduler.type" : "optimizer.type");
        if (!owner.empty()) CHECK(spelling(types.words, owner) == owner);
        if (!row.renamed.empty()) CHECK(find(row.renamed.substr(0, row.renamed.find('|'))) != nullptr);
    }
    CHECK(find("groups.*.lr") == nullptr);
    CHECK(find("groups.01.lr") == nullptr);
    CHECK(find("groups.12.lr") != nullptr);
}

TEST_CASE("every row has its default") {
    const options none;
    for (const option& row : table()) {
        if (row.standard.empty() || row.path.find('*') != std::string_view::npos) continue;
        INFO(row.path);
        CHECK_FALSE(none.has(std::string(row.path)));
        CHECK(shown(none, row, std::string(row.path)) == expected(row, json::parse(row.standard)));
    }
}

TEST_CASE("every row is read from JSON, environment and set, and the later wins") {
    for (const option& row : table()) {
        const std::string path = path_of(row), name = environment_name(path);
        const json what = legal(row);
        if (what.is_null()) continue;
        INFO(path << " = " << what.dump());
        json with = context(row);
        put(with, path, what);
        const options from_file = read_json(with);
        CHECK(from_file.has(path));
        CHECK(shown(from_file, row, path) == expected(row, what));
        CHECK(zero::testing::read(from_file.as_json()).as_json() == from_file.as_json());
        const json standard = row.standard.empty() ? json() : json::parse(row.standard);
        CHECK(said(from_file.notices(), path) ==
              (row.support == answer::no_effect && (what != standard || (what == true && !row.anyway))));

        const environment_variable variable(name, as_text(what));
        options from_environment;
        from_environment.read(context(row).dump());
        CHECK(shown(from_environment, row, path) == expected(row, what));
        if (row.type == kind::boolean) {
            json opposite = context(row);
            put(opposite, path, !what.get<bool>());
            const option& meant = row.renamed.empty() ? row : *find(row.renamed.substr(0, row.renamed.find('|')));
            if (meant.support != answer::unsupported) {
                options both;
                both.read(opposite.dump());
                CHECK(shown(both, row, path) == expected(row, what));
            }
        }

        options by_set = read_json(context(row));
        by_set.set(path, as_text(what));
        CHECK(shown(by_set, row, path) == expected(row, what));
        if (row.type == kind::integer) by_set.set(path, what.get<std::int64_t>());
        if (row.type == kind::boolean) by_set.set(path, std::int64_t{what.get<bool>() ? 1 : 0});
        if (row.type == kind::real || row.type == kind::integer) by_set.set(path, what.get<double>());
        CHECK(shown(by_set, row, path) == expected(row, what));
    }
}

TEST_CASE("every row refuses what it cannot be, by name") {
    for (const option& row : table()) {
        const std::string path = path_of(row), name = environment_name(path);
        INFO(path);
        const auto by_json = [&](const json& what) {
            json with = context(row);
            put(with, path, what);
            return [with] { read_json(with); };
        };
        const json wrong = wrong_type(row);
        if (!wrong.is_null()) {
            refused(code::config, {path}, by_json(wrong));
            refused(code::config, {path}, by_json(json::object({{"a", 1}})));
            if (row.type != kind::text || !row.words.empty()) {
                const std::string text = row.type == kind::text   ? "nonsense"
                                         : row.type == kind::real ? "\"0.5\""
                                                                  : as_text(wrong);
                const environment_variable variable(name, text);
                refused(code::config, {path, name}, [&] { options().read(context(row).dump()); });
            }
            options unchanged;
            if (row.type != kind::text) {
                refused(code::config, {path}, [&] { unchanged.set(path, std::string("no such thing")); });
                CHECK_FALSE(unchanged.has(path));
            }
        }
        if (row.type == kind::boolean) {
            refused(code::config, {path}, by_json(1));
            refused(code::config, {path}, [&] { options().set(path, std::int64_t{2}); });
        }
        if (row.type == kind::integer) {
            if (row.path != "zero_optimization.stage") refused(code::config, {path}, by_json(true));
            refused(code::config, {path}, by_json("5"));
            refused(code::config, {path}, by_json(1e30));
            refused(code::config, {path}, [&] { options().set(path, 5.5); });
        }
        if (row.type == kind::real) {
            refused(code::config, {path}, [&] { options().set(path, std::nan("")); });
            refused(code::config, {path}, [&] { options().set(path, INFINITY); });
        }
        if ((row.type == kind::integer || row.type == kind::real) && row.renamed.empty()) {
            if (!row.least.empty()) refused(code::config, {path}, by_json(-2));
            if (!row.most.empty() && row.most.size() < 19) refused(code::config, {path}, by_json(5e9));
            if (row.least == ">0") refused(code::config, {path}, by_json(0));
            if (row.most == "<1") refused(code::config, {path}, by_json(1));
        }
        if (row.type != kind::text && row.type != kind::object) {
            if (row.automatic) {
                json with = context(row);
                put(with, path, "auto");
                CHECK(read_json(with).is_auto(path));
            } else {
                refused(code::config, {path}, by_json("auto"));
            }
        }
        if (row.text.ends_with("must be given")) {
            refused(code::config, {path, "must be given"}, by_json(json()));
        } else if (row.standard.empty()) {
            CHECK_NOTHROW(by_json(json())());
        } else {
            refused(code::config, {path, "null"}, by_json(json()));
        }
    }
}

TEST_CASE("what this build cannot do is refused with the way out") {
    for (const option& row : table()) {
        const std::string path = path_of(row);
        INFO(path);
        json with = context(row);
        if (row.support == answer::unsupported) {
            json other;
            if (row.type == kind::boolean) other = row.standard != "true";
            if (row.type == kind::integer) other = 8;
            if (row.type == kind::real) other = 0.5;
            if (row.type == kind::object) other = json::object({{"a", 1}});
            if (row.type == kind::text) other = "bf16";
            put(with, path, other);
            refused(code::unsupported, {path, std::string(row.advice)}, [&] { read_json(with); });
        }
        const std::size_t mark = row.words.find('!');
        if (mark != std::string_view::npos) {
            const std::string_view rest = row.words.substr(mark + 1);
            const std::string word(rest.substr(0, rest.find('|')));
            put(with, path, word);
            if (word == "nvme") {
                refused(code::config, {"nvme_path"}, [&] { read_json(with); });
                put(with, path.substr(0, path.rfind('.')) + ".nvme_path", "swap");
            }
            refused(code::unsupported, {path, word, std::string(row.advice)}, [&] { read_json(with); });
        }
    }
}

TEST_CASE("the design's keys are all in the table") {
    const char* const keys[] = {"stage",
                                "contiguous_gradients",
                                "reduce_scatter",
                                "reduce_bucket_size",
                                "allgather_partitions",
                                "allgather_bucket_size",
                                "overlap_comm",
                                "round_robin_gradients",
                                "use_multi_rank_bucket_allreduce",
                                "load_from_fp32_weights",
                                "elastic_checkpoint",
                                "sub_group_size",
                                "stage3_prefetch_bucket_size",
                                "stage3_param_persistence_threshold",
                                "stage3_model_persistence_threshold",
                                "stage3_max_live_parameters",
                                "stage3_max_reuse_distance",
                                "stage3_gather_16bit_weights_on_model_save",
                                "stage3_module_granularity_threshold",
                                "leaf_module",
                                "memory_efficient_linear",
                                "override_module_apply",
                                "pipeline_loading_checkpoint",
                                "log_trace_cache_warnings",
                                "enable_sanity_checks",
                                "ignore_unused_parameters",
                                "zero_hpz_partition_size",
                                "zero_quantized_weights",
                                "zero_quantized_gradients",
                                "zero_quantized_nontrainable_weights",
                                "zeropp_loco_param",
                                "mics_shard_size",
                                "mics_hierarchical_params_gather",
                                "cpu_offload",
                                "cpu_offload_param",
                                "cpu_offload_use_pin_memory",
                                "stage3_gather_fp16_weights_on_model_save",
                                "zenflow",
                                "super_offload"};
    for (const std::string key : keys) {
        INFO(key);
        CHECK(find("zero_optimization." + key) != nullptr);
    }
    const char* const others[] = {"gradient_clipping",
                                  "prescale_gradients",
                                  "gradient_predivide_factor",
                                  "communication_data_type",
                                  "data_types.grad_accum_dtype",
                                  "aio.block_size",
                                  "comms_logger.enabled",
                                  "wall_clock_breakdown",
                                  "memory_breakdown",
                                  "steps_per_print",
                                  "csv_monitor.enabled",
                                  "bf16.check_grad_overflow",
                                  "libzero.largest_count",
                                  "libzero.log_level",
                                  "libzero.end_time",
                                  "libzero.checkpoint_signals",
                                  "libzero.stale_check",
                                  "libzero.check_grad_overflow",
                                  "libzero.threads",
                                  "libzero.bind",
                                  "libzero.end_window"};
    for (const char* key : others) {
        INFO(key);
        CHECK(find(key) != nullptr);
    }
    for (const char* key :
         {"optimizer.params.lr", "optimizer.params.weight_decay", "optimizer.params.betas", "gradient_clipping",
          "libzero.log_level", "libzero.end_window", "groups.3.lr", "groups.3.weight_decay", "groups.3.betas",
          "groups.3.eps", "groups.3.frozen", "groups.3.lower", "groups.3.upper"}) {
        INFO(key);
        CHECK(options().is_run_time(key));
    }
    for (const char* key :
         {"zero_optimization.stage", "optimizer.type", "groups.3.momentum", "gradient_accumulation_steps"}) {
        INFO(key);
        CHECK_FALSE(options().is_run_time(key));
    }
    refused(code::config, {"no.such.key"}, [] { options().is_run_time("no.such.key"); });
    for (const char* key : {"libzero.device", "libzero.node_size", "libzero.node_shared", "libzero.largest_count"}) {
        INFO(key);
        CHECK(options().is_read_by_init(key));
        CHECK_FALSE(options().is_run_time(key));
    }
    CHECK_FALSE(options().is_read_by_init("zero_optimization.stage"));
}
