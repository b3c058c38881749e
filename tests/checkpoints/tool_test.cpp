// zero-ckpt as a user calls it: diff, export, import, merge, prune, statistics, on checkpoints of three ranks with odd
// shapes and names. list, show and verify are in index_test.cpp.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "checkpoints/crc32c.hpp"
#include "run_command.hpp"
#include "tensor/vector.hpp"
#include "there_and_back.hpp"

using namespace zero;
using namespace zero::test;
using nlohmann::json;

namespace {

run_result tool(const std::string& arguments) {
    return run(std::string(ZERO_CKPT) + " " + arguments);
}

json answer_of(const std::string& arguments, int exit_code) {
    const run_result found = tool(arguments);
    INFO(arguments << ": " << found.text);
    REQUIRE(found.exit_code == exit_code);
    return json::parse(found.text);
}

void save_as(const std::string& folder, const std::string& tag, const std::vector<whole_tensor>& all, int ranks = 3,
             std::int64_t step = 7) {
    save_options how;
    how.tag = tag;
    how.seed = 5;  // uneven pieces
    how.step = step;
    how.change = [](share& mine, int) { mine.state.run.stage = 3; };
    REQUIRE(text(save_on(ranks, all, folder, how)) == "");
}

// Flips a bit of the first element of the first tensor's value.
void damage_data(const std::string& folder, const std::string& part_of_data) {
    for (const std::string& part : parts_of(folder)) {
        std::string bytes = read_file(part);
        const std::size_t at = bytes.find(part_of_data);
        if (at == std::string::npos) continue;
        bytes[at] = static_cast<char>(bytes[at] ^ 1);
        write_file(part, bytes);
        return;
    }
    FAIL("the data was not found in " << folder);
}

// Trouble: exit code 2 and a sentence, however the command ends it.
void check_trouble(const std::string& arguments, const std::string& words) {
    const run_result found = tool(arguments);
    INFO(arguments << ": " << found.text);
    CHECK(found.exit_code == 2);
    CHECK_THAT(found.text, Catch::StartsWith("zero-ckpt: ") && Catch::Contains(words));
}

}  // namespace

TEST_CASE("zero-ckpt diff: equal bits whatever the number of ranks") {
    const temporary_folder folder;
    save_as(folder / "a", "t", odd_model(), 3);
    save_as(folder / "b", "u", odd_model(), 2);
    const json found = answer_of("diff --json " + (folder / "a/t") + " " + (folder / "b"), 0);
    CHECK(found["equal"] == true);
    CHECK(found["equal_tensors"] == odd_model().size());
    CHECK(tool("diff " + (folder / "a") + " " + (folder / "b")).exit_code == 0);
}

TEST_CASE("zero-ckpt diff counts elements and finds the largest differences") {
    const temporary_folder folder;
    std::vector<whole_tensor> a = odd_model(), b = odd_model();
    const auto put = [](whole_tensor& to, std::size_t vector, std::size_t place, float value) {
        std::memcpy(to.vectors[vector].bytes.data() + 4 * place, &value, 4);
    };
    put(a[0], 0, 3, 2.0F), put(b[0], 0, 3, 1.5F);    // 0.5, a quarter
    put(a[0], 0, 100, 0.1F), put(b[0], 0, 100, -0.1F);  // 0.2, twice
    put(a[1], 1, 5, 0.0F), put(b[1], 1, 5, -0.0F);   // other bits, the same number
    put(a[3], 2, 35, NAN), put(b[3], 2, 35, 1.0F);
    a[4].group = 2;
    b[5].dims = {4, 3, 2, 5};
    a[6].name = "only/a";
    b[6].name = "only/b";
    b[8] = make_tensor("ice/bf16", dtype::f32, {4, 4}, true, 81);
    save_as(folder / "a", "t", a);
    save_as(folder / "b", "t", b);
    const json found = answer_of("diff --json " + (folder / "a/t") + " " + (folder / "b/t"), 1);
    CHECK(found["equal"] == false);
    CHECK(found["only_in_a"] == json{"only/a"});
    CHECK(found["only_in_b"] == json{"only/b"});
    std::map<std::string, json> by_name;
    for (const json& one : found["different"]) by_name[one["name"]] = one;
    REQUIRE(by_name.size() == 6);
    const json& w = by_name["w"]["values"][0];
    CHECK(w["state"] == "value");
    CHECK(w["different"] == 2);
    CHECK(w["elements"] == 105);
    CHECK(w["largest_absolute"].get<double>() == Approx(0.5));
    CHECK(w["largest_relative"].get<double>() == Approx(2.0));
    CHECK(by_name["w"]["values"].size() == 1);
    CHECK(by_name["w/bias.x"]["values"][0]["state"] == "exp_avg");
    CHECK(by_name["w/bias.x"]["values"][0]["different"] == 1);
    CHECK(by_name["w/bias.x"]["values"][0]["largest_absolute"] == 0.0);
    CHECK(by_name["half"]["values"][0]["largest_absolute"] == "inf");
    CHECK(by_name["half16"]["group"] == json{2, 1});
    CHECK(by_name["double"]["dims"] == json{{2, 3, 4, 5}, {4, 3, 2, 5}});
    CHECK(by_name["ice/bf16"]["dtype"] == json{"bf16", "fp32"});
    CHECK(by_name["ice/bf16"]["values"][0]["stored"] == json{"bf16", "fp32"});
    CHECK_THAT(tool("diff " + (folder / "a/t") + " " + (folder / "b/t")).text,
               Catch::Contains("w: value differs in 2 of 105 elements") && Catch::Contains("only/a: only in "));
}

