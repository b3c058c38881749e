// The index as other programs see it: h5py, h5dump and h5ls read whole tensors of every kind; a missing part is no
// zero. And the tool zero-ckpt, as a user calls it.
#include "checkpoints/index.hpp"

#include <catch2/catch.hpp>
#include <ctime>

#include "checkpoints/crc32c.hpp"
#include "checkpoints/hdf5.hpp"
#include "run_command.hpp"
#include "there_and_back.hpp"

using namespace zero;
using namespace zero::test;

namespace {

std::string python_with_h5py() {
    for (const std::string python : {"/usr/bin/python3", "python3"})
        if (run(python + " -c 'import h5py'").exit_code == 0) return python;
    return "";
}

// Writes what each dataset must hold; names of tensors that are folders of others get ".value".
void expect(std::ofstream& list, const temporary_folder& folder, const std::vector<whole_tensor>& all) {
    for (std::size_t t = 0; t < all.size(); ++t)
        for (const whole_vector& vector : all[t].vectors) {
            const std::string name = all[t].name == "w" ? "w.value" : all[t].name;
            const std::string path =
                (vector.state == "value" ? "/parameters/" : "/states/" + vector.state + "/") + name;
            const std::string raw = folder / ("raw-" + std::to_string(t) + vector.state);
            write_file(raw, vector.bytes);
            list << path << '\t' << zero::name(vector.type) << '\t';
            for (const std::int64_t dim : all[t].dims) list << dim << ',';
            list << '\t' << raw << '\n';
        }
}

}  // namespace

TEST_CASE("h5py reads every kind of tensor through the index, and a reader of FORMAT.md through the parts") {
    const std::vector<whole_tensor> all = odd_model();
    const temporary_folder folder;
    std::vector<std::int64_t> counter{1, -2, 3};
    std::vector<std::vector<std::int32_t>> own{{1, 2}, {3, 4}, {5, 6}};
    save_options how;
    how.tag = "t";
    how.seed = 5;
    SECTION("one rank to a file") {
        how.ranks_per_file = 1;
    }
    SECTION("two ranks to a file") {
        how.ranks_per_file = 2;
    }
    how.change = [&](share& mine, int rank) {
        mine.state.attachments.push_back({"counter", dtype::i64, {3}, 3, false, counter.data()});
        mine.state.attachments.push_back({"50% of %b", dtype::i64, {3}, 3, false, counter.data()});
        mine.state.attachments.push_back(
            {"own", dtype::i32, {1, 2}, 2, true, own[static_cast<std::size_t>(rank)].data()});
    };
    REQUIRE(text(save_on(3, all, folder / "c", how)) == "");
    {
        std::ofstream list(folder / "expected");
        expect(list, folder, all);
        write_file(folder / "counter", {reinterpret_cast<const char*>(counter.data()), 24});
        list << "/attached/replicated/counter\tint64\t3,\t" << folder / "counter" << '\n';
        list << "/attached/replicated/50% of %b\tint64\t3,\t" << folder / "counter" << '\n';
        write_file(folder / "own", {reinterpret_cast<const char*>(own[2].data()), 8});
        list << "/attached/per_rank/rank-00002/own\tint32\t1,2,\t" << folder / "own" << '\n';
    }
    const std::string sources = ZERO_TEST_SOURCES, python = python_with_h5py();
    const run_result by_format =
        run("python3 " + sources + "/read_parts.py " + (folder / "c/t") + " " + (folder / "expected"));
    INFO(by_format.text);
    CHECK(by_format.exit_code == 0);
    if (python.empty()) {
        WARN("no Python with h5py was found (Debian: python3-h5py): this test is left out");
        return;
    }
    const run_result read =
        run(python + " " + sources + "/read_index.py " + (folder / "c/t/index.h5") + " " + (folder / "expected"));
    INFO(read.text);
    CHECK(read.exit_code == 0);
}

