// Cases handed to us about who owns what: tensors and ranks without elements, padding, other numbers of ranks up to
// eight, moved and missing files, small MPI counts.
#include <cmath>
#include <fstream>

#include "checkpoints/verify.hpp"
#include "jobs.hpp"
#include "run_command.hpp"

using namespace zero;
using namespace zero::test;

namespace {

using int64s = std::vector<std::int64_t>;

void add(engine& z, const std::string& name, dtype type, std::int64_t count, int group = 0) {
    z.add_tensor(name, type, int64s{count}, nullptr, group);
}

std::vector<double> counted(std::int64_t count) {
    std::vector<double> values;
    for (std::int64_t k = 1; k <= count; ++k) values.push_back(static_cast<double>(k));
    return values;
}

checkpoint::manifest manifest_at(const std::string& folder) {
    return checkpoint::read_manifest(files::disk(), folder);
}

// Elements that stand in the parts, over all ranks, kinds and groups.
std::int64_t stored_elements(const checkpoint::manifest& what) {
    std::int64_t sum = 0;
    for (const checkpoint::extent& one : what.extents) sum += one.count;
    return sum;
}

bool has_h5dump() {
    const bool there = run("h5dump --version").exit_code == 0;
    if (!there) WARN("h5dump was not found (Debian: hdf5-tools): its part of this test is left out");
    return there;
}

}  // namespace

TEST_CASE("B14: an empty tensor is listed with extent 0 and loads on three ranks") {
    const shared_folder folder;
    for (const int stage : {0, 1, 2, 3})
        for (const int64s& sizes : {int64s{8, 0, 24}, int64s{16, 0, 16}, int64s{0, 32}, int64s{32, 0}}) {
            const std::string place =
                folder / (std::to_string(stage) + "-" + std::to_string(sizes[0]) + "-" + std::to_string(sizes[1]));
            const auto build = [&](engine& z) {
                for (const std::int64_t count : sizes) add(z, "", dtype::f32, count);
                z.commit();
            };
            job(std::min(2, world_size()), [&](MPI_Comm comm) {
                engine z(&comm, json_for(stage, sgd_momentum));
                build(z);
                constant_step(z, 2);  // rate 0.5
                checkpoint::save(z, place, "t");
                const checkpoint::manifest written = manifest_at(place + "/t");
                REQUIRE(written.tensors.size() == sizes.size());
                for (std::size_t k = 0; k < sizes.size(); ++k) {
                    CHECK(written.tensors[k].dims == int64s{sizes[k]});
                    for (const checkpoint::vector_entry& vector : written.tensors[k].vectors)
                        CHECK(vector.pieces.empty() == (sizes[k] == 0));
                }
            });
            job(std::min(3, world_size()), [&](MPI_Comm comm) {
                engine z(&comm, json_for(stage, sgd_momentum));
                build(z);
                checkpoint::load(z, place, "");
                for (std::size_t k = 0; k < sizes.size(); ++k) {
                    const std::size_t count = static_cast<std::size_t>(sizes[k]);
                    CHECK(values_of<float>(z, static_cast<int>(k)) == std::vector<float>(count, -1));
                    CHECK(state_of<float>(z, static_cast<int>(k), "momentum") == std::vector<float>(count, 2));
                }
                constant_step(z, 1);
                CHECK(z.get_real("grad_norm") == Approx(std::sqrt(32.0)));
            });
        }
}

TEST_CASE("B28, S11, S12: ranks that own nothing, or padding alone") {
    const shared_folder folder;
    struct example {
        int ranks;
        std::int64_t count;
        std::vector<int> others;
    };
    for (const example& one : {example{4, 2, {1, 3, 4, 8}}, example{4, 0, {2, 4}}, example{8, 3, {1, 2, 8}},
                               example{4, 6, {4, 5, 7}}, example{4, 5, {2, 3, 6}}}) {
        if (one.ranks > world_size()) continue;
        for (const int stage : {0, 1, 2, 3}) {
            const std::string place = folder / zero::formatted("{}-{}-{}", one.ranks, one.count, stage);
            const auto build = [&](engine& z) {
                const int nothing = z.add_group(R"({"lr": 0.25})");
                add(z, "a", dtype::f64, one.count);
                add(z, "none", dtype::f64, 0, nothing);  // a group without elements
                z.commit();
            };
            job(one.ranks, [&](MPI_Comm comm) {
                engine z(&comm, json_for(stage, sgd_momentum));
                build(z);
                set_values(z, 0, counted(one.count));
                checkpoint::save(z, place, "t");
            });
            on_first([&] {
                CHECK(stored_elements(manifest_at(place + "/t")) == 2 * one.count);  // value and momentum, no padding
                CHECK(checkpoint::verify(files::disk(), place + "/t", true).problems.empty());
                if (stage != 3 || !has_h5dump()) return;
                const run_result seen = run("h5dump -w 0 -d /parameters/a " + place + "/t/index.h5");
                CHECK_THAT(seen.text, Catch::Contains(zero::formatted("SIMPLE {{ ( {0} ) / ( {0} ) }}", one.count)) &&
                                          !Catch::Contains("nan"));
                for (std::int64_t k = 1; k <= one.count; ++k)
                    CHECK_THAT(seen.text, Catch::Contains(std::to_string(k) + (k < one.count ? ", " : "")));
            });
            for (const int other : one.others)
                if (other <= world_size())
                    job(other, [&](MPI_Comm comm) {
                        engine z(&comm, json_for(3 - stage, sgd_momentum));
                        build(z);
                        checkpoint::load(z, place, "t");
                        CHECK(values_of<double>(z, 0) == counted(one.count));
                        CHECK(values_of<double>(z, 1).empty());
                    });
        }
    }
}

