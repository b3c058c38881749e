// zero_save and zero_load through the engine: any number of ranks and stage to any other, and the cases handed to us.
#include <cmath>
#include <fstream>

#include "checkpoints/verify.hpp"
#include "varied_model.hpp"

using namespace zero;
using namespace zero::test;

namespace {

using int64s = std::vector<std::int64_t>;
const auto varied_json = [](int stage) { return json_for(stage, adam, R"(, "gradient_clipping": 1.5)"); };

std::vector<std::string> parts_in(const std::string& folder) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().filename().string().starts_with("part-")) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace

TEST_CASE("any P and stage to any other P and stage, bit for bit") {
    const shared_folder folder;
    for (int ranks = 1; ranks <= world_size(); ++ranks)
        for (const int stage : {0, 1, 2, 3}) {
            if (ranks < world_size() && stage % 2 != 0) continue;
            const std::string place = folder / (std::to_string(ranks) + "-" + std::to_string(stage));
            std::string saved;
            job(ranks, [&](MPI_Comm comm) {
                varied model(comm, varied_json(stage), true);
                for (int number = 0; number < 3; ++number) model.step(number);
                saved = model.bits();
                checkpoint::save(model.z, place, "");
                CHECK(model.bits() == saved);
            });
            saved = told_by_first(saved);
            for (int other = 1; other <= world_size(); ++other)
                for (const int then : {0, 1, 2, 3}) {
                    if (std::max(ranks, other) < world_size()) continue;    // done by the runs on fewer ranks
                    if ((ranks + stage + other + then) % 2 != 0) continue;  // half of the pairs of stages
                    job(other, [&](MPI_Comm comm) {
                        varied model(comm, varied_json(then), false);
                        checkpoint::load(model.z, place, "");
                        INFO(ranks << " ranks, stage " << stage << " to " << other << ", stage " << then);
                        CHECK((model.bits() == saved));
                        CHECK(model.z.book().bytes(purpose::checkpoint) == 0);
                    });
                }
        }
}

TEST_CASE("training goes on with the same bits") {
    const shared_folder folder;
    for (const int stage : {0, 1, 2, 3}) {
        const std::string place = folder / std::to_string(stage);
        std::string through;
        job(world_size(), [&](MPI_Comm comm) {
            varied model(comm, varied_json(stage), true);
            for (int number = 0; number < 2; ++number) model.step(number);
            checkpoint::save(model.z, place, "half");
            for (int number = 2; number < 5; ++number) model.step(number);
            through = model.bits();
        });
        job(world_size(), [&](MPI_Comm comm) {
            varied model(comm, varied_json(3 - stage), true);
            model.step(9);
            checkpoint::load(model.z, place, "half");
            for (int number = 2; number < 5; ++number) model.step(number);
            CHECK((model.bits() == through));
        });
    }
}

TEST_CASE("B36 and B42: damage is an error that names the file, or the older state") {
    const shared_folder folder;
    const std::string place = folder / "c";
    const std::vector<float> one(10, -1), two(10, -2);
    const auto build = [](engine& z) {
        z.add_tensor("a", dtype::f32, int64s{10}, nullptr, 0);
        z.commit();
        set_values(z, 0, std::vector<float>(10, 0));
    };
    job(world_size(), [&](MPI_Comm comm) {
        engine z(&comm, json_for(2, sgd_one));
        build(z);
        constant_step(z, 1);
        checkpoint::save(z, place, "");
        constant_step(z, 1);
        checkpoint::save(z, place, "");
    });
    const auto expect = [&](const std::string& where, const std::string& tag, const std::vector<float>* values,
                            const std::string& named) {
        MPI_Barrier(MPI_COMM_WORLD);
        job(world_size() > 1 ? world_size() - 1 : 1, [&](MPI_Comm comm) {
            engine z(&comm, json_for(3, sgd_one));
            build(z);
            std::vector<std::string> said;
            z.logger().redirect([&](log_level, const std::string& text) { said.push_back(text); });
            std::string text;
            const code answer = code_of([&] { checkpoint::load(z, where, tag); }, &text);
            if (values != nullptr) {
                INFO(text);
                CHECK(answer == code::ok);
                CHECK(values_of<float>(z, 0) == *values);
                if (world_rank() == 0 && !named.empty())
                    CHECK_THAT(said.empty() ? "" : said[0], Catch::Contains(named));
            } else {
                CHECK(answer == code::checkpoint);
                CHECK_THAT(text, Catch::Contains(named));
                CHECK(values_of<float>(z, 0) == std::vector<float>(10, 0));
                constant_step(z, 1);  // still usable
                CHECK(values_of<float>(z, 0) == one);
            }
        });
    };
    const std::string newest = place + "/step-000000000002";
    expect(place, "", &two, "");
    on_first([&] { std::ofstream(newest + "/stray.tmp") << "x"; });
    expect(place, "", &two, "");
    const std::string part = parts_in(newest).back();
    on_first([&] {
        std::filesystem::copy_file(part, folder / "kept");
        std::filesystem::resize_file(part, std::filesystem::file_size(part) / 2);
    });
    expect(place, "", &one, part);
    expect(place, "step-000000000002", nullptr, part);
    on_first([&] { std::filesystem::remove(part); });
    expect(place, "", &one, part);
    expect(place, "step-000000000002", nullptr, part);
    on_first([&] {
        std::filesystem::copy_file(folder / "kept", part);
        std::filesystem::rename(newest + "/index.h5", newest + "/elsewhere.h5");
        std::filesystem::rename(place, folder / "moved");
    });
    expect(folder / "moved", "", &two, "");
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path("/");
    expect(folder / "moved", "", &two, "");
    std::filesystem::current_path(before);
    expect(folder / "nothing", "", nullptr, "nothing");
}

