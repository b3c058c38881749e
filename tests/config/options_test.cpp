// Reading configurations: strict JSON, wrong and unknown keys, numbers (case B26), environment, groups, old names.
#include "config/options.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "config/json.hpp"
#include "config/nearest.hpp"
#include "config_support.hpp"
#include "support/temporary_folder.hpp"

using namespace zero;
using namespace zero::config;
using zero::testing::environment_variable;
using zero::testing::read;
using zero::testing::refused;
using zero::testing::said;

namespace {

std::string in_zero(const std::string& members) {
    return "{\"zero_optimization\": {" + members + "}}";
}
std::string bucket(const std::string& number) {
    return in_zero("\"reduce_bucket_size\": " + number);
}
const std::string bucket_key = "zero_optimization.reduce_bucket_size";
const std::string stage_key = "zero_optimization.stage";

}  // namespace

TEST_CASE("B26: numbers of the configuration") {
    CHECK(read(bucket("1")).integer(bucket_key) == 1);
    CHECK(read(bucket("5e8")).integer(bucket_key) == 500'000'000);
    CHECK(read(bucket("500000000.0")).integer(bucket_key) == 500'000'000);
    CHECK(read(bucket("9223372036854775807")).integer(bucket_key) == INT64_MAX);
    for (const char* wrong : {"0", "-1", "5.5", "1e30", "true", "\"5\"", "[5]", "{}", "null", "9223372036854775808",
                              "9.3e18", "0.5", "-5e8", "\"Auto\""}) {
        INFO(wrong);
        refused(code::config, {bucket_key}, [&] { read(bucket(wrong)); });
    }
    CHECK(read(bucket("\"auto\"")).is_auto(bucket_key));
    CHECK(read(bucket("\"auto\"")).integer(bucket_key) == 500'000'000);
    refused(code::config, {"configuration"}, [&] { read(bucket("1e400")); });
    refused(code::config, {"configuration"}, [&] { read(bucket("NaN")); });

    for (const char* wrong : {"-1", "4", "\"2\"", "1.5", "null", "\"auto\""}) {
        INFO(wrong);
        refused(code::config, {stage_key}, [&] { read(in_zero("\"stage\": " + std::string(wrong))); });
    }
    CHECK(read(in_zero("\"stage\": true")).integer(stage_key) == 1);
    CHECK(read(in_zero("\"stage\": 2.0")).integer(stage_key) == 2);
    CHECK(read("{\"zero_optimization\": true}").integer(stage_key) == 1);
    CHECK(read("{\"zero_optimization\": false}").integer(stage_key) == 0);

    refused(code::config, {"reduce_bucket_sizee", "nearest known key is \"zero_optimization.reduce_bucket_size\""},
            [] { read(in_zero("\"reduce_bucket_sizee\": 5")); });
    refused(code::config, {"\"zero_optimization.stage\" twice"}, [] { read(in_zero("\"stage\": 1, \"stage\": 1")); });
    refused(code::config, {"offload_optimizer.nvme_path"},
            [] { read(in_zero("\"offload_optimizer\": {\"device\": \"nvme\"}")); });
    refused(code::unsupported, {"offload_optimizer.device", "nvme"},
            [] { read(in_zero("\"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"/swap\"}")); });
}

TEST_CASE("keys given twice are found at any depth") {
    refused(code::config, {"\"fp16\" twice"}, [] { read("{\"fp16\": {}, \"fp16\": {}}"); });
    refused(code::config, {"\"optimizer.params.lr\" twice"},
            [] { read("{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 1, \"eps\": 1, \"lr\": 1}}}"); });
    refused(code::config, {"\"other.deep.a\" twice"},
            [] { read("{\"other\": [1, {\"deep\": {\"a\": 1, \"a\": 2}}]}"); });
    refused(code::config, {"\"a\" twice"}, [] { read("{\"a\": 1, \"\\u0061\": 2}"); });
    CHECK_NOTHROW(read("{\"fp16\": {\"enabled\": false}, \"bf16\": {\"enabled\": false}}"));
    refused(code::config, {"fp16.enabled", "twice"},
            [] { read("{\"fp16\": {\"enabled\": true}, \"fp16.enabled\": false}"); });
    refused(code::config, {"cpu_offload", "offload_optimizer.device", "twice"},
            [] { read(in_zero("\"cpu_offload\": true, \"offload_optimizer\": {\"device\": \"none\"}")); });
}

