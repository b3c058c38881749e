// The options as typed numbers; see settings.hpp. Each function resolves one section.
#include "config/settings.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "config/batch.hpp"
#include "config/checks.hpp"
#include "core/error.hpp"

namespace zero::config {
namespace {

const std::string zero_section = "zero_optimization.";

// "auto" for the sizes, in elements of the largest tensor. DeepSpeed's integrations use hidden_size^2, 0.9
// hidden_size^2 and 10 hidden_size: the same for a square largest tensor.
std::int64_t automatic_size(const std::string& key, std::int64_t largest) {
    const double elements = static_cast<double>(largest);
    if (key == "reduce_bucket_size") return std::max<std::int64_t>(1, largest);
    if (key == "stage3_prefetch_bucket_size") return static_cast<std::int64_t>(0.9 * elements);
    if (key == "stage3_param_persistence_threshold") return static_cast<std::int64_t>(10 * std::sqrt(elements));
    return -1;
}

void resolve_sizes(settings& out, const options& from, std::int64_t largest) {
    const auto size = [&](const char* key) {
        const std::string path = zero_section + key;
        const std::int64_t chosen = from.is_auto(path) && largest > 0 ? automatic_size(key, largest) : -1;
        return chosen >= 0 ? chosen : from.integer(path);
    };
    out.reduce_bucket_size = size("reduce_bucket_size");
    out.allgather_bucket_size = size("allgather_bucket_size");
    out.sub_group_size = size("sub_group_size");
    out.prefetch_bucket_size = size("stage3_prefetch_bucket_size");
    out.persistence_threshold = size("stage3_param_persistence_threshold");
    out.persistence_total = size("stage3_model_persistence_threshold");
    out.max_live_parameters = size("stage3_max_live_parameters");
    out.max_reuse_distance = size("stage3_max_reuse_distance");
}

void resolve_stage(settings& out, const options& from) {
    out.stage = static_cast<int>(from.integer(zero_section + "stage"));
    out.contiguous_gradients = from.boolean(zero_section + "contiguous_gradients");
    out.overlap_comm = from.boolean(zero_section + "overlap_comm");
    out.sanity_checks = from.boolean(zero_section + "enable_sanity_checks");
    out.ignore_unused_parameters = from.boolean(zero_section + "ignore_unused_parameters");
}

void resolve_offload(settings& out, const options& from) {
    out.offload_optimizer = from.text(zero_section + "offload_optimizer.device") == "cpu";
    out.offload_optimizer_pinned = from.boolean(zero_section + "offload_optimizer.pin_memory");
    out.offload_ratio = from.real(zero_section + "offload_optimizer.ratio");
    out.offload_param = from.text(zero_section + "offload_param.device") == "cpu";
    out.offload_param_pinned = from.boolean(zero_section + "offload_param.pin_memory");
    require(!out.offload_optimizer || out.stage >= 1, code::config,
            "zero_optimization.offload_optimizer.device is \"cpu\", which needs zero_optimization.stage 1, 2 or 3; it "
            "is {}",
            out.stage);
    require(!out.offload_param || out.stage == 3, code::config,
            "zero_optimization.offload_param.device is \"cpu\", which needs zero_optimization.stage 3; it is {}",
            out.stage);
}

optimizer::kind optimizer_kind(const std::string& type) {
    for (const auto& [name, which] : optimizer::types)
        if (name == type) return which;
    fail(code::internal, "optimizer.type {} is in the table of options but is no optimizer", type);
}

void check_nesterov(bool nesterov, double momentum, const std::string& section) {
    require(!nesterov || momentum > 0, code::config, "{}.nesterov is true, which needs {}.momentum above 0", section,
            section);
}

void check_coefficients(double least, double most, const std::string& section) {
    require(least <= most, code::config, "{}.min_coeff = {} is above max_coeff = {}", section, least, most);
}

optimizer::hyper resolve_hyper(const options& from) {
    const std::string params = "optimizer.params.";
    const std::string type = from.text("optimizer.type");
    const std::vector<double> betas = from.reals(params + "betas");
    optimizer::hyper numbers;
    numbers.lr = from.real(params + "lr");
    numbers.beta1 = betas[0];
    numbers.beta2 = betas[1];
    numbers.eps = from.real(params + "eps");
    numbers.weight_decay = from.real(params + "weight_decay");
    numbers.momentum = from.real(params + "momentum");
    numbers.nesterov = from.boolean(params + "nesterov");
    numbers.decoupled = type == "AdamW" || (type == "Adam" && from.boolean(params + "adam_w_mode")) || type == "Lion";
    numbers.bias_correction = from.boolean(params + "bias_correction");
    numbers.max_coeff = from.real(params + "max_coeff");
    numbers.min_coeff = from.real(params + "min_coeff");
    check_nesterov(numbers.nesterov, numbers.momentum, "optimizer.params");
    check_coefficients(numbers.min_coeff, numbers.max_coeff, "optimizer.params");
    return numbers;
}

void resolve_optimizer(settings& out, const options& from) {
    out.optimizer = optimizer_kind(from.text("optimizer.type"));
    out.numbers = resolve_hyper(from);
    out.gradient_clipping = from.real("gradient_clipping");
    if (from.text("optimizer.type") == "AdamW" && !from.boolean("optimizer.params.adam_w_mode")) {
        out.notices.push_back(
            "optimizer.params.adam_w_mode has no effect: AdamW always decays decoupled; Adam has that choice");
    }
}

void resolve_loss_scale(settings& out, const options& from, bool has_f16) {
    optimizer::loss_scale_rules& rules = out.loss_scaling;
    rules.enabled = from.is_auto("fp16.enabled") ? has_f16 : from.boolean("fp16.enabled");
    rules.fixed = from.real("fp16.loss_scale");
    rules.initial_power = static_cast<int>(from.integer("fp16.initial_scale_power"));
    rules.window = from.integer("fp16.loss_scale_window");
    rules.hysteresis = from.integer("fp16.hysteresis");
    rules.consecutive_hysteresis = from.boolean("fp16.consecutive_hysteresis");
    rules.minimum = from.real("fp16.min_loss_scale");
    const bool bf16 = !from.is_auto("bf16.enabled") && from.boolean("bf16.enabled");
    const bool fp16 = !from.is_auto("fp16.enabled") && rules.enabled;
    require(!(fp16 && bf16), code::config, "fp16.enabled and bf16.enabled are both true: choose one");
    require(!rules.enabled || rules.fixed > 0 || rules.minimum <= std::ldexp(1.0, rules.initial_power), code::config,
            "fp16.min_loss_scale = {} is above the first scale, 2^{} (fp16.initial_scale_power)", rules.minimum,
            rules.initial_power);
}

schedule::kind schedule_kind(const std::string& type) {
    for (const auto& [name, which] : schedule_types)
        if (name == type) return which;
    return schedule::kind::none;  // not given
}

void resolve_cycle(schedule& out, const options& from) {
    const std::string params = "scheduler.params.";
    const auto integer_or = [&](const char* key, std::int64_t otherwise) {
        return from.has(params + key) ? from.integer(params + key) : otherwise;
    };
    out.cycle_min_lr = from.real(params + "cycle_min_lr");
    out.cycle_max_lr = from.real(params + "cycle_max_lr");
    out.decay_lr_rate = from.real(params + "decay_lr_rate");
    out.cycle_first_step_size = from.integer(params + "cycle_first_step_size");
    out.cycle_second_step_size = integer_or("cycle_second_step_size", out.cycle_first_step_size);
    out.cycle_first_stair_count = from.integer(params + "cycle_first_stair_count");
    out.cycle_second_stair_count = integer_or("cycle_second_stair_count", out.cycle_first_stair_count);
    out.decay_step_size = from.integer(params + "decay_step_size");
    out.cycle_momentum = from.boolean(params + "cycle_momentum");
    out.cycle_min_mom = from.real(params + "cycle_min_mom");
    out.cycle_max_mom = from.real(params + "cycle_max_mom");
    out.decay_mom_rate = from.real(params + "decay_mom_rate");
}

void resolve_warmup(schedule& out, const options& from, double base) {
    const std::string params = "scheduler.params.";
    const bool own_max = from.has(params + "warmup_max_lr") && !from.is_auto(params + "warmup_max_lr");
    out.warmup_min_lr = from.real(params + "warmup_min_lr");
    out.warmup_max_lr = own_max ? from.real(params + "warmup_max_lr") : base;
    out.warmup_num_steps = std::max<std::int64_t>(2, from.integer(params + "warmup_num_steps"));  // never 1 / log(1)
    out.warmup_log = from.text(params + "warmup_type") == "log";
    out.warmup_min_ratio = from.real(params + "warmup_min_ratio");
    out.cos_min_ratio = from.real(params + "cos_min_ratio");
    if (from.has(params + "total_num_steps")) out.total_num_steps = from.integer(params + "total_num_steps");
}

void resolve_schedule(settings& out, const options& from) {
    const std::string params = "scheduler.params.";
    schedule& rates = out.lr_schedule;
    rates.type = schedule_kind(from.text("scheduler.type"));
    resolve_warmup(rates, from, out.numbers.lr);
    if (rates.type == schedule::kind::one_cycle) resolve_cycle(rates, from);
    rates.range_min_lr = from.real(params + "lr_range_test_min_lr");
    rates.range_step_size = from.integer(params + "lr_range_test_step_size");
    rates.range_step_rate = from.real(params + "lr_range_test_step_rate");
    rates.range_staircase = from.boolean(params + "lr_range_test_staircase");

    const bool betas = out.optimizer != optimizer::kind::sgd && out.optimizer != optimizer::kind::adagrad;
    if (rates.type == schedule::kind::one_cycle && rates.cycle_momentum && !betas) {
        rates.cycle_momentum = false;
        out.notices.push_back("scheduler.params.cycle_momentum has no effect: this optimizer has no betas");
    }
    const bool own_rate = rates.type == schedule::kind::one_cycle || rates.type == schedule::kind::range_test ||
                          (rates.type != schedule::kind::warmup_cosine && rates.warmup_max_lr != out.numbers.lr);
    if (rates.type != schedule::kind::none && own_rate && from.has("optimizer.params.lr")) {
        out.notices.push_back(
            "optimizer.params.lr only sets the ratio of group rates: scheduler.params gives the rate itself");
    }
}

void resolve_library(settings& out, const options& from, int ranks) {
    const batch_sizes sizes = resolve_batch(from, ranks);
    out.accumulation_steps = sizes.accumulation;
    out.micro_batch = sizes.micro;
    out.train_batch = sizes.train;
    out.communication_type = from.text("communication_data_type");
    out.reproducible = from.boolean("libzero.reproducible");
    out.gradient_sum = from.text("libzero.gradient_reduction") == "sum";
    out.device = from.text("libzero.device");
    out.node_size = static_cast<int>(from.integer("libzero.node_size"));
    out.threads = static_cast<int>(from.integer("libzero.threads"));
    out.bind = from.text("libzero.bind");
    out.node_shared = from.boolean("libzero.node_shared");
    out.overlap_thread = from.text("libzero.overlap_thread");
    out.largest_count = from.integer("libzero.largest_count");
    require(out.largest_count == 0 || out.largest_count >= 4, code::config,
            "libzero.largest_count = {} is too small: give at least 4, or 0 for 2^31-1", out.largest_count);
    out.broadcast_initial = from.boolean("libzero.broadcast_initial");
    out.stale_check = from.boolean("libzero.stale_check");
    out.check_grad_overflow = from.boolean("libzero.check_grad_overflow");
    require(out.check_grad_overflow || out.gradient_clipping == 0, code::config,
            "libzero.check_grad_overflow is false, so the norm is not known that gradient_clipping = {} needs: set one of them back", out.gradient_clipping);
    require(out.check_grad_overflow || !out.loss_scaling.enabled, code::config,
            "libzero.check_grad_overflow is false, but fp16.enabled finds its loss scale by the overflows: set one of them back");
    out.end_window = from.boolean("libzero.end_window");
    if (from.has("libzero.log_level")) out.log_level = static_cast<int>(from.integer("libzero.log_level"));
    out.checkpoint_load = from.text("checkpoint.load");
    out.ranks_per_file = from.integer("checkpoint.ranks_per_file");
    out.keep_last = from.integer("checkpoint.keep_last");
    out.keep_every = from.integer("checkpoint.keep_every");
}

// What "auto" became, where that is not simply the default of the table.
std::map<std::string, std::string> resolved_values(const settings& all) {
    const auto text = [](const auto& number) { return formatted("{}", number); };
    const auto batch = [](std::int64_t size) { return size > 0 ? formatted("{}", size) : std::string("not known"); };
    return {
        {zero_section + "reduce_bucket_size", text(all.reduce_bucket_size)},
        {zero_section + "stage3_prefetch_bucket_size", text(all.prefetch_bucket_size)},
        {zero_section + "stage3_param_persistence_threshold", text(all.persistence_threshold)},
        {"fp16.enabled", text(all.loss_scaling.enabled)},
        {"scheduler.params.warmup_max_lr", text(all.lr_schedule.warmup_max_lr)},
        {"train_batch_size", batch(all.train_batch)},
        {"train_micro_batch_size_per_gpu", batch(all.micro_batch)},
        {"gradient_accumulation_steps", text(all.accumulation_steps)},
    };
}

// Sizes wait until the tensors are known.
void say_automatic(settings& out, const options& from, std::int64_t largest) {
    const std::map<std::string, std::string> resolved = resolved_values(out);
    for (const auto& [path, what] : from.given()) {
        if (!from.is_auto(path) || find(path)->support != answer::honoured) continue;
        const auto at = resolved.find(path);
        const bool waits = at != resolved.end() && path.starts_with(zero_section) && largest == 0;
        if (waits) continue;
        const std::string became = at != resolved.end() ? at->second : from.text(path);
        out.notices.push_back(formatted("{} \"auto\" is {}", path, became));
    }
}

}  // namespace

settings resolve(const options& from, int ranks, std::int64_t largest, bool has_f16) {
    check_words(from);
    check_owners(from);
    settings out;
    resolve_stage(out, from);
    resolve_sizes(out, from, largest);
    resolve_offload(out, from);
    resolve_optimizer(out, from);
    resolve_loss_scale(out, from, has_f16);
    resolve_schedule(out, from);
    resolve_library(out, from, ranks);
    say_automatic(out, from, largest);
    return out;
}

group_settings resolve_group(const options& from, int group) {
    const std::string section = formatted("groups.{}", group);
    const auto real_or = [&](const char* key, double otherwise) {
        const std::string path = formatted("{}.{}", section, key);
        return from.has(path) ? from.real(path) : otherwise;
    };
    group_settings out;
    optimizer::hyper& numbers = out.numbers = resolve_hyper(from);
    const double base = numbers.lr;
    numbers.lr = real_or("lr", numbers.lr);
    numbers.weight_decay = real_or("weight_decay", numbers.weight_decay);
    numbers.eps = real_or("eps", numbers.eps);
    numbers.momentum = real_or("momentum", numbers.momentum);
    numbers.max_coeff = real_or("max_coeff", numbers.max_coeff);
    numbers.min_coeff = real_or("min_coeff", numbers.min_coeff);
    numbers.lower = real_or("lower", numbers.lower);
    numbers.upper = real_or("upper", numbers.upper);
    if (from.has(section + ".nesterov")) numbers.nesterov = from.boolean(section + ".nesterov");
    if (from.has(section + ".betas")) {
        const std::vector<double> betas = from.reals(section + ".betas");
        numbers.beta1 = betas[0];
        numbers.beta2 = betas[1];
    }
    require(numbers.momentum == 0 || resolve_hyper(from).momentum > 0 || from.text("optimizer.type") != "SGD", code::config,
            "{}.momentum = {} needs optimizer.params.momentum above 0: only then there is memory for it", section, numbers.momentum);
    check_nesterov(numbers.nesterov, numbers.momentum, section);
    check_coefficients(numbers.min_coeff, numbers.max_coeff, section);
    require(numbers.lower <= numbers.upper, code::config, "{}.lower = {} is above {}.upper = {}", section,
            numbers.lower, section, numbers.upper);
    out.frozen = from.boolean(section + ".frozen");
    out.model_replicated = from.boolean(section + ".model_replicated");

    const bool scheduled = from.has("scheduler.type");
    require(!scheduled || base > 0 || numbers.lr == base, code::config,
            "{}.lr = {} cannot keep its ratio to optimizer.params.lr = 0 under a schedule: give optimizer.params.lr",
            section, numbers.lr);
    out.lr_ratio = numbers.lr == base ? 1 : base > 0 ? numbers.lr / base : 1;
    return out;
}

}  // namespace zero::config
