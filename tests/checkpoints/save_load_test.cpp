// zero_save and zero_load through the engine: any number of ranks and stage to any other, and the cases handed to us.
#include <cmath>
#include <fstream>

#include "checkpoints/verify.hpp"
#include "jobs.hpp"

using namespace zero;
using namespace zero::test;

namespace {

using int64s = std::vector<std::int64_t>;

// Tensors of every type, sizes 0, 1, odd, a scalar, a frozen one; gradients differ by rank, tensor, element and step.
struct varied {
    varied(MPI_Comm comm, int stage, bool with_values)
        : z(&comm, json_for(stage, adam, R"(, "gradient_clipping": 1.5)")) {
        z.add_group(R"({"frozen": true})");
        z.add_group(R"({"lr": 0.05})");
        const std::vector<std::pair<dtype, int64s>> shapes{{dtype::f32, {5, 7}}, {dtype::bf16, {33}}, {dtype::f64, {4}},
                                                           {dtype::f32, {0}},    {dtype::f32, {}},    {dtype::f16, {3}},
                                                           {dtype::f32, {101}},  {dtype::bf16, {6}}};
        for (std::size_t k = 0; k < shapes.size(); ++k)
            z.add_tensor("block/" + std::to_string(k), shapes[k].first, shapes[k].second, nullptr,
                         k == 7   ? 1
                         : k == 6 ? 2
                                  : 0);
        z.commit();
        if (with_values)
            for (int id = 0; id < z.tensors().count(); ++id) z.fill(id, "normal", 0, 1, 42);
    }
    void step(int number) {
        for (const tensor& one : z.tensors().all()) {
            std::vector<std::uint16_t> g16(static_cast<std::size_t>(one.count) + 1);
            std::vector<float> g32(g16.size());
            std::vector<double> g64(g16.size());
            for (std::int64_t k = 0; k < one.count; ++k) {
                const double g = std::ldexp(
                    static_cast<double>((k * 7 + one.id * 5 + number * 3 + z.ranks().rank() * 11) % 29 - 14), -3);
                const float single = static_cast<float>(g);
                g64[static_cast<std::size_t>(k)] = g;
                g32[static_cast<std::size_t>(k)] = single;
                std::uint32_t bits = 0;
                std::memcpy(&bits, &single, 4);
                g16[static_cast<std::size_t>(k)] =
                    one.type == dtype::bf16 ? static_cast<std::uint16_t>(bits >> 16) : std::uint16_t{0x3c00};
            }
            const void* g = one.type == dtype::f64   ? static_cast<const void*>(g64.data())
                            : one.type == dtype::f32 ? static_cast<const void*>(g32.data())
                                                     : g16.data();
            z.reduce(one.id, 1, g);
        }
        z.step();
    }
    // Every bit that a checkpoint must bring back, on every rank.
    std::string bits() {
        std::string all;
        for (const tensor& one : z.tensors().all()) {
            std::string part(static_cast<std::size_t>(one.bytes()) + 1, '\0');
            z.gather_to(one.id, -1, part.data());
            all += part;
            std::vector<std::string> states = z.state_names(one.id);
            if (!states.empty()) states.push_back("master");
            for (const std::string& state : states) {
                std::string vector(static_cast<std::size_t>(one.count * 8) + 1, '\0');
                z.gather_state(one.id, state, -1, vector.data());
                all += vector;
            }
        }
        const progress_state now = z.progress();
        return all + std::to_string(now.step) + " " + std::to_string(now.skipped);
    }
    engine z;
};

std::string told_by_first(std::string mine) {
    std::int64_t length = static_cast<std::int64_t>(mine.size());
    MPI_Bcast(&length, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    mine.resize(static_cast<std::size_t>(length));
    MPI_Bcast(mine.data(), static_cast<int>(length), MPI_CHAR, 0, MPI_COMM_WORLD);
    return mine;
}

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
                varied model(comm, stage, true);
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
                        varied model(comm, then, false);
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
            varied model(comm, stage, true);
            for (int number = 0; number < 2; ++number) model.step(number);
            checkpoint::save(model.z, place, "half");
            for (int number = 2; number < 5; ++number) model.step(number);
            through = model.bits();
        });
        job(world_size(), [&](MPI_Comm comm) {
            varied model(comm, 3 - stage, true);
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