TEST_CASE("B34: saved on two, continued on any") {
    const shared_folder folder;
    const auto build = [](engine& z) {
        for (const std::int64_t count : {4, 3, 3}) add(z, "", dtype::f64, count);
        z.commit();
    };
    job(std::min(2, world_size()), [&](MPI_Comm comm) {
        engine z(&comm, json_for(1, sgd_momentum));
        build(z);
        double next = 0;
        for (int id = 0; id < 3; ++id) {
            std::vector<double> start;
            for (int k = 0; k < z.tensors().at(id).count; ++k) start.push_back(next++);
            set_values(z, id, start);
        }
        constant_step(z, 1);
        constant_step(z, 1);
        checkpoint::save(z, folder / "c", "");
    });
    for (const int other : {1, 2, 3, 4, 5, 8})
        for (const int stage : {0, 1, 2, 3}) {
            if (other > world_size() || (other < world_size() && stage != 3)) continue;
            job(other, [&](MPI_Comm comm) {
                engine z(&comm, json_for(stage, sgd_momentum));
                build(z);
                checkpoint::load(z, folder / "c", "");
                constant_step(z, 1);
                double start = 0;
                for (int id = 0; id < 3; ++id) {
                    const std::vector<double> momentum = state_of<double>(z, id, "momentum");
                    for (const double now : values_of<double>(z, id)) {
                        double right = start, b = 0;  // the run on one rank that was never interrupted
                        for (int step = 0; step < 3; ++step) right -= 0.5 * (b = step == 0 ? 1 : 0.9 * b + 1);
                        CHECK(now == right);
                        CHECK(now == Approx(start - 2.805).epsilon(1e-14));
                        start += 1;
                    }
                    for (const double b : momentum) CHECK(b == Approx(2.71).epsilon(1e-14));
                }
                CHECK(z.progress().step == 3);
            });
        }
}

TEST_CASE("B42: moved, renamed, missing files") {
    const shared_folder folder;
    const int ranks = std::min(3, world_size());
    const auto build = [](engine& z) {
        add(z, "a", dtype::f64, 10);
        z.commit();
    };
    job(ranks, [&](MPI_Comm comm) {
        engine z(&comm, json_for(3, sgd_momentum));
        build(z);
        set_values(z, 0, counted(10));
        checkpoint::save(z, folder / "c", "t");
    });
    const auto loads = [&](const std::string& where) {
        job(ranks, [&](MPI_Comm comm) {
            engine z(&comm, json_for(2, sgd_momentum));
            build(z);
            checkpoint::load(z, where, "t");
            CHECK(values_of<double>(z, 0) == counted(10));
        });
    };
    const auto fails = [&](const std::string& named) {
        job(ranks, [&](MPI_Comm comm) {
            engine z(&comm, json_for(2, sgd_momentum));
            build(z);
            set_values(z, 0, std::vector<double>(10, 5));
            std::string text;
            CHECK(code_of([&] { checkpoint::load(z, folder / "moved", "t"); }, &text) == code::checkpoint);
            CHECK_THAT(text, Catch::Contains(named));
            CHECK(values_of<double>(z, 0) == std::vector<double>(10, 5));
        });
    };
    const std::string moved = folder / "moved/t";
    const auto whole_by_h5dump = [&](bool expected) {
        on_first([&] {
            if (!has_h5dump()) return;
            const std::string seen = run("cd / && h5dump -w 0 -d /parameters/a " + moved + "/index.h5").text;
            CHECK(Catch::Contains("1, 2, 3, 4, 5, 6, 7, 8, 9, 10").match(seen) == expected);
            CHECK(Catch::Contains("nan").match(seen) != expected);  // and no zeros
        });
    };
    on_first([&] { std::filesystem::rename(folder / "c", folder / "moved"); });
    loads(folder / "moved");  // (a)
    whole_by_h5dump(true);
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path("/");
    loads(folder / "moved");  // (d)
    std::filesystem::current_path(before);
    on_first([&] { std::filesystem::rename(moved + "/index.h5", moved + "/other.h5"); });
    loads(folder / "moved");  // (b), the file that shows whole tensors
    on_first([&] {
        std::filesystem::rename(moved + "/other.h5", moved + "/index.h5");
        std::filesystem::rename(moved + "/MANIFEST.json", moved + "/OTHER.json");
    });
    fails("MANIFEST.json is missing");  // (b), the file that load begins with
    on_first([&] { std::filesystem::rename(moved + "/OTHER.json", moved + "/MANIFEST.json"); });
    const checkpoint::manifest written = manifest_at(moved);
    const std::string part = moved + "/" + written.files[static_cast<std::size_t>(written.extents.back().file)].name;
    on_first([&] { std::filesystem::remove(part); });
    fails(part + " is missing");  // (c)
    whole_by_h5dump(false);
}

