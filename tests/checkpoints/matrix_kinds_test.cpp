// Any dtype of the parameters to any other and back, and any place of states and parameters to any other: what the other
// type can hold arrives bit for bit, the rest is rounded once; and the training goes on.
#include "matrix.hpp"
#include "tensor/vector.hpp"

using namespace zero;
using namespace zero::test;

namespace {

constexpr int frozen_tensor = 7;

// Of all tensors the value as a checkpoint keeps it and the states, exact in doubles.
std::vector<double> kept(varied& model) {
    std::vector<double> all, memory;
    const auto add = [&](dtype type, std::int64_t count) {
        std::vector<double> exact(static_cast<std::size_t>(count));
        vector::convert(dtype::f64, exact.data(), type, memory.data(), count);
        all.insert(all.end(), exact.begin(), exact.end());
    };
    for (const tensor& one : model.z.tensors().all()) {
        memory.assign(static_cast<std::size_t>(one.count) + 1, 0);
        std::vector<std::string> states = model.z.state_names(one.id);
        if (states.empty()) {
            model.z.gather_to(one.id, -1, memory.data());
            add(one.type, one.count);
            continue;
        }
        states.insert(states.begin(), "master");
        for (const std::string& state : states) {
            model.z.gather_state(one.id, state, -1, memory.data());
            add(sum_type(one.type), one.count);
        }
    }
    return all;
}

std::vector<double> rounded(std::vector<double> all, dtype type) {
    if (sum_type(type) == dtype::f64) return all;
    for (double& one : all) one = static_cast<double>(static_cast<float>(one));
    return all;
}

// A value of the frozen tensor that every type holds.
void set_frozen(varied& model) {
    model.z.fill(frozen_tensor, "constant", 0.75, 0, 1);
}

std::string bits_alone(dtype type, int steps) {
    std::string bits;
    job(1, [&](MPI_Comm comm) {
        varied model(comm, json_of(1, 0, 0, adam, ""), true, type);
        set_frozen(model);
        go_on(model, 0, steps);
        bits = model.bits();
    });
    return told_by_first(bits);
}

// What registers in 16 bits is the rounding of what was kept.
void require_rounded(varied& model) {
    for (const tensor& one : model.z.tensors().all()) {
        if (one.type == sum_type(one.type) || model.z.state_names(one.id).empty()) continue;
        const std::vector<std::uint16_t> values = values_of<std::uint16_t>(model.z, one.id);
        const std::vector<float> masters = state_of<float>(model.z, one.id, "master");
        std::vector<std::uint16_t> expected(values.size());
        vector::convert(one.type, expected.data(), dtype::f32, masters.data(), one.count);
        CHECK(values == expected);
    }
}

// `type` to `other` and back, over three numbers of ranks and stages.
void there_and_back(dtype type, dtype other, int ranks, int stage, const std::string& after_three, const std::string& after_five) {
    const shared_folder folder;
    const bool all_fits = sum_type(type) == sum_type(other) || sum_type(other) == dtype::f64;
    const int size = world_size(), middle = ranks % size + 1, last = (ranks + 4) % size + 1;
    std::vector<double> saved, there;
    INFO(name(type) << " on " << ranks << " ranks, stage " << stage << ", to " << name(other) << " on " << middle << " and back on " << last);
    job(ranks, [&](MPI_Comm comm) {
        varied model(comm, json_of(ranks, stage, 0, adam, ""), true, type);
        set_frozen(model);
        go_on(model, 0, 3);
        CHECK((model.bits() == after_three));
        saved = kept(model);
        checkpoint::save(model.z, folder / "c", "first");
    });
    job(middle, [&](MPI_Comm comm) {
        varied model(comm, json_of(middle, 3 - stage, 1, adam, ""), false, other);
        checkpoint::load(model.z, folder / "c", "");
        there = kept(model);
        if (model.z.ranks().rank() < ranks) CHECK((there == rounded(saved, other)));
        require_rounded(model);
        checkpoint::save(model.z, folder / "c", "second");
    });
    job(last, [&](MPI_Comm comm) {
        varied model(comm, json_of(last, (stage + 1) % 4, 0, adam, ""), false, type);
        checkpoint::load(model.z, folder / "c", "");
        const std::vector<double> back = kept(model);
        if (model.z.ranks().rank() < middle) CHECK((back == there));
        require_rounded(model);
        if (!all_fits) return;
        CHECK((model.bits() == after_three));
        go_on(model, 3, 5);
        CHECK((model.bits() == after_five));
    });
}

// `offloaded`: 0 nothing, 1 states and masters, 2 slices of the parameters as well.
std::string json_of_place(int ranks, int stage, int offloaded) {
    std::string json = json_of(ranks, stage, ranks % 2, adam, clipped);
    const std::string key = "\"zero_optimization\": {", there = R"({"device": "cpu"}, )";
    std::string more;
    if (offloaded >= 1) more += "\"offload_optimizer\": " + there;
    if (offloaded >= 2) more += "\"offload_param\": " + there;
    return json.insert(json.find(key) + key.size(), more);
}

}  // namespace

TEST_CASE("any dtype to any other and back", "[types]") {
    const std::vector<dtype> types{dtype::bf16, dtype::f16, dtype::f32, dtype::f64};
    int number = 0;
    for (const dtype type : types) {
        const std::string after_three = bits_alone(type, 3), after_five = bits_alone(type, 5);
        for (const dtype other : types)
            for (int stage = 0; other != type && stage < 4; ++stage)
                there_and_back(type, other, (3 * stage + number++) % world_size() + 1, stage, after_three, after_five);
    }
}

TEST_CASE("any place to any other", "[places]") {
    std::string after_three, after_five;
    job(1, [&](MPI_Comm comm) {
        varied model(comm, json_of(1, 0, 0, adam, clipped), true);
        go_on(model, 0, 3);
        after_three = model.bits();
        go_on(model, 3, 5);
        after_five = model.bits();
    });
    after_three = told_by_first(after_three);
    after_five = told_by_first(after_five);
    const auto places = [](int stage) { return stage == 0 ? 1 : stage == 3 ? 3 : 2; };
    for (const int ranks : {2, 5})
        for (int stage = 0; stage < 4; ++stage)
            for (int from = 0; from < places(stage); ++from) {
                if (ranks > world_size()) continue;
                const shared_folder folder;
                job(ranks, [&](MPI_Comm comm) {
                    varied model(comm, json_of_place(ranks, stage, from), true);
                    go_on(model, 0, 3);
                    CHECK((model.bits() == after_three));
                    checkpoint::save(model.z, folder / "c", "");
                });
                for (const int other : {1, 4})
                    for (int then = 0; then < 4; ++then)
                        for (int to = 0; to < places(then); ++to) {
                            if (other > world_size()) continue;
                            INFO(ranks << " ranks, stage " << stage << ", offloaded " << from << " to " << other << ", stage " << then
                                       << ", offloaded " << to);
                            job(other, [&](MPI_Comm comm) {
                                varied model(comm, json_of_place(other, then, to), false);
                                checkpoint::load(model.z, folder / "c", "");
                                CHECK((model.bits() == after_three));
                                go_on(model, 3, 5);
                                CHECK((model.bits() == after_five));
                            });
                        }
            }
}