TEST_CASE("zero-ckpt diff: what is not there or damaged is trouble") {
    const temporary_folder folder;
    save_as(folder / "a", "t", odd_model());
    save_as(folder / "b", "t", odd_model());
    const std::string a = folder / "a/t", b = folder / "b/t";
    check_trouble("diff " + a + " " + (folder / "nowhere"), "there is no checkpoint");
    damage_data(b, odd_model()[0].vectors[0].bytes.substr(0, 8));
    check_trouble("diff " + a + " " + b, "is damaged");
    write_file(b + "/MANIFEST.json", "{");
    check_trouble("diff " + a + " " + b, "MANIFEST.json");
    CHECK(tool("diff " + a).exit_code == 2);
}

namespace {

const char* safetensors_name(dtype type) {
    return type == dtype::f64 ? "F64" : type == dtype::f32 ? "F32" : type == dtype::bf16 ? "BF16" : "F16";
}

std::string converted(const whole_vector& from, std::int64_t count, dtype to) {
    std::string bytes(static_cast<std::size_t>(count * size_of(to)), '\0');
    vector::convert(to, bytes.data(), from.type, from.bytes.data(), count);
    return bytes;
}

// What is expected of an export, for read_safetensors.py.
void expect(const temporary_folder& folder, const std::vector<whole_tensor>& all, bool states) {
    std::ofstream list(folder / "expected");
    for (std::size_t t = 0; t < all.size(); ++t)
        for (const whole_vector& one : all[t].vectors) {
            const bool value = one.state == "value";
            if (!value && !states) continue;
            const dtype type = value ? all[t].type : one.type;
            const std::string raw = folder / ("raw-" + std::to_string(t) + one.state);
            write_file(raw, converted(one, all[t].count, type));
            list << (value ? "" : "states/" + one.state + "/") << all[t].name << '\t' << safetensors_name(type) << '\t';
            for (const std::int64_t dim : all[t].dims) list << dim << ',';
            list << '\t' << raw << '\n';
        }
}

std::vector<std::string> tags_in(const std::string& folder) {
    std::vector<std::string> tags;
    for (const json& one : answer_of("list --json " + folder, 0)) tags.push_back(one["tag"]);
    return tags;
}

}  // namespace

TEST_CASE("zero-ckpt export: every dtype, shape and name as safetensors, and back as weights") {
    const temporary_folder folder;
    const std::vector<whole_tensor> all = odd_model();
    save_as(folder / "a", "t", all);
    const bool states = GENERATE(false, true);
    const std::string file = folder / "x.safetensors";
    const run_result wrote =
        tool("export " + (folder / "a/t") + (states ? " --states" : "") + " --safetensors " + file);
    INFO(wrote.text);
    REQUIRE(wrote.exit_code == 0);
    expect(folder, all, states);
    const run_result read =
        run("python3 " + std::string(ZERO_TEST_SOURCES) + "/read_safetensors.py " + file + " " + (folder / "expected"));
    INFO(read.text);
    CHECK(read.exit_code == 0);
    check_trouble("export " + (folder / "a/t") + " --safetensors " + file, "is there already");

    const run_result made = tool("import --safetensors " + file + " " + (folder / "c") + " new");
    INFO(made.text);
    REQUIRE(made.exit_code == 0);
    CHECK(tool("verify --full " + (folder / "c/new")).exit_code == 0);
    std::vector<whole_tensor> values = all;  // as a context of two ranks wants them
    for (whole_tensor& one : values) {
        whole_vector rounded{"value", one.type, converted(one.vectors[0], one.count, one.type)};
        one.vectors[0].bytes = converted(rounded, one.count, one.vectors[0].type);
        one.vectors.resize(1);
    }
    load_options how;
    how.taking = checkpoint::taking::weights;
    const load_result loaded = load_on(2, values, folder / "c", how);
    CHECK(text(loaded.thrown) == "");
    CHECK(loaded.equal);
    // Without that option it is refused: it has no optimizer states.
    CHECK(answer(load_on(2, all, folder / "c").thrown) == code::checkpoint);
    check_trouble("import --safetensors " + file + " " + (folder / "c") + " new", "new");
    check_trouble("import --safetensors " + file + " " + (folder / "c") + " LATEST", "LATEST");
}