TEST_CASE("B38: frozen tensors travel, without states") {
    const shared_folder folder;
    for (const int stage : {0, 1, 2, 3}) {
        std::vector<float> frozen{10, 11, 12, 13, 14}, random{5, 4, 3, 2, 1}, zeros(5, 0), a(4, 1), b(4, 9);
        const std::string place = folder / std::to_string(stage);
        const auto build = [&](engine& z, std::vector<float>& trainable, std::vector<float>& fixed) {
            const int ice = z.add_group(R"({"frozen": true})");
            z.add_tensor("a", dtype::f32, int64s{4}, trainable.data(), 0);
            z.add_tensor("f", dtype::f32, int64s{5}, fixed.data(), ice);
            z.commit();
        };
        job(std::min(2, world_size()), [&](MPI_Comm comm) {
            engine z(&comm, json_for(stage, sgd_momentum));
            build(z, a, frozen);
            constant_step(z, 2);  // lr 0.5
            CHECK(z.get_real("grad_norm") == Approx(4));
            checkpoint::save(z, place, "");
            const checkpoint::manifest written = checkpoint::read_manifest(files::disk(), place + "/step-000000000001");
            CHECK(written.tensors[0].vectors.size() == 2);
            CHECK(written.tensors[1].vectors.size() == 1);
            CHECK(written.tensors[1].frozen);
        });
        job(std::min(3, world_size()), [&](MPI_Comm comm) {
            engine z(&comm, json_for(stage, sgd_momentum));
            build(z, b, zeros);
            CHECK(z.state_names(1).empty());
            checkpoint::load(z, place, "");
            CHECK(values_of<float>(z, 1) == std::vector<float>{10, 11, 12, 13, 14});
            CHECK(values_of<float>(z, 0) == std::vector<float>(4, 0));
            if (stage < 3) CHECK(b == std::vector<float>(4, 0));
            if (stage < 3) CHECK(zeros == std::vector<float>{10, 11, 12, 13, 14});
        });
    }
}

TEST_CASE("B40: masters and moments keep their 32 bits") {
    const shared_folder folder;
    for (const int stage : {0, 1, 2, 3}) {
        const std::string place = folder / std::to_string(stage);
        const std::string tiny = R"({"type": "SGD", "params": {"lr": 0.000244140625}})";  // 2^-12
        const auto run = [&](engine& z, int steps) {
            for (int k = 0; k < steps; ++k) constant_step(z, -1);
        };
        const auto build = [](engine& z) {
            z.add_tensor("p", dtype::bf16, int64s{7}, nullptr, 0);
            z.commit();
        };
        job(world_size(), [&](MPI_Comm comm) {
            engine z(&comm, json_for(stage, tiny));
            build(z);
            set_values(z, 0, std::vector<std::uint16_t>(7, 0x3f80));  // 1
            run(z, 16);
            CHECK(state_of<float>(z, 0, "master") == std::vector<float>(7, 1.00390625F));
            CHECK(values_of<std::uint16_t>(z, 0) == std::vector<std::uint16_t>(7, 0x3f80));
            checkpoint::save(z, place, "");
        });
        job(std::max(1, world_size() - 1), [&](MPI_Comm comm) {
            engine z(&comm, json_for(stage, tiny));
            build(z);
            checkpoint::load(z, place, "");
            run(z, 16);
            CHECK(state_of<float>(z, 0, "master") == std::vector<float>(7, 1.0078125F));
            CHECK(values_of<std::uint16_t>(z, 0) == std::vector<std::uint16_t>(7, 0x3f81));
        });
    }
}
