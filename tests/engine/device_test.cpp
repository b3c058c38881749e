// Stages on device memory (of the emulation, or of a GPU) against the same stages in host memory: the bits of values, states and norms, on 1 to 4
// ranks, on one node, two, or four; what callers may hand over; what is refused; the ledger against the forecast.
#include "engine/device.hpp"

#include "checkpoints/load.hpp"
#include "checkpoints/save.hpp"
#include "support/shared_folder.hpp"

using namespace engine_test;
using place = placed_model::place;

namespace {

void compare(const setup& how, int updates) {
    CAPTURE(how.stage, name(how.type), how.library_owned, how.optimizer, how.bucket, how.accumulation, how.more, how.more_zero);
    placed_model host(how, place::host), device(how, place::device);
    REQUIRE(device.z.on_device());
    for (auto* one : {&host, &device}) one->train(updates);
    CHECK(host.z.get_real("grad_norm") == device.z.get_real("grad_norm"));
    CHECK(host.bits() == device.bits());
    CHECK(host.gathered() == device.gathered());
    for (const auto& state : host.z.state_names(1)) CHECK(host.bits(state) == device.bits(state));
    if (zero::is_16bit(how.type)) CHECK(host.bits("master") == device.bits("master"));
    CHECK(host.z.dot("value", "value", -1) == device.z.dot("value", "value", -1));
    host.z.close();
    device.z.close();
}

}  // namespace

TEST_CASE("stages on a device give the bits of host memory", "[device]") {
    choose_own_device();
    for (const int stage : {0, 1, 2, 3})
        for (const zero::dtype type : {zero::dtype::f32, zero::dtype::bf16, zero::dtype::f64}) {
            setup how;
            how.stage = stage;
            how.type = type;
            how.library_owned = stage % 2 == (type == zero::dtype::bf16 ? 0 : 1);
            how.bucket = stage == 1 ? 500'000'000 : 200;
            how.accumulation = type == zero::dtype::f32 ? 2 : 1;
            compare(how, 3);
        }
}

TEST_CASE("optimizers, clipping, loss scales and travel types on a device", "[device]") {
    choose_own_device();
    for (const char* optimizer : {R"("type": "Lamb", "params": {"lr": 0.01})", R"("type": "SGD", "params": {"lr": 0.1, "momentum": 0.9})",
                                  R"("type": "Lion", "params": {"lr": 0.01})", R"("type": "Adagrad", "params": {"lr": 0.1})"}) {
        setup how;
        how.stage = 2;
        how.optimizer = optimizer;
        how.more = R"(, "gradient_clipping": 0.5)";
        compare(how, 2);
    }
    setup how;
    how.stage = 3;
    how.type = zero::dtype::f16;
    how.more = R"(, "fp16": {"enabled": true, "initial_scale_power": 4})";
    compare(how, 2);
    how.type = zero::dtype::f32;
    how.more = R"(, "communication_data_type": "bf16")";
    compare(how, 2);
    how.more_zero = R"(, "stage3_max_live_parameters": 700, "stage3_prefetch_bucket_size": 300, "stage3_max_reuse_distance": 1000)";
    how.persistence = 10;
    compare(how, 3);
}

TEST_CASE("states and parameters in host memory beside a device give the same bits", "[device]") {
    choose_own_device();
    for (const int stage : {1, 2, 3})
        for (const zero::dtype type : {zero::dtype::f32, zero::dtype::bf16, zero::dtype::f64})
            for (const bool pinned : {true, false}) {
                setup how;
                how.stage = stage;
                how.type = type;
                how.bucket = 300;
                how.library_owned = pinned;
                how.persistence = stage == 3 && pinned ? 40 : 0;
                const std::string there = std::string(R"({"device": "cpu", "pin_memory": )") + (pinned ? "true" : "false") + "}";
                how.more_zero = R"(, "sub_group_size": 100, "offload_optimizer": )" + there + (stage == 3 ? R"(, "offload_param": )" + there : "");
                how.more = R"(, "gradient_clipping": 1.5)";
                compare(how, 3);
            }
}

TEST_CASE("parameters or a part of the states in host memory give the same bits", "[device]") {
    choose_own_device();
    const std::string lamb = R"("type": "Lamb", "params": {"lr": 0.01, "weight_decay": 0.1})";
    for (const int stage : {2, 3})
        for (const zero::dtype type : {zero::dtype::f32, zero::dtype::bf16, zero::dtype::f64})
            for (const char* ratio : {"none", "0", "0.4", "1"}) {
                setup how;
                how.stage = stage;
                how.type = type;
                how.bucket = 100;
                const bool pinned = type == zero::dtype::bf16;
                how.library_owned = !pinned;
                if (stage == 2 && ratio == std::string("none")) continue;
                const std::string there = std::string(R"({"device": "cpu", "pin_memory": )") + (pinned ? "true" : "false");
                how.more_zero = R"(, "sub_group_size": 64)" + (stage == 3 ? R"(, "offload_param": )" + there + "}" : "");
                if (ratio != std::string("none")) how.more_zero += R"(, "offload_optimizer": )" + there + R"(, "ratio": )" + ratio + "}";
                how.more = R"(, "gradient_clipping": 1.5)";
                compare(how, 2);
                how.optimizer = lamb;
                compare(how, 2);
            }
}