TEST_CASE("zero-ckpt export --dtype") {
    const temporary_folder folder;
    const std::vector<whole_tensor> all{make_tensor("half", dtype::bf16, {9, 4}, false, 31)};
    save_as(folder / "a", "t", all);
    const auto exported = [&](const std::string& type) {
        const std::string file = folder / type;
        REQUIRE(tool("export " + (folder / "a") + " --dtype " + type + " --safetensors " + file).exit_code == 0);
        return read_file(file);
    };
    CHECK(exported("stored").ends_with(all[0].vectors[0].bytes));
    CHECK(exported("fp32").ends_with(all[0].vectors[0].bytes));
    CHECK(exported("fp64").ends_with(converted(all[0].vectors[0], 36, dtype::f64)));
    CHECK(exported("fp16").ends_with(converted(all[0].vectors[0], 36, dtype::f16)));
    CHECK(exported("bf16").ends_with(converted(all[0].vectors[0], 36, dtype::bf16)));
    CHECK(tool("export " + (folder / "a") + " --dtype int8 --safetensors " + (folder / "z")).exit_code == 2);
}

TEST_CASE("zero-ckpt export leaves nothing behind where the data is damaged") {
    const temporary_folder folder;
    save_as(folder / "a", "t", odd_model());
    damage_data(folder / "a/t", odd_model()[5].vectors[0].bytes.substr(0, 8));
    check_trouble("export " + (folder / "a/t") + " --safetensors " + (folder / "x"), "is damaged");
    CHECK(names_in(folder.path().string()) == std::vector<std::string>{"a"});
    check_trouble("export " + (folder / "b") + " --safetensors " + (folder / "x"), "there is no checkpoint");
}

TEST_CASE("zero-ckpt import: what is no safetensors file is a sentence, not a crash") {
    const temporary_folder folder;
    const std::string path = folder / "x";
    const auto header = [&](const std::string& text, const std::string& data = std::string(16, 'x')) {
        const std::uint64_t length = text.size();
        write_file(path, std::string(reinterpret_cast<const char*>(&length), 8) + text + data);
    };
    const auto refused = [&](const std::string& words) {
        check_trouble("import --safetensors " + path + " " + (folder / "c") + " t", words);
        CHECK_FALSE(std::filesystem::exists(folder / "c/t"));
    };
    refused("x");
    write_file(path, "");
    refused("0 bytes");
    write_file(path, std::string(20, '\xff'));
    refused("its header would have");
    header("{\"a\":");
    refused("no JSON");
    header("[1]");
    refused("no JSON object");
    header(std::string(100000, '['));
    refused("nested too deep");
    header("{}");
    refused("no tensor");
    header(R"({"a":1})");
    refused("\"a\"");
    header(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,17]}})");
    refused("outside of the file");
    header(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}})");
    refused("does not fit its shape");
    header(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,16]}})");
    refused("x");
    header(R"({"a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})");
    refused("the shape");
    header(R"({"a":{"dtype":"I8","shape":[16],"data_offsets":[0,16]}})");
    refused("dtype \"I8\"");
    header(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})");
    refused("twice");
    header(R"({"../a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})");
    refused("..");
    header(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})");
    CHECK(tool("import --safetensors " + path + " " + (folder / "c") + " t").exit_code == 0);
}