TEST_CASE("unknown keys: refused in sections, said once at the top level") {
    const char* const sections[] = {"zero_optimization", "optimizer",  "scheduler", "fp16", "bf16",
                                    "libzero",           "checkpoint", "groups"};
    for (const std::string section : sections) {
        INFO(section);
        refused(code::config, {section + ".frobnicate"}, [&] { read("{\"" + section + "\": {\"frobnicate\": 1}}"); });
    }
    refused(code::config, {"optimizer.params.learning", "nearest"},
            [] { read("{\"optimizer\": {\"params\": {\"learning\": 1}}}"); });
    refused(code::config, {"scheduler.params.warmup_num_step", "scheduler.params.warmup_num_steps"},
            [] { read("{\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_num_step\": 1}}}"); });
    const options top =
        read("{\"activation_checkpointing\": {\"a\": 1}, \"gradient_reduction\": \"sum\", \"aio\": {\"new_key\": 3}}");
    CHECK(said(top.notices(), "activation_checkpointing"));
    CHECK(said(top.notices(), "did you mean \"libzero.gradient_reduction\"?"));
    CHECK(said(top.notices(), "aio.new_key"));
    CHECK(top.notices().size() == 3);
    CHECK(read(in_zero("\"offload_param\": null, \"zenflow\": null")).notices().empty());
    refused(code::config, {"zero_optimization.offload_param", "section"},
            [] { read(in_zero("\"offload_param\": \"cpu\"")); });
    refused(code::config, {"fp16"}, [] { read("{\"fp16\": true}"); });
}

