// The typed settings: the seed configuration, automatic values, batch sizes, contradictions, groups.
#include "config/settings.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "config_support.hpp"

using namespace zero;
using namespace zero::config;
using zero::testing::read;
using zero::testing::refused;
using zero::testing::said;

namespace {

settings resolved(const std::string& text, int ranks = 2, std::int64_t largest = 0, bool has_f16 = false) {
    return resolve(read(text), ranks, largest, has_f16);
}

const char* const seed = R"(
{ "zero_optimization": { "stage": 3, "offload_optimizer": { "device": "cpu", "pin_memory": true }, "offload_param": { "device": "cpu", "pin_memory": true },
  "contiguous_gradients": true, "overlap_comm": true, "reduce_scatter": true, "reduce_bucket_size": 10000000, "stage3_prefetch_bucket_size": 50000000,
  "stage3_param_persistence_threshold": 100000 },
  "optimizer": { "type": "AdamW", "params": { "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01 } } })";

// As the integrations of Hugging Face write it for stage 3 (without consolidated saving).
const char* const integration = R"(
{ "fp16": { "enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000, "initial_scale_power": 16, "hysteresis": 2, "min_loss_scale": 1 },
  "bf16": { "enabled": "auto" },
  "optimizer": { "type": "AdamW", "params": { "lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto" } },
  "scheduler": { "type": "WarmupLR", "params": { "warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto" } },
  "zero_optimization": { "stage": 3, "offload_optimizer": { "device": "cpu", "pin_memory": true }, "offload_param": { "device": "cpu", "pin_memory": true },
    "overlap_comm": true, "contiguous_gradients": true, "sub_group_size": 1e9, "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": 1e9,
    "stage3_max_reuse_distance": 1e9, "stage3_gather_16bit_weights_on_model_save": false },
  "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "steps_per_print": 2000, "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": "auto", "wall_clock_breakdown": false })";

}  // namespace

TEST_CASE("defaults are those of the table") {
    const settings none = resolved("");
    const settings untouched;
    CHECK(none.stage == 0);
    CHECK(none.reduce_bucket_size == untouched.reduce_bucket_size);
    CHECK(none.allgather_bucket_size == untouched.allgather_bucket_size);
    CHECK(none.sub_group_size == untouched.sub_group_size);
    CHECK(none.prefetch_bucket_size == untouched.prefetch_bucket_size);
    CHECK(none.persistence_threshold == untouched.persistence_threshold);
    CHECK(none.persistence_total == INT64_MAX);
    CHECK(none.max_live_parameters == untouched.max_live_parameters);
    CHECK(none.max_reuse_distance == untouched.max_reuse_distance);
    CHECK_FALSE(none.overlap_comm);
    CHECK(none.optimizer == optimizer::kind::adam);
    CHECK(none.numbers.lr == 1e-3);
    CHECK(none.numbers.beta1 == 0.9);
    CHECK(none.numbers.beta2 == 0.999);
    CHECK(none.numbers.eps == 1e-8);
    CHECK(none.numbers.weight_decay == 0);
    CHECK(none.numbers.decoupled);
    CHECK(none.numbers.bias_correction);
    CHECK(none.numbers.max_coeff == 10);
    CHECK(none.numbers.min_coeff == 0.01);
    CHECK(none.gradient_clipping == 0);
    CHECK(none.accumulation_steps == 1);
    CHECK(none.lr_schedule.type == schedule::kind::none);
    CHECK_FALSE(none.loss_scaling.enabled);
    CHECK(none.stale_check);
    CHECK(none.broadcast_initial);
    CHECK(none.log_level == -1);
    CHECK(none.checkpoint_load == "strict");
    CHECK(none.notices.empty());
}

TEST_CASE("the seed configuration runs as it stands") {
    const options from = read(seed);
    CHECK(from.notices().empty());
    const settings all = resolve(from, 3, 1000);
    CHECK(all.notices.empty());
    CHECK(all.stage == 3);
    CHECK(all.offload_optimizer);
    CHECK(all.offload_optimizer_pinned);
    CHECK(all.offload_param);
    CHECK(all.offload_param_pinned);
    CHECK(all.overlap_comm);
    CHECK(all.reduce_bucket_size == 10'000'000);
    CHECK(all.prefetch_bucket_size == 50'000'000);
    CHECK(all.persistence_threshold == 100'000);
    CHECK(all.optimizer == optimizer::kind::adam);
    CHECK(all.numbers.decoupled);
    CHECK(all.numbers.weight_decay == 0.01);
}

TEST_CASE("auto: resolved from the tensors or by default, and said") {
    const options from = read(integration);
    const settings all = resolve(from, 4, 4096 * 4096);
    CHECK(all.reduce_bucket_size == 4096 * 4096);
    CHECK(all.prefetch_bucket_size == static_cast<std::int64_t>(0.9 * 4096 * 4096));
    CHECK(all.persistence_threshold == 10 * 4096);
    CHECK(all.numbers.lr == 1e-3);
    CHECK(all.lr_schedule.type == schedule::kind::warmup);
    CHECK(all.lr_schedule.warmup_max_lr == 1e-3);
    CHECK(all.lr_schedule.warmup_num_steps == 1000);
    CHECK(all.accumulation_steps == 1);
    CHECK(all.gradient_clipping == 0);
    CHECK_FALSE(all.loss_scaling.enabled);
    CHECK(said(all.notices, "zero_optimization.reduce_bucket_size \"auto\" is 16777216"));
    CHECK(said(all.notices, "optimizer.params.betas \"auto\" is [0.9,0.999]"));
    CHECK(said(all.notices, "train_batch_size \"auto\" is not known"));
    CHECK(resolve(from, 4, 100, true).loss_scaling.enabled);
    CHECK(resolve(from, 4, 0).reduce_bucket_size == 500'000'000);
    CHECK_FALSE(said(resolve(from, 4, 0).notices, "reduce_bucket_size"));
    CHECK(resolved("{\"zero_optimization\": {\"reduce_bucket_size\": \"auto\"}}", 1, 1).reduce_bucket_size == 1);
}

TEST_CASE("overlap_comm follows the stage unless given") {
    CHECK(resolved("{\"zero_optimization\": {\"stage\": 3}}").overlap_comm);
    CHECK_FALSE(resolved("{\"zero_optimization\": {\"stage\": 2}}").overlap_comm);
    CHECK_FALSE(resolved("{\"zero_optimization\": {\"stage\": 3, \"overlap_comm\": false}}").overlap_comm);
    CHECK(resolved("{\"zero_optimization\": {\"stage\": 3, \"overlap_comm\": null}}").overlap_comm);
    CHECK(resolved("{\"zero_optimization\": {\"stage\": 1, \"overlap_comm\": true}}").overlap_comm);
}

TEST_CASE("batch sizes: any two give the third") {
    struct row {
        std::int64_t train, micro, accumulation;  // 0: not given
        int ranks;
        std::int64_t want_train, want_micro, want_accumulation;
    };
    const row rows[] = {{0, 0, 0, 3, 0, 0, 1},   {0, 0, 4, 3, 0, 0, 4},  {24, 2, 0, 3, 24, 2, 4},
                        {24, 0, 4, 3, 24, 2, 4}, {0, 2, 4, 3, 24, 2, 4}, {24, 2, 4, 3, 24, 2, 4},
                        {24, 0, 0, 3, 24, 8, 1}, {0, 2, 0, 3, 6, 2, 1},  {4096, 1, 0, 64, 4096, 1, 64}};
    for (const row& each : rows) {
        options from;
        if (each.train > 0) from.set("train_batch_size", each.train);
        if (each.micro > 0) from.set("train_micro_batch_size_per_gpu", each.micro);
        if (each.accumulation > 0) from.set("gradient_accumulation_steps", each.accumulation);
        INFO(from.as_json() << " on " << each.ranks);
        const settings all = resolve(from, each.ranks, 0);
        CHECK(all.train_batch == each.want_train);
        CHECK(all.micro_batch == each.want_micro);
        CHECK(all.accumulation_steps == each.want_accumulation);
    }
    refused(code::config, {"25", "2", "4", "3 ranks", "24"}, [] {
        resolved(
            "{\"train_batch_size\": 25, \"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 4}", 3);
    });
    refused(code::config, {"25", "2", "3 ranks"},
            [] { resolved("{\"train_batch_size\": 25, \"train_micro_batch_size_per_gpu\": 2}", 3); });
    refused(code::config, {"25", "3 ranks"}, [] { resolved("{\"train_batch_size\": 25}", 3); });
    refused(code::config, {"2^63"}, [] {
        resolved("{\"train_micro_batch_size_per_gpu\": 4000000000, \"gradient_accumulation_steps\": 4000000000}", 3);
    });
    refused(code::config, {"train_batch_size"}, [] { read("{\"train_batch_size\": 0}"); });
}

TEST_CASE("contradictions name both keys") {
    refused(code::config, {"offload_param.device", "zero_optimization.stage"},
            [] { resolved("{\"zero_optimization\": {\"stage\": 2, \"offload_param\": {\"device\": \"cpu\"}}}"); });
    refused(code::config, {"offload_optimizer.device", "zero_optimization.stage"},
            [] { resolved("{\"zero_optimization\": {\"stage\": 0, \"offload_optimizer\": {\"device\": \"cpu\"}}}"); });
    CHECK_NOTHROW(resolved("{\"zero_optimization\": {\"stage\": 1, \"offload_optimizer\": {\"device\": \"cpu\"}}}"));
    refused(code::config, {"fp16.enabled", "bf16.enabled"},
            [] { resolved("{\"fp16\": {\"enabled\": true}, \"bf16\": {\"enabled\": true}}"); });
    refused(code::config, {"fp16.min_loss_scale", "initial_scale_power"},
            [] { resolved("{\"fp16\": {\"enabled\": true, \"min_loss_scale\": 32, \"initial_scale_power\": 4}}"); });
    refused(code::config, {"nesterov", "momentum"},
            [] { resolved("{\"optimizer\": {\"type\": \"SGD\", \"params\": {\"nesterov\": true}}}"); });
    refused(code::config, {"min_coeff", "max_coeff"}, [] {
        resolved("{\"optimizer\": {\"type\": \"Lamb\", \"params\": {\"min_coeff\": 3, \"max_coeff\": 2}}}");
    });
    options late = read("{\"optimizer\": {\"type\": \"SGD\", \"params\": {\"momentum\": 0.9}}}");
    late.set("optimizer.type", std::string("Adam"));
    refused(code::config, {"optimizer.params.momentum", "Adam"}, [&] { resolve(late, 1, 0); });
}

TEST_CASE("S07: which optimizers decay decoupled") {
    const auto decoupled = [](const std::string& inside) {
        return resolved("{\"optimizer\": {" + inside + "}}").numbers.decoupled;
    };
    CHECK(decoupled("\"type\": \"Adam\""));
    CHECK(decoupled("\"type\": \"AdamW\""));
    CHECK_FALSE(decoupled("\"type\": \"Adam\", \"params\": {\"adam_w_mode\": false}"));
    CHECK(decoupled("\"type\": \"AdamW\", \"params\": {\"adam_w_mode\": false}"));
    CHECK(said(resolved("{\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"adam_w_mode\": false}}}").notices,
               "adam_w_mode"));
    CHECK(resolved("{\"optimizer\": {\"type\": \"Adagrad\"}}").numbers.lr == 1e-2);
    CHECK(resolved("{\"optimizer\": {\"type\": \"Adagrad\"}}").numbers.eps == 1e-10);
}

TEST_CASE("S05: warmup_num_steps 0 and 1 are read as 2") {
    for (const char* steps : {"0", "1", "2"}) {
        const settings all =
            resolved(std::string("{\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_num_steps\": ") +
                     steps + "}}}");
        CHECK(all.lr_schedule.warmup_num_steps == 2);
        CHECK(std::isfinite(all.lr_schedule.rate(1, 1)));
    }
}

TEST_CASE("schedules take what is not given from each other or from the optimizer") {
    const settings cycle =
        resolved(R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 0.2,
        "cycle_first_step_size": 7, "cycle_first_stair_count": 3}}})");
    CHECK(cycle.lr_schedule.cycle_second_step_size == 7);
    CHECK(cycle.lr_schedule.cycle_second_stair_count == 3);
    CHECK(cycle.lr_schedule.cycle_momentum);
    const settings sgd = resolved(R"({"optimizer": {"type": "SGD"}, "scheduler": {"type": "OneCycle",
        "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 0.2}}})");
    CHECK_FALSE(sgd.lr_schedule.cycle_momentum);
    CHECK(said(sgd.notices, "cycle_momentum"));
    const settings warm = resolved(R"({"optimizer": {"params": {"lr": 0.5}}, "scheduler": {"type": "WarmupLR"}})");
    CHECK(warm.lr_schedule.warmup_max_lr == 0.5);
    CHECK(warm.notices.empty());
    const settings own = resolved(
        R"({"optimizer": {"params": {"lr": 0.5}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.25}}})");
    CHECK(own.lr_schedule.warmup_max_lr == 0.25);
    CHECK(said(own.notices, "optimizer.params.lr"));
}

TEST_CASE("groups: own numbers over the optimizer's, the ratio of rates kept") {
    options from = read(R"({"optimizer": {"params": {"lr": 0.1, "weight_decay": 0.25, "eps": 1e-6}}})");
    from.add_group(
        R"({"lr": 0.3, "betas": [0.5, 0.6], "lower": -1, "upper": 2, "frozen": true, "model_replicated": true})", 1);
    const group_settings zeroth = resolve_group(from, 0), first = resolve_group(from, 1);
    CHECK(zeroth.numbers.lr == 0.1);
    CHECK(zeroth.lr_ratio == 1);
    CHECK(std::isinf(zeroth.numbers.lower));
    CHECK_FALSE(zeroth.frozen);
    CHECK(first.numbers.lr == 0.3);
    CHECK(first.lr_ratio == 0.3 / 0.1);
    CHECK(first.numbers.beta1 == 0.5);
    CHECK(first.numbers.beta2 == 0.6);
    CHECK(first.numbers.weight_decay == 0.25);
    CHECK(first.numbers.eps == 1e-6);
    CHECK(first.numbers.lower == -1);
    CHECK(first.numbers.upper == 2);
    CHECK(first.frozen);
    CHECK(first.model_replicated);

    options scheduled = from;
    scheduled.set("scheduler.type", std::string("WarmupLR"));
    CHECK(resolve_group(scheduled, 1).lr_ratio == 0.3 / 0.1);

    from.set("groups.1.lower", 3.0);
    refused(code::config, {"groups.1.lower", "groups.1.upper"}, [&] { resolve_group(from, 1); });
    scheduled.set("optimizer.params.lr", std::int64_t{0});
    refused(code::config, {"groups.1.lr", "optimizer.params.lr"}, [&] { resolve_group(scheduled, 1); });
    options sgd = read(R"({"optimizer": {"type": "SGD", "params": {"momentum": 0.5}}})");
    sgd.add_group(R"({"momentum": 0, "nesterov": false})", 1);
    CHECK(resolve_group(sgd, 1).numbers.momentum == 0);
    sgd.set("groups.1.betas", std::string("[0.1, 0.2]"));
    refused(code::config, {"groups.1.betas", "SGD"}, [&] { resolve(sgd, 1, 0); });
}

TEST_CASE("the rest reaches its field") {
    const settings all = resolved(R"({"gradient_clipping": 2, "communication_data_type": "BF16",
        "fp16": {"enabled": true, "loss_scale": 128, "initial_scale_power": 5, "loss_scale_window": 3, "hysteresis": 4,
                 "consecutive_hysteresis": true, "min_loss_scale": 0.5},
        "checkpoint": {"load": "weights", "ranks_per_file": 2, "keep_last": 3, "keep_every": 100},
        "zero_optimization": {"contiguous_gradients": false, "reduce_scatter": false, "allgather_partitions": false,
            "ignore_unused_parameters": false, "enable_sanity_checks": true, "allgather_bucket_size": 3, "sub_group_size": 4,
            "stage3_model_persistence_threshold": 5, "stage3_max_live_parameters": 6, "stage3_max_reuse_distance": 7},
        "libzero": {"gradient_reduction": "sum", "node_size": 2, "largest_count": 7, "broadcast_initial": false,
            "stale_check": false, "node_shared": false, "log_level": "debug", "end_window": true}})");
    CHECK(all.gradient_clipping == 2);
    CHECK(all.communication_type == "bf16");
    CHECK(all.loss_scaling.enabled);
    CHECK(all.loss_scaling.fixed == 128);
    CHECK(all.loss_scaling.initial_power == 5);
    CHECK(all.loss_scaling.window == 3);
    CHECK(all.loss_scaling.hysteresis == 4);
    CHECK(all.loss_scaling.consecutive_hysteresis);
    CHECK(all.loss_scaling.minimum == 0.5);
    CHECK(all.checkpoint_load == "weights");
    CHECK(all.ranks_per_file == 2);
    CHECK(all.keep_last == 3);
    CHECK(all.keep_every == 100);
    CHECK_FALSE(all.contiguous_gradients);
    CHECK_FALSE(all.ignore_unused_parameters);
    CHECK(all.sanity_checks);
    CHECK(all.allgather_bucket_size == 3);
    CHECK(all.sub_group_size == 4);
    CHECK(all.persistence_total == 5);
    CHECK(all.max_live_parameters == 6);
    CHECK(all.max_reuse_distance == 7);
    CHECK(all.gradient_sum);
    CHECK(all.node_size == 2);
    CHECK(all.largest_count == 7);
    CHECK_FALSE(all.broadcast_initial);
    CHECK_FALSE(all.stale_check);
    CHECK(all.log_level == 3);
    CHECK(all.end_window);
}

TEST_CASE("a limit on counts that leaves no room for one element is refused") {
    refused(code::config, {"libzero.largest_count", "at least 4"},
            [] { resolved(R"({"libzero": {"largest_count": 3}})"); });
}