TEST_CASE("the ratio of offloaded states says how many bytes lie where", "[device]") {
    choose_own_device();
    const auto bytes_with = [](const char* ratio) {
        setup how;
        how.stage = 2;
        how.bucket = 100;
        how.more_zero = std::string(R"(, "sub_group_size": 64, "offload_optimizer": {"device": "cpu", "ratio": )") + ratio + "}";
        placed_model device(how, place::device);
        const auto there = device.z.memory(zero::place::device).first, here = device.z.memory(zero::place::host).first;
        device.z.close();
        return std::pair(there, here);
    };
    const auto none = bytes_with("0"), half = bytes_with("0.5"), all = bytes_with("1");
    CHECK(all.first < half.first);  // on the device
    CHECK(none.second < half.second);
    CHECK(half.second < all.second);
}

TEST_CASE("groups that freeze, gradients that come late, and buckets that nobody fills", "[device]") {
    choose_own_device();
    for (const int stage : {1, 2, 3}) {
        setup how;
        how.stage = stage;
        how.bucket = 100;
        placed_model host(how, place::host), device(how, place::device);
        for (auto* one : {&host, &device}) {
            one->train(1);
            one->train(1);
            one->hand_over(7, true);  // twice in one micro-step: late for buckets that have left
            one->hand_over(8, false);
            for (std::size_t t = 0; t < shapes().size(); ++t) fetch(one->z, static_cast<int>(t));
            one->z.step();
            for (std::size_t t = 0; t < shapes().size(); ++t) fetch(one->z, static_cast<int>(t));
            one->z.step();  // nothing was handed over
            one->z.set("groups.0.frozen", std::int64_t{1});
            one->builds_there = false;
            one->train(1);
        }
        CHECK(host.bits() == device.bits());
        host.z.close();
        device.z.close();
    }
}

TEST_CASE("fill, scatter, states and slices on a device", "[device]") {
    choose_own_device();
    for (const int stage : {0, 2, 3}) {
        setup how;
        how.stage = stage;
        how.type = stage == 2 ? zero::dtype::bf16 : zero::dtype::f32;
        how.library_owned = stage != 2;
        placed_model host(how, place::host), device(how, place::device);
        for (auto* one : {&host, &device}) {
            one->z.fill(1, "normal", 0, 1, 7);
            one->z.fill(4, "uniform", -1, 1, 8);
            one->train(1);
            std::vector<double> numbers;
            for (int i = 0; i < 512; ++i) numbers.push_back(0.25 * (i % 17));
            const auto bytes = typed(zero::dtype::f32, numbers);
            const array_on_device there(bytes);
            const int root = size() - 1;
            one->z.scatter_state(7, "exp_avg", root, rank() != root ? nullptr : one->on_device() ? there.data() : bytes.data());
            one->hand_over(3, true);
            for (std::size_t t = 0; t < shapes().size(); ++t) fetch(one->z, static_cast<int>(t));
            one->z.finish();
            for (int id : {1, 7}) {  // values := 2 x values - gradient, by hand
                const auto value = one->z.slice(id, "value"), gradient = one->z.slice(id, "gradient");
                REQUIRE(value.count == gradient.count);
                if (value.count == 0) continue;
                std::vector<float> a(static_cast<std::size_t>(value.count)), b(a);
                const auto length = a.size() * sizeof(float);
                REQUIRE(cudaMemcpy(a.data(), value.data, length, cudaMemcpyDefault) == cudaSuccess);
                REQUIRE(cudaMemcpy(b.data(), gradient.data, length, cudaMemcpyDefault) == cudaSuccess);
                for (std::size_t i = 0; i < a.size(); ++i) a[i] = 2 * a[i] - b[i];
                REQUIRE(cudaMemcpy(value.data, a.data(), length, cudaMemcpyDefault) == cudaSuccess);
            }
            one->z.publish();
            one->train(1);
        }
        CHECK(host.bits() == device.bits());
        CHECK(host.bits("exp_avg") == device.bits("exp_avg"));
        for (int root = 0; root < size(); ++root) {
            const auto a = host.bits("", root), b = device.bits("", root);
            if (rank() == root) CHECK(a == b);
        }
        host.z.close();
        device.z.close();
    }
}

TEST_CASE("a checkpoint of a device is one of host memory", "[device]") {
    choose_own_device();
    for (const bool behind : {false, true}) {
        const zero::test::shared_folder folder;
        setup how;
        how.stage = 3;
        how.type = zero::dtype::bf16;
        how.more = behind ? R"(, "checkpoint": {"async": true})" : "";
        std::vector<std::byte> expected, moments;
        {
            placed_model device(how, place::device);
            device.train(2);
            expected = device.bits();
            moments = device.bits("exp_avg");
            zero::checkpoint::save(device.z, folder.path(), "one");
            device.train(1);
            device.z.wait();
            CHECK(device.bits() != expected);
            zero::checkpoint::load(device.z, folder.path(), "one");
            CHECK(device.bits() == expected);
            CHECK(device.bits("exp_avg") == moments);
            CHECK(device.gathered() == expected);
            device.z.close();
        }
        how.stage = 1;
        placed_model host(how, place::host);
        zero::checkpoint::load(host.z, folder.path(), "one");
        CHECK(host.bits() == expected);
        CHECK(host.bits("exp_avg") == moments);
        zero::checkpoint::save(host.z, folder.path(), "two");
        host.z.wait();
        placed_model device(how, place::device);
        zero::checkpoint::load(device.z, folder.path(), "two");
        CHECK(device.bits() == expected);
        host.z.close();
        device.z.close();
    }
}