TEST_CASE("h5dump and h5ls read it") {
    if (run("h5dump --version").exit_code != 0) {
        WARN("h5dump was not found (Debian: hdf5-tools): this test is left out");
        return;
    }
    const std::vector<whole_tensor> all = odd_model();
    const temporary_folder folder;
    save_options how;
    how.tag = "t";
    REQUIRE(text(save_on(3, all, folder / "c", how)) == "");
    const run_result whole = run("h5dump " + (folder / "c/t/index.h5"));
    CHECK(whole.exit_code == 0);
    CHECK_THAT(whole.text, !Catch::Contains("nan") && !Catch::Contains("unable"));
    const run_result names = run("h5ls -r " + (folder / "c/t/index.h5"));
    CHECK(names.exit_code == 0);
    CHECK_THAT(names.text, Catch::Contains("/parameters/empty        Dataset {0, 4}") &&
                               Catch::Contains("/parameters/scalar       Dataset {SCALAR}") &&
                               Catch::Contains("/parameters/w/bias.x     Dataset {6}"));
    for (const std::string& part : parts_of(folder / "c/t")) CHECK(run("h5dump -H " + part).exit_code == 0);
    const std::string w = "h5dump -d /parameters/w.value " + (folder / "c/t/index.h5");
    CHECK_THAT(run(w).text, Catch::Contains("( 5, 7, 3 )") && !Catch::Contains("nan"));
    std::filesystem::remove(parts_of(folder / "c/t")[1]);
    CHECK_THAT(run(w).text, Catch::Contains("nan"));  // not zeros (B42)
}

TEST_CASE("another HDF5 at run time is an error, not the end of the process") {
    CHECK_NOTHROW(hdf5::check_version(H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE));
    try {
        hdf5::check_version(H5_VERS_MAJOR, H5_VERS_MINOR + 2, 0);
        FAIL("accepted");
    } catch (const error& problem) {
        CHECK(problem.which() == code::unsupported);
    }
}

TEST_CASE("an HDF5 failure is an error with HDF5's words, and prints nothing") {
    const hdf5::session session;
    try {
        hdf5::ask(H5Dopen2(-1, "x", H5P_DEFAULT), "open a dataset");
        FAIL("accepted");
    } catch (const error& problem) {
        CHECK(problem.which() == code::io);
        CHECK_THAT(problem.what(), Catch::Contains("could not open a dataset") && !Catch::Contains("no reason"));
    }
}

TEST_CASE("zero-ckpt lists, shows and verifies, with its exit codes") {
    const std::vector<whole_tensor> all = odd_model();
    const temporary_folder folder;
    const std::string tool = std::string(ZERO_CKPT) + " ";
    CHECK(run(tool + "list " + (folder / "c")).exit_code == 3);
    CHECK(run(tool + "verify").exit_code == 2);
    save_options how;
    how.tag = "first";
    REQUIRE(text(save_on(2, all, folder / "c", how)) == "");
    how.tag = "second";
    REQUIRE(text(save_on(3, all, folder / "c", how)) == "");
    const run_result list = run(tool + "list " + (folder / "c"));
    CHECK(list.exit_code == 0);
    CHECK(list.text.find("second") < list.text.find("first"));
    const run_result show = run(tool + "show " + (folder / "c"));
    CHECK(show.exit_code == 0);
    CHECK_THAT(show.text, Catch::Contains("c/second") && Catch::Contains("exp_avg_sq") && Catch::Contains("frozen") &&
                              Catch::Contains("[5, 7, 3]"));
    for (const char* command : {"list ", "show ", "verify --full "}) {
        const run_result json =
            run(tool + command + "--json " + (folder / "c") + " | python3 -m json.tool > /dev/null && echo right");
        CHECK(json.text == "right\n");
    }
    CHECK(run(tool + "verify " + (folder / "c/first")).exit_code == 0);
    CHECK(run(tool + "verify --full " + (folder / "c/first")).exit_code == 0);
    const std::string part = parts_of(folder / "c/first")[0];
    std::string bytes = read_file(part);
    const std::size_t at = bytes.find(all[0].vectors[1].bytes.substr(0, 16));
    REQUIRE(at != std::string::npos);
    bytes[at + 3] = static_cast<char>(bytes[at + 3] ^ 1);
    write_file(part, bytes);
    CHECK(run(tool + "verify " + (folder / "c/first")).exit_code == 0);  // the quick look reads no data
    const run_result found = run(tool + "verify --full " + (folder / "c/first"));
    CHECK(found.exit_code == 1);
    CHECK_THAT(found.text, Catch::Contains(part) && Catch::Contains("exp_avg"));
    std::filesystem::resize_file(folder / "c/second/index.h5", 100);
    CHECK(run(tool + "verify " + (folder / "c")).exit_code == 1);
    write_file(folder / "c/second/MANIFEST.json", "{");
    CHECK(run(tool + "verify " + (folder / "c/second")).exit_code == 1);
    CHECK(run(tool + "show " + (folder / "c/second")).exit_code == 1);
    CHECK_THAT(run(tool + "list " + (folder / "c")).text, Catch::Contains("second  damaged"));
    CHECK_THAT(run(tool + "list --json " + (folder / "c")).text, Catch::Contains("\"whole\": false"));
    // The newest one is damaged: the older one beside it is no answer to "is my folder fine?".
    CHECK(run(tool + "verify " + (folder / "c")).exit_code == 1);
    CHECK(run(tool + "show " + (folder / "c")).exit_code == 1);
    for (const char* command : {"list ", "show ", "verify "}) {
        CHECK(run(tool + command + (folder / "nowhere")).exit_code == 3);
        CHECK(run(tool + command + folder.path().string()).exit_code == 3);
        CHECK(run(tool + command + (folder / std::string(300, 'x'))).exit_code ==
              4);  // the name is too long to ask for
        CHECK(run(tool + command + "--wrong " + (folder / "c")).exit_code == 2);
    }
}