TEST_CASE("B50: counts above a limit go in pieces, in save and load too") {
    const shared_folder folder;
    for (const int stage : {0, 1, 2, 3}) {
        std::vector<std::vector<float>> plain;
        for (const bool limited : {false, true}) {
            const std::string place = folder / (std::to_string(stage) + (limited ? "-7" : ""));
            const std::string json = R"({"zero_optimization": {"stage": )" + std::to_string(stage) +
                                     R"(, "stage3_param_persistence_threshold": 0}, "libzero": {"stale_check": false)" +
                                     (limited ? R"(, "largest_count": 7)" : "") + R"(}, "optimizer": )" + sgd_one + "}";
            const auto build = [](engine& z) {
                add(z, "big", dtype::f32, 100);
                add(z, "one", dtype::f32, 1);
                z.commit();
            };
            MPI_Comm comm = MPI_COMM_WORLD;
            {
                engine z(&comm, json);
                build(z);
                constant_step(z, world_rank());
                checkpoint::save(z, place, "t");
            }
            engine z(&comm, json);
            build(z);
            checkpoint::load(z, place, "t");
            const std::vector<std::vector<float>> now{values_of<float>(z, 0), values_of<float>(z, 1)};
            CHECK(now[0] == std::vector<float>(100, -0.5F * static_cast<float>(world_size() - 1)));
            if (limited)
                CHECK(now == plain);
            else
                plain = now;
        }
    }
}

TEST_CASE("S15, B40: types, bits and bytes of masters and moments are the same after a load") {
    const shared_folder folder;
    for (const int stage : {0, 1, 2, 3}) {
        const std::string place = folder / std::to_string(stage);
        MPI_Comm comm = MPI_COMM_WORLD;
        engine z(&comm, json_for(stage, adam));
        add(z, "p", dtype::bf16, 1000);
        z.commit();
        for (int k = 0; k < 3; ++k) constant_step(z, 0.1 * (k + 1));
        const auto moments = [&] {
            return std::vector{state_of<float>(z, 0, "exp_avg"), state_of<float>(z, 0, "exp_avg_sq"),
                               state_of<float>(z, 0, "master")};
        };
        const auto bytes = [&] {
            int64s all;
            for (int k = 0; k < static_cast<int>(purpose::count_); ++k)
                all.push_back(z.book().bytes(static_cast<purpose>(k)));
            return all;
        };
        const auto before = moments();
        const int64s bytes_before = bytes();
        checkpoint::save(z, place, "t");
        constant_step(z, 1);
        checkpoint::load(z, place, "t");
        CHECK(moments() == before);
        CHECK(bytes() == bytes_before);
        for (const char* state : {"value", "exp_avg", "exp_avg_sq"}) CHECK(z.owned(0, state).type == dtype::f32);
        const checkpoint::manifest written = manifest_at(place + "/t");
        for (const checkpoint::vector_entry& one : written.tensors[0].vectors) CHECK(one.type == dtype::f32);
    }
}

TEST_CASE("S16: frozen elements cost their values and nothing else, in memory and on disk") {
    const shared_folder folder;
    for (const int stage : {0, 1, 2, 3}) {
        const std::string place = folder / std::to_string(stage);
        MPI_Comm comm = MPI_COMM_WORLD;
        engine z(&comm, json_for(stage, adam));
        const int ice = z.add_group(R"({"frozen": true})");
        add(z, "f", dtype::bf16, 1'000'000, ice);
        z.commit();
        checkpoint::save(z, place, "t");
        CHECK(z.book().bytes(purpose::states) == 0);
        CHECK(z.book().bytes(purpose::master) == 0);
        const checkpoint::manifest written = manifest_at(place + "/t");
        CHECK(written.tensors[0].vectors.size() == 1);
        CHECK(written.head.bytes == 2'000'000);
        checkpoint::load(z, place, "t");
    }
}
