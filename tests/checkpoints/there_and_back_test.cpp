// Save on P, load on P': every bit of every vector, whatever the borders; what does not fit is listed; attached arrays.
#include "there_and_back.hpp"

#include <hdf5.h>

#include <array>
#include <catch2/catch.hpp>

#include "checkpoints/reshard.hpp"
#include "checkpoints/verify.hpp"

using namespace zero;
using namespace zero::test;

namespace {

// The bytes that all ranks together need, and in how many pieces they lie in the files.
std::pair<std::int64_t, std::int64_t> needs_of(const std::vector<whole_tensor>& all, const checkpoint::manifest& saved, int ranks) {
    std::int64_t bytes = 0, pieces = 0;
    const checkpoint::catalogue tensors(saved, 0);
    for (int rank = 0; rank < ranks; ++rank) {
        const share mine(all, rank, ranks, true);
        checkpoint::demand wanted;
        for (const checkpoint::tensor_state& tensor : mine.state.tensors)
            for (const checkpoint::vector_state& vector : tensor.vectors)
                checkpoint::add_range(wanted, *checkpoint::find_vector(*tensors.tensor(tensor.name), vector.state), vector.first,
                                      vector.count, vector.type, nullptr);
        std::set<std::pair<std::int64_t, std::int64_t>> stretches;  // begin and end, files one after the other
        for (const auto& [number, items] : wanted)
            for (const checkpoint::wanted& one : items) {
                const checkpoint::extent& where = saved.extents[static_cast<std::size_t>(number)];
                const std::int64_t first = where.offset + one.first * size_of(where.type) + (std::int64_t{where.file} << 40);
                stretches.insert({first, first + one.count * size_of(where.type)});
            }
        std::int64_t end = -1;
        for (const auto& [first, past] : stretches) {
            bytes += past - first;
            pieces += first == end ? 0 : 1;
            end = past;
        }
    }
    return {bytes, pieces};
}

}  // namespace

TEST_CASE("any number of ranks to any other, bit for bit") {
    const std::vector<whole_tensor> all = odd_model();
    for (int ranks = 1; ranks <= 5; ++ranks) {
        const temporary_folder folder;
        save_options how;
        how.seed = static_cast<unsigned>(ranks) * 7;  // ragged: some own nothing
        how.ranks_per_file = ranks == 5 ? 2 : 1;
        how.behind = ranks % 2 != 0;
        REQUIRE(text(save_on(ranks, all, folder / "a/b", how)) == "");
        CHECK(names_in(folder / "a/b") == std::vector<std::string>{"LATEST", "step-000000000007"});
        for (int other = 1; other <= 6; ++other) {
            load_options back;
            back.seed = static_cast<unsigned>(other) * 13;
            const load_result found = load_on(other, all, folder / "a/b", back);
            INFO(ranks << " to " << other << ": " << text(found.thrown));
            REQUIRE(answer(found.thrown) == code::ok);
            REQUIRE(found.equal);
            CHECK(found.run.step == 7);
            CHECK(found.run.lr == 0.1);
        }
    }
    CHECK(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL) == 0);
}