TEST_CASE("zero-ckpt says where a checkpoint of another format is not readable") {
    const std::vector<whole_tensor> all{make_tensor("a", dtype::f32, {4}, false, 1)};
    const temporary_folder folder;
    save_options how;
    how.tag = "t";
    REQUIRE(text(save_on(1, all, folder / "c", how)) == "");
    const std::string path = folder / "c/t/MANIFEST.json";
    std::string manifest = read_file(path);
    const std::size_t version = manifest.find("\"libzero_checkpoint\":1") + 21,
                      sum = manifest.find("head_crc32c\":\"") + 14;
    manifest[version] = '2';
    manifest.replace(sum, 8, crc32c::text(crc32c::of(manifest.substr(8, manifest.find(",\"head_crc32c") - 8))));
    const std::size_t last = manifest.size() - 11;
    manifest.replace(last, 8, crc32c::text(crc32c::of(manifest.substr(0, last))));
    write_file(path, manifest);
    const std::string tool = std::string(ZERO_CKPT) + " ";
    for (const char* command : {"show ", "verify "}) {
        const run_result found = run(tool + command + (folder / "c/t"));
        CHECK(found.exit_code == 4);
        CHECK_THAT(found.text, Catch::Contains("has format 2"));
    }
    CHECK(answer(load_on(1, all, folder / "c").thrown) == code::checkpoint);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double most_seconds = 60;  // not the library's time: sanitizers, and their presets do not optimise
#else
constexpr double most_seconds = 5;
#endif

TEST_CASE("an index of 1,200 tensors takes about half a second, whatever their size") {
    using namespace zero::checkpoint;
    manifest what;
    what.head.uuid = "01234567-89ab-4def-8123-456789abcdef";
    what.head.ranks = 4;
    const std::int64_t each = 1000;
    for (int file = 0; file < 4; ++file) {
        what.files.push_back({"part-01234567-" + std::to_string(file), 1 << 30, 0, 0, 0, 0});
        for (const char* kind : {"parameter", "exp_avg", "exp_avg_sq"})
            what.extents.push_back({file, std::string("/data/group-0-fp32/") + kind, dtype::f32, 0, 1200 * each, 0, 0});
    }
    for (int t = 0; t < 1200; ++t) {
        tensor_entry one{
            "layer" + std::to_string(t) + "/w", dtype::f32, {each * 2 / 50, 100}, each * 4, 0, 0, false, {}};
        for (int v = 0; v < 3; ++v) {
            one.vectors.push_back({v == 0 ? "value" : v == 1 ? "exp_avg" : "exp_avg_sq", dtype::f32, {}});
            for (int file = 0; file < 4; ++file)
                one.vectors.back().pieces.push_back({3 * file + v, t * each, file * each, each});
        }
        what.tensors.push_back(one);
    }
    const std::clock_t start = std::clock();  // of the processor: other tests run beside this one
    const index_file made = build_index(what, {});
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    INFO(made.bytes << " bytes in " << seconds << " s");
    CHECK(seconds < most_seconds);  // 0.5 on a free processor; old and busy machines have their share
}