TEST_CASE("strict JSON, files and what is neither") {
    CHECK(read("").as_json() == "{}");
    CHECK(read(" \n\t").as_json() == "{}");
    CHECK(read(" \n {} ").as_json() == "{}");
    CHECK(read("{ // a comment\n \"gradient_clipping\": 1 /* and another */ }").real("gradient_clipping") == 1);
    for (const char* wrong :
         {"{", "{\"a\"}", "{\"a\": 1,}", "{} {}", "{\"a\": tru}", "{\"a\": \"\xff\"}", "{'a': 1}"}) {
        INFO(wrong);
        refused(code::config, {"not valid JSON"}, [&] { read(wrong); });
    }
    refused(code::config, {"NUL"}, [] { read(std::string("{}\0{}", 5)); });
    refused(code::config, {"NUL"}, [] { read(std::string("file\0.json", 10)); });
    refused(code::config, {"nested"}, [] { read("{\"a\": " + std::string(100'000, '[')); });
    refused(code::config, {"nested"}, [] {
        std::string deep;
        for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
        read(deep);
    });
    refused(code::config, {"larger than 64 MiB"}, [] { read("{" + std::string(largest_json, ' ') + "}"); });
    refused(code::config, {"must be a text"},
            [] { read(in_zero("\"offload_param\": {\"nvme_path\": \"a\\u0000b\"}")); });
    refused(code::io, {"no/such/file.json"}, [] { read("no/such/file.json"); });
    refused(code::io, {"folder"}, [] { read("/"); });
    refused(code::config, {"neither"}, [] { read("[1,\n2]"); });
    refused(code::io, {"larger", "..."}, [] { read("larger" + std::string(100'000, 'x')); });

    const zero::test::temporary_folder folder;
    const std::string path = (folder.path() / "zero.json").string();
    std::ofstream(path) << in_zero("\"stage\": 2");
    CHECK(read(path).integer(stage_key) == 2);
    std::ofstream(path) << in_zero("\"stage\": 7");
    refused(code::config, {stage_key}, [&] { read(path); });
    std::ofstream(path) << "{]";
    refused(code::config, {path}, [&] { read(path); });
    std::ofstream(path) << std::string("{}\0garbage", 10);
    refused(code::config, {path, "NUL"}, [&] { read(path); });
    std::ofstream(path) << "[1]";
    refused(code::config, {path, "object"}, [&] { read(path); });
}

TEST_CASE("words are known in any case, and keep the spelling of the table") {
    CHECK(read("{\"optimizer\": {\"type\": \"adamw\"}}").text("optimizer.type") == "AdamW");
    CHECK(read("{\"optimizer\": {\"type\": \"LAMB\"}}").text("optimizer.type") == "Lamb");
    CHECK(read("{\"scheduler\": {\"type\": \"warmuplr\"}}").text("scheduler.type") == "WarmupLR");
    refused(code::config, {"optimizer.type", "Adan", "one of Adam, AdamW, SGD"},
            [] { read("{\"optimizer\": {\"type\": \"Adan\"}}"); });
    for (const char* known : {"Muon", "OneBitAdam", "zerooneadam", "OneBitLamb"}) {
        refused(code::unsupported, {"optimizer.type"},
                [&] { read("{\"optimizer\": {\"type\": \"" + std::string(known) + "\"}}"); });
    }
    CHECK(read("{\"libzero\": {\"log_level\": \"info\"}}").integer("libzero.log_level") == 2);
    CHECK(read("{\"libzero\": {\"log_level\": 3}}").integer("libzero.log_level") == 3);
    refused(code::config, {"libzero.log_level"}, [] { read("{\"libzero\": {\"log_level\": \"loud\"}}"); });
    refused(code::config, {"libzero.device", "gpu"}, [] { read("{\"libzero\": {\"device\": \"gpu\"}}"); });
}

TEST_CASE("parameters belong to their optimizer or schedule") {
    const auto with = [](const std::string& type, const std::string& params) {
        return "{\"optimizer\": {\"type\": \"" + type + "\", \"params\": {" + params + "}}}";
    };
    refused(code::config, {"optimizer.params.momentum", "Adam"}, [&] { read(with("Adam", "\"momentum\": 0.9")); });
    refused(code::config, {"optimizer.params.betas", "SGD"}, [&] { read(with("SGD", "\"betas\": [0.9, 0.9]")); });
    refused(code::config, {"optimizer.params.eps", "Lion"}, [&] { read(with("Lion", "\"eps\": 1")); });
    CHECK_NOTHROW(read(with("sgd", "\"momentum\": 0.9, \"nesterov\": true")));
    CHECK_NOTHROW(read(with("AdamW", "\"torch_adam\": true, \"adam_w_mode\": true, \"amsgrad\": false")));
    refused(code::unsupported, {"optimizer.params.amsgrad"}, [&] { read(with("Adam", "\"amsgrad\": true")); });
    refused(code::config, {"betas"}, [&] { read(with("Adam", "\"betas\": [0.9, 1]")); });
    refused(code::config, {"betas"}, [&] { read(with("Adam", "\"betas\": [0.9]")); });
    refused(code::config, {"betas"}, [&] { read(with("Adam", "\"betas\": 0.9")); });
    refused(code::config, {"optimizer.params.lr"}, [&] { read(with("Adam", "\"lr\": -1e-9")); });
    CHECK(read(with("Adam", "\"lr\": 0")).real("optimizer.params.lr") == 0);
    CHECK(read(with("Adagrad", "")).real("optimizer.params.lr") == 1e-2);
    CHECK(read(with("Adagrad", "")).real("optimizer.params.eps") == 1e-10);
    CHECK(read(with("Adagrad", "\"lr\": 0.5")).real("optimizer.params.lr") == 0.5);

    const auto schedule = [](const std::string& type, const std::string& params) {
        return "{\"scheduler\": {\"type\": \"" + type + "\", \"params\": {" + params + "}}}";
    };
    refused(code::config, {"total_num_steps"}, [&] { read(schedule("WarmupDecayLR", "")); });
    refused(code::config, {"total_num_steps"},
            [&] { read(schedule("WarmupCosineLR", "\"total_num_steps\": \"auto\"")); });
    refused(code::config, {"cycle_max_lr"}, [&] { read(schedule("OneCycle", "\"cycle_min_lr\": 0.1")); });
    refused(code::config, {"total_num_steps", "WarmupLR"},
            [&] { read(schedule("WarmupLR", "\"total_num_steps\": 9")); });
    refused(code::config, {"scheduler.type"}, [] { read("{\"scheduler\": {\"params\": {\"warmup_min_lr\": 0}}}"); });
}

TEST_CASE("environment: read once, wins over the file, names itself when wrong") {
    CHECK(environment_name(stage_key) == "ZERO_ZERO_OPTIMIZATION_STAGE");
    {
        const environment_variable stage("ZERO_ZERO_OPTIMIZATION_STAGE", "3");
        const environment_variable empty("ZERO_GRADIENT_CLIPPING", "");
        options made;
        made.read(in_zero("\"stage\": 1"));
        CHECK(made.integer(stage_key) == 3);
        CHECK_FALSE(made.has("gradient_clipping"));
        made.set(stage_key, std::int64_t{2});
        CHECK(made.integer(stage_key) == 2);
        CHECK(read(in_zero("\"stage\": 1")).integer(stage_key) == 1);
    }
    {
        const environment_variable betas("ZERO_OPTIMIZER_PARAMS_BETAS", "[0.5, 0.75]");
        const environment_variable group("ZERO_GROUPS_0_LR", "0.25");
        options made;
        made.read("");
        CHECK(made.reals("optimizer.params.betas") == std::vector<double>{0.5, 0.75});
        CHECK(made.real("groups.0.lr") == 0.25);
    }
    const environment_variable wrong("ZERO_ZERO_OPTIMIZATION_STAGE", "four");
    refused(code::config, {"ZERO_ZERO_OPTIMIZATION_STAGE", stage_key, "four"}, [] { options().read(""); });
}

TEST_CASE("set: every type, and nothing changes when it is refused") {
    options made;
    made.set("optimizer.params.lr", 0.5);
    made.set("optimizer.params.lr", std::int64_t{2});
    CHECK(made.real("optimizer.params.lr") == 2);
    made.set("optimizer.params.betas", std::string("[0.9,0.95]"));
    CHECK(made.reals("optimizer.params.betas") == std::vector<double>{0.9, 0.95});
    made.set("zero_optimization.overlap_comm", std::string("true"));
    CHECK(made.boolean("zero_optimization.overlap_comm"));
    made.set("zero_optimization.overlap_comm", std::int64_t{0});
    CHECK_FALSE(made.boolean("zero_optimization.overlap_comm"));
    made.set(bucket_key, 5e8);
    made.set(bucket_key, std::string("5e8"));
    CHECK(made.integer(bucket_key) == 500'000'000);
    made.set("optimizer.type", std::string("lion"));
    CHECK(made.text("optimizer.type") == "Lion");
    const std::string before = made.as_json();
    refused(code::config, {"zero_optimization.overlap_comm", "0 (false) or 1 (true)"},
            [&] { made.set("zero_optimization.overlap_comm", std::int64_t{2}); });
    refused(code::config, {"optimizer.type"}, [&] { made.set("optimizer.type", std::int64_t{2}); });
    refused(code::config, {"optimizer.type"}, [&] { made.set("optimizer.type", 0.5); });
    refused(code::config, {"overlap_comm"}, [&] { made.set("zero_optimization.overlap_comm", 1.0); });
    refused(code::config, {"zero_optimization.stagee", stage_key},
            [&] { made.set("zero_optimization.stagee", std::int64_t{2}); });
    refused(code::unsupported, {"offload_param.device"}, [&] {
        made.set("zero_optimization.offload_param.nvme_path", std::string("swap"));
        made.set("zero_optimization.offload_param.device", std::string("nvme"));
    });
    refused(code::config, {"NUL"}, [&] { made.set("optimizer.type", std::string("Ad\0am", 5)); });
    CHECK(made.text("zero_optimization.offload_param.device") == "none");
    made = read(before);
    CHECK(made.as_json() == before);
    refused(code::config, {"train_batch_size", "not set"}, [&] { made.integer("train_batch_size"); });
    CHECK(made.text(bucket_key) == "500000000");
}

TEST_CASE("a read that fails changes nothing") {
    options made = read(in_zero("\"stage\": 2"));
    refused(code::config, {"fp16.hysteresis"},
            [&] { made.read("{\"bf16\": {\"enabled\": true}, \"fp16\": {\"hysteresis\": 0}}", false); });
    CHECK(made.as_json() == read(in_zero("\"stage\": 2")).as_json());
    CHECK(made.notices().empty());
}

TEST_CASE("groups") {
    options made = read("{\"optimizer\": {\"params\": {\"lr\": 0.1}}}");
    refused(code::config, {"groups.1.lr", "does not exist"}, [&] { made.set("groups.1.lr", 0.5); });
    refused(code::config, {"groups.1"}, [] { read("{\"groups\": {\"1\": {\"lr\": 1}}}"); });
    CHECK(read("{\"groups\": {\"0\": {\"frozen\": true}}}").boolean("groups.0.frozen"));
    made.add_group("{\"lr\": 0.5, \"betas\": [0.5, 0.6], \"frozen\": true}", 1);
    CHECK(made.real("groups.1.lr") == 0.5);
    CHECK(made.boolean("groups.1.frozen"));
    made.set("groups.1.frozen", std::int64_t{0});
    CHECK_FALSE(made.boolean("groups.1.frozen"));
    made.add_group("", 2);
    made.set("groups.2.upper", 4.0);
    CHECK(made.real("groups.2.upper") == 4);
    const std::string before = made.as_json();
    refused(code::config, {"groups.3.lrr", "groups.3.lr"}, [&] { made.add_group("{\"lrr\": 1}", 3); });
    refused(code::config, {"groups.3.stage"}, [&] { made.add_group("{\"stage\": 1}", 3); });
    refused(code::config, {"group 3", "twice"}, [&] { made.add_group("{\"lr\": 1, \"lr\": 1}", 3); });
    refused(code::config, {"group 3", "JSON"}, [&] { made.add_group("[]", 3); });
    refused(code::config, {"groups.3.lr"}, [&] { made.add_group("{\"weight_decay\": 1, \"lr\": -1}", 3); });
    CHECK(made.as_json() == before);
    refused(code::config, {"groups.3.lr"}, [&] { made.set("groups.3.lr", 1.0); });
}

TEST_CASE("old names are mapped") {
    const options old = read(in_zero(
        "\"stage\": 3, \"cpu_offload\": true, \"cpu_offload_param\": true, \"cpu_offload_use_pin_memory\": false, "
        "\"stage3_gather_fp16_weights_on_model_save\": false, \"max_live_parameters\": 5"));
    CHECK(old.text("zero_optimization.offload_optimizer.device") == "cpu");
    CHECK(old.text("zero_optimization.offload_param.device") == "cpu");
    CHECK_FALSE(old.boolean("zero_optimization.offload_optimizer.pin_memory"));
    CHECK_FALSE(old.boolean("zero_optimization.offload_param.pin_memory"));
    CHECK(old.integer("zero_optimization.stage3_max_live_parameters") == 5);
    CHECK(old.boolean("zero_optimization.cpu_offload"));
    CHECK(old.has("zero_optimization.cpu_offload"));
    CHECK(read(in_zero("\"cpu_offload\": false")).text("zero_optimization.offload_optimizer.device") == "none");
    refused(code::unsupported, {"16bit"}, [] { read(in_zero("\"stage3_gather_fp16_weights_on_model_save\": true")); });
    CHECK(read("{\"bfloat16\": {\"enabled\": true}}").boolean("bf16.enabled"));
    refused(code::config, {"max_live_parameters"}, [] { read(in_zero("\"max_live_parameters\": -1")); });
}

TEST_CASE("what has no effect is said once, with the reason") {
    options made =
        read("{\"prescale_gradients\": true, \"wall_clock_breakdown\": false, \"seed\": 7}");
    CHECK(said(made.notices(), "prescale_gradients has no effect"));
    CHECK_FALSE(said(made.notices(), "wall_clock_breakdown"));
    made.set("prescale_gradients", std::int64_t{1});
    CHECK(made.notices().size() == 2);
    CHECK(said(read(in_zero("\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\", \"buffer_count\": 5}")).notices(),
               "buffer_count"));
}

TEST_CASE("edit distance") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(edit_distance("abc", "") == 3);
    CHECK(nearest("zero_optimisation.stage") == "zero_optimization.stage");
    CHECK(nearest("groups.7.wieght_decay") == "groups.7.weight_decay");
    CHECK(nearest("gradient_cliping") == "gradient_clipping");
    CHECK(nearest("stage") == "zero_optimization.stage");
    CHECK_FALSE(nearest(std::string(1 << 20, 'x')).empty());
}