TEST_CASE("a large tensor spans blocks and requests, and a rank reads little more than it needs") {
    std::vector<whole_tensor> all{make_tensor("big", dtype::f32, {3, 1'700'001}, false, 1),
                                  make_tensor("b", dtype::f64, {700'003}, false, 9)};
    const temporary_folder folder;
    save_options how;
    how.behind = GENERATE(false, true);
    how.ranks_per_file = GENERATE(1, 2);
    REQUIRE(text(save_on(3, all, folder / "c", how)) == "");
    const checkpoint::manifest saved =
        checkpoint::read_manifest(files::disk(), folder / "c/step-000000000007");
    for (const int ranks : {1, 2, 3, 5, 8}) {
        const load_result found = load_on(ranks, all, folder / "c");
        REQUIRE(text(found.thrown) == "");
        CHECK(found.equal);
        const auto [needed, pieces] = needs_of(all, saved, ranks);
        INFO(ranks << " ranks, " << found.bytes_read << " bytes read, " << needed << " needed in " << pieces << " pieces");
        CHECK(found.bytes_read >= needed);
        CHECK(found.bytes_read <= needed + pieces * (std::int64_t{2} << 20));
    }
}

TEST_CASE("values change their dtype on the way") {
    std::vector<whole_tensor> saved{make_tensor("x", dtype::f32, {11}, false, 1)};
    std::vector<whole_tensor> wanted{make_tensor("x", dtype::f64, {11}, false, 1)};
    for (std::size_t v = 0; v < 3; ++v)
        for (std::size_t k = 0; k < 11; ++k) {
            float single = 0;
            std::memcpy(&single, saved[0].vectors[v].bytes.data() + 4 * k, 4);
            const double wide = single;
            std::memcpy(wanted[0].vectors[v].bytes.data() + 8 * k, &wide, 8);
        }
    const temporary_folder folder;
    REQUIRE(text(save_on(2, saved, folder / "c")) == "");
    const load_result wider = load_on(3, wanted, folder / "c");
    CHECK(text(wider.thrown) == "");
    CHECK(wider.equal);
    REQUIRE(text(save_on(3, wanted, folder / "d")) == "");
    CHECK(load_on(2, saved, folder / "d").equal);
}

TEST_CASE("everything that does not fit is listed at once, and nothing is touched") {
    const std::vector<whole_tensor> saved{make_tensor("a", dtype::f32, {4}, false, 1),
                                          make_tensor("b", dtype::f32, {4}, false, 2),
                                          make_tensor("c", dtype::f32, {4}, true, 3)};
    const std::vector<whole_tensor> here{make_tensor("a", dtype::f32, {2, 2}, false, 1),
                                         make_tensor("d", dtype::f32, {4}, false, 2),
                                         make_tensor("c", dtype::f32, {4}, false, 3)};
    const temporary_folder folder;
    REQUIRE(text(save_on(2, saved, folder / "c")) == "");
    const load_result found = load_on(2, here, folder / "c");
    CHECK(answer(found.thrown) == code::checkpoint);
    for (const char* part : {"\"a\" has shape [2, 2] here and [4]", "\"d\" is missing", "\"b\" of the checkpoint",
                             "\"c\" was saved without \"exp_avg\""})
        CHECK_THAT(text(found.thrown), Catch::Contains(part));
    CHECK(found.untouched);
    load_options sgd;
    sgd.change = [](share& mine, int) { mine.state.run.optimizer = "sgd"; };
    CHECK_THAT(text(load_on(2, saved, folder / "c", sgd).thrown),
               Catch::Contains("\"checkpoint.load\" to \"weights\""));
}

TEST_CASE("weights alone: values as saved, states zero") {
    std::vector<whole_tensor> all{make_tensor("a", dtype::bf16, {40}, false, 1)};
    const temporary_folder folder;
    REQUIRE(text(save_on(2, all, folder / "c")) == "");
    for (std::size_t v = 1; v < 3; ++v) std::fill(all[0].vectors[v].bytes.begin(), all[0].vectors[v].bytes.end(), '\0');
    load_options how;
    how.taking = checkpoint::taking::weights;
    how.change = [](share& mine, int) { mine.state.run.optimizer = "sgd"; };
    const load_result found = load_on(3, all, folder / "c", how);
    CHECK(text(found.thrown) == "");
    CHECK(found.equal);
    REQUIRE(found.warnings.size() == 1);  // the notice
    CHECK_THAT(found.warnings[0], Catch::Contains("\"weights\"") && Catch::Contains("only the values"));
}

TEST_CASE("partly: what fits is taken, the rest stays and is listed; nothing at all is an error") {
    const std::vector<whole_tensor> saved{make_tensor("a", dtype::f32, {40}, false, 1),
                                          make_tensor("b", dtype::bf16, {6, 2}, false, 11),
                                          make_tensor("thawed", dtype::f32, {9}, true, 21),
                                          make_tensor("only there", dtype::f32, {4}, false, 31)};
    const std::vector<whole_tensor> here{make_tensor("new", dtype::f32, {33}, false, 41),
                                         make_tensor("b", dtype::bf16, {2, 6}, false, 51),
                                         make_tensor("thawed", dtype::f32, {9}, false, 21),
                                         make_tensor("a", dtype::f32, {40}, false, 1)};
    const temporary_folder folder;
    REQUIRE(text(save_on(2, saved, folder / "c")) == "");
    const bool same_optimizer = GENERATE(true, false);
    std::vector<whole_tensor> expected = here;  // 0x5a: as it was
    const auto stays = [](whole_vector& one) { std::fill(one.bytes.begin(), one.bytes.end(), '\x5a'); };
    for (whole_tensor& one : expected)
        for (whole_vector& vector : one.vectors)
            if (one.name == "new" || one.name == "b" || (vector.state != "value" && (one.name == "thawed" || !same_optimizer)))
                stays(vector);
    load_options how;
    how.taking = checkpoint::taking::partial;
    how.change = [&](share& mine, int) { mine.state.run.optimizer = same_optimizer ? "adam" : "lion"; };
    std::atomic<int> equal = 0;
    how.look = [&](share& mine, int) { equal += mine.equals(expected) ? 1 : 0; };
    const load_result found = load_on(3, here, folder / "c", how);
    CHECK(text(found.thrown) == "");
    CHECK(equal == 3);
    REQUIRE(found.warnings.size() == 1);
    for (const char* part : {"\"new\" is missing", "\"b\" has shape [2, 6] here and [6, 2]", "\"only there\" of the checkpoint"})
        CHECK_THAT(found.warnings[0], Catch::Contains(part));
    CHECK_THAT(found.warnings[0], Catch::Contains(same_optimizer ? "\"thawed\" was saved without" : "optimizer \"adam\""));
    how.look = nullptr;
    const load_result nothing = load_on(2, {here[0], here[1]}, folder / "c", how);
    CHECK(answer(nothing.thrown) == code::checkpoint);
    CHECK(nothing.untouched);
    how.change = nullptr;
    CHECK(load_on(2, saved, folder / "c", how).warnings.empty());
}

TEST_CASE("attached arrays: one for all, or one for each") {
    const std::vector<whole_tensor> all{make_tensor("a", dtype::f32, {4}, false, 1)};
    const temporary_folder folder;
    std::vector<std::vector<std::int64_t>> counters(4, std::vector<std::int64_t>(3));
    std::vector<std::vector<double>> own(4, std::vector<double>(2));
    std::vector<double> lone(4, 2.5);  // one on each rank, though all hold the same
    const auto attach = [&](bool per_rank) {
        return [&, per_rank](share& mine, int rank) {
            const std::size_t r = static_cast<std::size_t>(rank);
            mine.state.attachments.push_back({"counter", dtype::i64, {3}, 3, false, counters[r].data()});
            mine.state.attachments.push_back({"none", dtype::f64, {0}, 0, false, nullptr});
            mine.state.attachments.push_back({"lone", dtype::f64, {}, 1, false, &lone[r]});
            if (per_rank) mine.state.attachments.push_back({"own/rng", dtype::f64, {2}, 2, true, own[r].data()});
        };
    };
    for (std::size_t r = 0; r < 4; ++r) {
        counters[r] = {10 + static_cast<std::int64_t>(r), 5, -1};
        own[r] = {static_cast<double>(r), 0.5};
    }
    save_options how;
    how.change = attach(true);
    REQUIRE(text(save_on(3, all, folder / "c", how)) == "");
    const auto blank = [&] {
        for (auto& one : counters) one = {0, 0, 0};
        for (auto& one : own) one = {0, 0};
        for (auto& one : lone) one = 0;
    };
    load_options back;
    blank();
    back.change = attach(true);
    REQUIRE(text(load_on(3, all, folder / "c", back).thrown) == "");
    for (std::size_t r = 0; r < 3; ++r) {
        CHECK(counters[r] == std::vector<std::int64_t>{10, 5, -1});
        CHECK(own[r] == std::vector<double>{static_cast<double>(r), 0.5});
        CHECK(lone[r] == 2.5);
    }
    blank();
    const load_result refused = load_on(2, all, folder / "c", back);
    CHECK(answer(refused.thrown) == code::checkpoint);
    CHECK_THAT(text(refused.thrown), Catch::Contains("own/rng") && Catch::Contains("3 ranks"));
    CHECK(counters[0][0] == 0);
    back.change = attach(false);
    CHECK(text(load_on(4, all, folder / "c", back).thrown) == "");
    CHECK(counters[3] == std::vector<std::int64_t>{10, 5, -1});
}

TEST_CASE("a model split over ranks: one folder, each model rank its own tensors") {
    const temporary_folder folder;
    const std::vector<whole_tensor> left = odd_model();
    std::vector<whole_tensor> right{make_tensor("w", dtype::f32, {17}, false, 500)};
    const auto save_both = [&](int data, int per_file) {
        return together(data, 2, [&](checkpoint::crew& crew) {
            share mine(crew.model_rank() == 0 ? left : right, crew.data_rank(), data, false, 3);
            ledger book;
            zero::log said(0);
            checkpoint::save(mine.state, crew, files::disk(), book, said, {folder / "c", "t", per_file, 0, 0});
        });
    };
    REQUIRE(text(save_both(3, 2)) == "");
    std::vector<char> equal(4, 0);
    REQUIRE(text(together(2, 2, [&](checkpoint::crew& crew) {
                const auto& model = crew.model_rank() == 0 ? left : right;
                share mine(model, crew.data_rank(), 2, true);
                ledger book;
                zero::log said(0);
                checkpoint::load(mine.state, crew, files::disk(), book, said, {folder / "c", "t"});
                equal[static_cast<std::size_t>(crew.rank())] = mine.equals(model) ? 1 : 0;
            })) == "");
    CHECK(equal == std::vector<char>(4, 1));
    CHECK_THAT(text(load_on(2, left, folder / "c").thrown), Catch::Contains("split over 2 ranks"));
}

TEST_CASE("tags, order of commits, retention") {
    const std::vector<whole_tensor> all{make_tensor("a", dtype::f32, {4}, false, 1)};
    const temporary_folder folder;
    save_options how;
    for (const char* bad : {"a/b", ".hidden", "..", "LATEST"}) {
        how.tag = bad;
        CHECK(answer(save_on(2, all, folder / "c", how)) == code::argument);
    }
    how.tag = std::string("a\0b", 3);
    CHECK(answer(save_on(2, all, folder / "c", how)) == code::argument);
    CHECK(answer(load_on(2, all, folder / "c").thrown) == code::checkpoint);
    how.tag = "zz first";
    how.step = 100;
    REQUIRE(text(save_on(2, all, folder / "c", how)) == "");
    CHECK(answer(save_on(2, all, folder / "c", how)) == code::checkpoint);
    how.tag = "aa second";
    how.step = 50;
    REQUIRE(text(save_on(2, all, folder / "c", how)) == "");
    CHECK(load_on(1, all, folder / "c").run.step == 50);  // the latest commit, not the highest step
    CHECK(read_file(folder / "c/LATEST") == "aa second\n");
    how.keep_last = 2;
    how.keep_every = 100;
    for (const std::int64_t step : {51, 52, 53}) {
        how.tag = "";
        how.step = step;
        REQUIRE(text(save_on(2, all, folder / "c", how)) == "");
    }
    CHECK(names_in(folder / "c") ==
          std::vector<std::string>{"LATEST", "step-000000000052", "step-000000000053", "zz first"});
    CHECK(answer(load_on(1, all, folder / "nothing").thrown) == code::checkpoint);
}

TEST_CASE("a save waits for the disk once for each part, the index, the manifest, both folders and LATEST") {
    const std::vector<whole_tensor> all = odd_model();
    const temporary_folder folder;
    std::array<std::atomic<int>, 3> syncs{};
    save_options how;
    how.hook = [&](int rank) {
        return [&, rank](const files::request& what) {
            if (what.what == files::action::sync) ++syncs[static_cast<std::size_t>(rank)];
            return files::verdict{};
        };
    };
    REQUIRE(text(save_on(3, all, folder.path().string(), how)) == "");
    CHECK(syncs[0] == 6);
    CHECK(syncs[1] == 1);
    CHECK(syncs[2] == 1);
}