TEST_CASE("zero-ckpt prune keeps the newest, LATEST, every K-th, and what is damaged or being written") {
    const temporary_folder folder;
    const std::string c = folder / "c";
    const std::vector<whole_tensor> all{make_tensor("a", dtype::f32, {5}, false, 1)};
    for (const int step : {10, 20, 30, 40, 50, 60})
        save_as(c, "s" + std::to_string(step), all, 3, step);
    write_file(c + "/LATEST", "s10\n");
    std::filesystem::create_directory(c + "/.staging-11111111-1111-4111-8111-111111111111");
    std::filesystem::create_directory(c + "/mine");  // not a checkpoint
    write_file(c + "/s50/index.h5", "");              // damaged: does not count
    const std::string arguments = "prune " + c + " --keep-last 2 --keep-every 30";
    const std::vector<std::string> before = names_in(c);
    const run_result said = tool(arguments + " --dry-run");
    CHECK(said.exit_code == 0);
    CHECK_THAT(said.text, Catch::Contains("would remove s20") && !Catch::Contains("would remove s10") &&
                              !Catch::Contains("would remove s40"));
    CHECK(names_in(c) == before);
    CHECK(tool(arguments).exit_code == 0);
    CHECK(tags_in(c) == std::vector<std::string>{"s60", "s50", "s40", "s30", "s10"});
    CHECK(std::filesystem::exists(c + "/mine"));
    CHECK(std::filesystem::exists(c + "/.staging-11111111-1111-4111-8111-111111111111"));
    CHECK(names_in(c).size() == before.size() - 1);  // no trash is left
    write_file(c + "/s10/MANIFEST.json", "{");
    CHECK(tool("prune " + c + " --keep-last 1").exit_code == 0);
    CHECK(tags_in(c) == std::vector<std::string>{"s10", "s60"});
    CHECK(tool("prune " + c + " --keep-last 0").exit_code == 2);
    CHECK(tool("prune " + c).exit_code == 2);
    check_trouble("prune " + (folder / "nowhere") + " --keep-last 1", "there is no folder");
}

TEST_CASE("zero-ckpt merge: h5py reads every tensor whole, without the parts") {
    const temporary_folder folder;
    const std::vector<whole_tensor> all = odd_model();
    save_as(folder / "a", "t", all);
    const bool states = GENERATE(false, true);
    const std::string file = folder / "whole.h5";
    const run_result wrote = tool("merge " + (folder / "a/t") + " " + file + (states ? " --states" : ""));
    INFO(wrote.text);
    REQUIRE(wrote.exit_code == 0);
    check_trouble("merge " + (folder / "a/t") + " " + file, "is there already");
    std::filesystem::rename(folder / "a", folder / "elsewhere");
    if (run("h5dump --version").exit_code == 0) {
        CHECK_THAT(run("h5dump -p -H -d /parameters/w.value " + file).text,
                   Catch::Contains("CONTIGUOUS") && Catch::Contains("( 5, 7, 3 )"));
        CHECK((run("h5dump -H -d /states/exp_avg/w.value " + file).exit_code == 0) == states);
    }
    std::ofstream list(folder / "expected");
    for (std::size_t t = 0; t < all.size(); ++t)
        for (const whole_vector& one : all[t].vectors) {
            if (one.state != "value" && !states) continue;
            const std::string raw = folder / ("raw-" + std::to_string(t) + one.state);
            write_file(raw, one.bytes);
            list << (one.state == "value" ? "/parameters/" : "/states/" + one.state + "/")
                 << (all[t].name == "w" ? "w.value" : all[t].name) << '\t' << zero::name(one.type) << '\t';
            for (const std::int64_t dim : all[t].dims) list << dim << ',';
            list << '\t' << raw << '\n';
        }
    list.close();
    if (run("/usr/bin/python3 -c 'import h5py'").exit_code != 0) {
        WARN("no Python with h5py was found (Debian: python3-h5py): the values are not compared");
        return;
    }
    const run_result read = run("/usr/bin/python3 " + std::string(ZERO_TEST_SOURCES) + "/read_index.py " + file + " " +
                                (folder / "expected"));
    INFO(read.text);
    CHECK(read.exit_code == 0);
}

TEST_CASE("zero-ckpt show --statistics") {
    const temporary_folder folder;
    std::vector<whole_tensor> all = {make_tensor("a", dtype::f32, {2, 2}, true, 1),
                                     make_tensor("empty", dtype::f64, {0}, true, 1)};
    const float values[] = {-1.5F, 4.0F, NAN, 0.5F};
    std::memcpy(all[0].vectors[0].bytes.data(), values, sizeof values);
    save_as(folder / "a", "t", all, 1);
    const json found = answer_of("show --json --statistics " + (folder / "a"), 0);
    const json& value = found["tensors"][0]["statistics"]["value"];
    CHECK(value == json{{"min", -1.5}, {"max", 4.0}, {"mean", 1.0}, {"not_finite", 1}});
    CHECK(found["tensors"][1]["statistics"]["value"]["min"].is_null());
    CHECK_THAT(tool("show --statistics " + (folder / "a")).text,
               Catch::Contains("min -1.5, max 4, mean 1, 1 not finite"));
    damage_data(folder / "a/t", all[0].vectors[0].bytes);
    CHECK(tool("show --statistics " + (folder / "a")).exit_code == 1);  // as show's other damage
}

TEST_CASE("zero-ckpt export, merge, import and prune answer in JSON") {
    const temporary_folder folder;
    const std::vector<whole_tensor> all{make_tensor("a", dtype::f32, {5}, false, 1),
                                        make_tensor("empty", dtype::f64, {0}, true, 1)};
    for (const int step : {10, 20, 30}) save_as(folder / "c", "s" + std::to_string(step), all, 2, step);
    const json out = answer_of("export --json " + (folder / "c") + " --safetensors " + (folder / "x"), 0);
    CHECK(out["folder"] == (folder / "c/s30"));
    CHECK(out["file"] == (folder / "x"));
    CHECK(out["arrays"] == 2);
    CHECK(out["bytes"] == 20);
    const json whole = answer_of("merge --json --states " + (folder / "c") + " " + (folder / "y"), 0);
    CHECK(whole["arrays"] == 1 + all[0].vectors.size());
    CHECK(whole["bytes"] == 20 * all[0].vectors.size());
    const json in = answer_of("import --json --safetensors " + (folder / "x") + " " + (folder / "d") + " t", 0);
    CHECK(in["folder"] == (folder / "d/t"));
    CHECK(in["tensors"] == 2);
    CHECK(in["bytes"] == 20);
    write_file(folder / "c/s20/MANIFEST.json", "{");
    const json gone = answer_of("prune --json --keep-last 1 " + (folder / "c"), 0);
    CHECK(gone["dry_run"] == false);
    CHECK(gone["removed"] == json{"s10"});
    REQUIRE(gone["left_alone"].size() == 1);
    CHECK(gone["left_alone"][0]["tag"] == "s20");
    CHECK_FALSE(std::filesystem::exists(folder / "c/s10"));
}

TEST_CASE("completion offers the commands, options and words of zero-ckpt") {
    const temporary_folder folder;
    const auto offered = [&](const std::string& words, int place) {
        write_file(folder / "ask.sh", ". " + std::string(ZERO_TEST_SOURCES) + "/../../checkpoints/tool/completion.bash\n" +
                                          "COMP_WORDS=(" + ZERO_CKPT + " " + words + ") COMP_CWORD=" +
                                          std::to_string(place) + "\n_zero_ckpt\nprintf '%s ' \"${COMPREPLY[@]}\"\n");
        return run("bash " + (folder / "ask.sh")).text;
    };
    CHECK(offered("ve", 1) == "verify ");
    CHECK(offered("''", 1) == "--help list show verify diff export import merge prune ");
    CHECK(offered("prune --k", 2) == "--keep-last --keep-every ");
    CHECK(offered("export --dtype f", 3) == "fp32 fp64 fp16 ");
    write_file(folder / "some_file", "");
    CHECK(offered("show " + (folder / "some"), 2) == (folder / "some_file") + " ");
}

TEST_CASE("zero-ckpt import shows a bar with its rate on a terminal, and none elsewhere") {
    if (run("script --version").exit_code != 0) {
        WARN("script was not found (Debian: bsdutils): this test is left out");
        return;
    }
    const temporary_folder folder;
    save_as(folder / "c", "t", {make_tensor("a", dtype::f32, {5}, false, 1)}, 1);
    for (const std::string& command :
         {"export " + (folder / "c") + " --safetensors " + (folder / "x"), "import --safetensors " + (folder / "x") + " " + (folder / "d") + " t"}) {
        const run_result seen = run("script -qec '" + std::string(ZERO_CKPT) + " " + command + "' /dev/null");
        INFO(command << ": " << seen.text);
        CHECK(seen.exit_code == 0);
        CHECK_THAT(seen.text, Catch::Contains(" %  ") && Catch::Contains("/s"));
    }
    CHECK(tool("verify --full " + (folder / "c")).text.find('%') == std::string::npos);
}
