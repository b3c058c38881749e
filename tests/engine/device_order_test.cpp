// What a context on a device owes its surroundings: the order of the caller's stream, the forecast, no waiting for the whole device and
// no memory per step, and errors that are everybody's: wrong memory, graphs, and each call of CUDA and NCCL failing in turn.
#include "engine/device.hpp"

#include <cstdlib>
#include <fstream>

#include "emulation/control.hpp"

using namespace engine_test;
using place = placed_model::place;
using zero::code;

TEST_CASE("auto is the device that the program uses already", "[device]") {
    choose_own_device();
    const auto device_of = [](const char* word) {
        return zero::engine(world(), std::string(R"({"libzero": {"device": ")") + word + "\"}}").on_device();
    };
    CHECK_FALSE(device_of("host"));
    zero_emulation::check_clean();
    CHECK_FALSE(device_of("auto"));
    CHECK(device_of("cuda"));
    {
        const array_on_device something(std::vector<std::byte>(64));
        CHECK(device_of("auto"));
        CHECK_FALSE(device_of("host"));
    }
    {  // not on all ranks: then nobody does
        std::unique_ptr<array_on_device> mine;
        if (rank() > 0) mine = std::make_unique<array_on_device>(std::vector<std::byte>(64));
        CHECK_FALSE(device_of("auto"));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank() == 0) zero_emulation::set_driver(zero_emulation::driver::none);
    CHECK(code_of([&] { device_of("cuda"); }) == code::cuda);
    zero_emulation::set_driver(zero_emulation::driver::present);
    MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("the forecast is the ledger, on both places", "[device]") {
    choose_own_device();
    for (const int stage : {0, 1, 2, 3, 11, 12, 13, 22, 23, 33})  // from 11: offloaded, from 22: a part of it, 33: values alone
        for (const zero::dtype type : {zero::dtype::f32, zero::dtype::bf16}) {
            setup how;
            how.stage = stage % 10;
            how.type = type;
            how.bucket = stage == 22 ? 100 : 1000;
            if (stage > 10 && stage < 30)
                how.more_zero = R"(, "offload_optimizer": {"device": "cpu", "ratio": )" + std::string(stage > 20 ? "0.5}" : "1}");
            if (stage > 10 && stage % 10 == 3) how.more_zero += R"(, "offload_param": {"device": "cpu"})";
            how.more = R"(, "libzero": {"device": "cuda"})";
            zero::engine z(world(), json(how));
            std::vector<array_on_device> arrays;
            for (std::size_t t = 0; t < shapes().size(); ++t) {
                arrays.emplace_back(std::vector<std::byte>(static_cast<std::size_t>(count_of(shapes()[t]) * zero::size_of(type))));
                z.add_tensor("t" + std::to_string(t), type, shapes()[t], t % 2 == 0 ? nullptr : arrays.back().data(), 0);
            }
            const auto device = z.forecast(zero::place::device), host = z.forecast(zero::place::host);
            CHECK(device.first > 0);
            z.commit();
            CAPTURE(stage, name(type));
            CHECK(z.memory(zero::place::device).first == device.first);
            CHECK(z.memory(zero::place::host).first == host.first);
            z.close();
        }
}

TEST_CASE("a step takes no memory and waits for no other stream", "[device]") {
    choose_own_device();
    for (const int stage : {1, 2}) {
        setup how;
        how.stage = stage;
        placed_model device(how, place::device);
        device.train(3);
        std::vector<array_on_device> gradients;
        for (std::size_t t = 0; t < shapes().size(); ++t)
            gradients.emplace_back(std::vector<std::byte>(static_cast<std::size_t>(4 * count_of(shapes()[t]))));
        for (std::size_t t = 0; t < shapes().size(); ++t) fetch(device.z, static_cast<int>(t));
        zero_emulation::reset_counters();
        for (std::size_t t = shapes().size(); t-- > 0;) device.z.reduce(static_cast<int>(t), 1, gradients[t].data());
        CHECK(zero_emulation::count().stream_synchronizes == 0);
        device.z.step();
        const auto counted = zero_emulation::count();
        CHECK(counted.device_synchronizes + counted.implicit_synchronizes == 0);
        CHECK(counted.allocations + counted.pool_allocations + counted.pinned_allocations + counted.registrations == 0);
        CHECK(counted.kernels > 0);
        device.z.close();
    }
}

TEST_CASE("calls are in the order of the caller's stream", "[device]") {
    choose_own_device();
    cudaStream_t mine = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking) == cudaSuccess);
    {
        setup how;
        how.stage = 2;
        how.optimizer = sgd;
        placed_model device(how, place::device);
        device.z.set_stream(mine);
        const std::size_t t = 7;
        std::vector<float> gradient(512, 2.0F);
        array_on_device given(std::vector<std::byte>(2048));
        // Written late on that stream, read by the library, and overwritten at once after the call: the race detector looks on.
        REQUIRE(cudaMemcpyAsync(given.data(), gradient.data(), 2048, cudaMemcpyHostToDevice, mine) == cudaSuccess);
        device.z.reduce(static_cast<int>(t), 1, given.data());
        REQUIRE(cudaMemsetAsync(given.data(), 0, 2048, mine) == cudaSuccess);
        device.z.step();
        std::vector<float> found(512);
        REQUIRE(cudaMemcpyAsync(found.data(), device.z.gather(static_cast<int>(t)), 2048, cudaMemcpyDeviceToHost, mine) == cudaSuccess);
        REQUIRE(cudaStreamSynchronize(mine) == cudaSuccess);
        device.z.release(static_cast<int>(t));
        for (std::size_t i = 0; i < 512; ++i) REQUIRE(found[i] == static_cast<float>(initial_value(t, static_cast<std::int64_t>(i)) - 2));

        if (rank() == size() - 1) REQUIRE(cudaStreamBeginCapture(mine, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
        CHECK(code_of([&] { device.z.step(); }) == code::state);  // everywhere
        if (rank() == size() - 1) {
            CHECK(code_of([&] { device.z.reduce(static_cast<int>(t), 1, given.data()); }) == code::state);
            cudaGraph_t graph = nullptr;
            REQUIRE(cudaStreamEndCapture(mine, &graph) == cudaSuccess);
            cudaGraphDestroy(graph);
        }
        device.z.set_stream(nullptr);
        device.train(1);
        device.z.close();
    }
    REQUIRE(cudaStreamDestroy(mine) == cudaSuccess);
}

TEST_CASE("where no pages can be locked, ranks may wait for each other between their calls all the same", "[device]") {
    choose_own_device();
    for (const int node_size : {1, 2}) {
        if (size() % node_size != 0) continue;
        zero_emulation::limit_pinned_memory(0);
        setup how;
        how.stage = 2;
        how.bucket = 200;
        how.more = R"(, "libzero": {"device": "cuda", "node_size": )" + std::to_string(node_size) + "}";
        zero::engine z(world(), json(how));
        std::vector<array_on_device> gradients;
        for (int t = 0; t < 8; ++t) {
            gradients.emplace_back(typed(zero::dtype::f32, std::vector<double>(200, rank())));
            z.add_tensor("t" + std::to_string(t), zero::dtype::f32, std::vector<std::int64_t>{200}, nullptr, 0);
        }
        z.commit();
        for (int update = 0; update < 3; ++update) {
            for (int t = 7; t >= 0; --t) {
                z.reduce(t, 1, gradients[static_cast<std::size_t>(t)].data());
                MPI_Barrier(MPI_COMM_WORLD);
            }
            z.step();
        }
        z.close();
        zero_emulation::limit_pinned_memory(INT64_MAX);
    }
}

TEST_CASE("gradients of 16-bit tensors travel in 16 bits, unless several were added up", "[device]") {
    choose_own_device();
    setup how;
    how.stage = 2;
    how.more = R"(, "libzero": {"device": "cuda"})";
    zero::engine z(world(), json(how));
    const std::vector<std::int64_t> dims{512 * size()};
    const array_on_device gradient(std::vector<std::byte>(static_cast<std::size_t>(1024 * size())));
    z.add_tensor("w", zero::dtype::bf16, dims, nullptr, 0);
    z.commit();
    const auto sent_by = [&](int handed_twice_by) {
        zero_emulation::reset_counters();
        for (int k = 0; k < 2; ++k)
            if (k == 0 || rank() == handed_twice_by) z.reduce(0, 1, gradient.data());
        z.finish();
        const std::int64_t sent = zero_emulation::count().sent_bytes;
        z.step();
        return sent;
    };
    CHECK(sent_by(-1) == (size() - 1) * 512 * 2);
    z.close();
}

TEST_CASE("memory that the context cannot reach is refused", "[device]") {
    choose_own_device();
    std::vector<float> plain(512);
    setup how;
    how.more = R"(, "libzero": {"device": "cuda"})";
    zero::engine z(world(), json(how));
    const std::vector<std::int64_t> dims{512};
    REQUIRE_THROWS_WITH(z.add_tensor("w", zero::dtype::f32, dims, plain.data(), 0), Catch::Contains("the values of 'w' lie in plain host memory"));
    const array_on_device good(std::vector<std::byte>(2048));
    z.add_tensor("w", zero::dtype::f32, dims, good.data(), 0);
    CHECK(code_of([&] { z.attach({"a", zero::dtype::f32, dims, 512, good.data(), false}); }) == code::argument);
    CHECK(code_of([&] { z.set("libzero.device", std::string("host")); }) == code::state);
    z.set("libzero.reproducible", std::int64_t{1});
    CHECK(code_of([&] { z.commit(); }) == code::unsupported);
    z.set("libzero.reproducible", std::int64_t{0});
    z.commit();
    REQUIRE_THROWS_WITH(z.reduce(0, 1, plain.data()), Catch::Contains("zero_reduce: the gradient of 'w'"));
    CHECK(code_of([&] { z.rebind(0, plain.data()); }) == code::argument);
    z.reduce(0, 1, good.data());
    z.step();
    z.close();
    zero::engine host(world(), R"({"libzero": {"device": "host"}})");
    CHECK(code_of([&] { host.add_tensor("w", zero::dtype::f32, dims, good.data(), 0); }) == code::argument);
    CHECK(code_of([&] { host.set_stream(&plain); }) == code::unsupported);
    host.set_stream(nullptr);
}

namespace {

// Calls on all ranks, of which one may have an error of its own: all learn of it here, and end together.
struct watched {
    code mine = code::ok;
    std::string text;
    bool failed = false;  // somewhere
    template <typename Call>
    void operator()(const Call& call) {
        if (failed) return;
        try {
            call();
        } catch (const zero::error& what) {
            mine = what.which();
            text = what.what();
        }
        int bad = mine != code::ok ? 1 : 0;
        MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        failed = bad != 0;
    }
};

struct material {
    static constexpr std::int64_t counts[] = {700, 33, 512};
    std::vector<array_on_device> values, gradients;
    material() {
        for (const auto n : counts)
            for (auto* list : {&values, &gradients}) list->emplace_back(typed(zero::dtype::f32, std::vector<double>(static_cast<std::size_t>(n), 0.5)));
    }
};

// From init to finalize. What fails on one rank fails there at once, and everywhere in the next collective call at the latest.
watched life(const material& with, int stage, const std::string& more) {
    watched each;
    std::unique_ptr<zero::engine> z;
    setup how;
    how.stage = stage;
    how.bucket = 400;
    how.more = R"(, "libzero": {"device": "cuda")" + more + "}";
    each([&] { z = std::make_unique<zero::engine>(world(), json(how)); });
    each([&] {
        for (std::size_t t = 0; t < 3; ++t)
            z->add_tensor("t" + std::to_string(t), zero::dtype::f32, std::vector<std::int64_t>{material::counts[t]},
                          t == 1 ? nullptr : with.values[t].data(), 0);
    });
    each([&] { z->commit(); });
    for (int update = 0; update < 3; ++update) {
        for (int t = 0; t < 3; ++t) each([&] { z->gather(t); });
        for (int t = 0; t < 3; ++t) each([&] { z->release(t); });
        for (int t = 2; t >= 0; --t) each([&] { z->reduce(t, 1, with.gradients[static_cast<std::size_t>(t)].data()); });
        each([&] { z->step(); });
    }
    std::vector<float> whole(700);
    each([&] { z->gather_state(0, "exp_avg", 0, whole.data()); });
    each([&] { z->fill(2, "uniform", 0, 1, 3); });
    each([&] { z->scatter(1, 0, whole.data()); });
    const bool before = each.failed;
    each([&] { z->close(); });
    if (before && z) {  // what comes next ends too, and in the same way: a call that failed before it did anything may be followed by others
        int next = static_cast<int>(code_of([&] { z->step(); })), least = next, most = next;
        MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        CHECK(least == most);
    }
    return each;
}

}  // namespace

// The n-th call on one rank, for n that walk through the life: every rank comes to an end, with an error or without, and nothing is left.
// device_faults.sh walks through all n, in stretches of so many lives of one kind, since lives that fail keep communicators of MPI.
TEST_CASE("a failing CUDA or NCCL call on one rank ends every rank's call", "[device][faults]") {
    choose_own_device();
    const auto number = [](const char* variable, std::int64_t otherwise) {
        const char* given = std::getenv(variable);
        return given == nullptr ? otherwise : std::atoll(given);
    };
    const std::int64_t first = number("ZERO_TEST_FAULT_FIRST", 1), most = number("ZERO_TEST_FAULT_LIVES", INT64_MAX);
    const std::int64_t stride = first > 1 || most < INT64_MAX ? 1 : 199;
    const char* only = std::getenv("ZERO_TEST_FAULT_KIND");
    const bool failing = rank() == size() - 1;
    for (const bool nccl : {false, true})
        for (const int stage : {2, 3}) {
            const std::string kind = (nccl ? "nccl" : "cuda") + std::to_string(stage);
            const std::string nodes = size() == 4 && stage == 2 ? R"(, "node_size": 2)" : "";
            if ((nccl && size() == 1) || (only != nullptr && only != kind)) continue;
            std::int64_t errors = 0, tried = 0;
            bool all = false;
            for (std::int64_t n = first; !all && tried < most; n += nccl ? std::max<std::int64_t>(1, stride / 8) : stride) {
                auto with = std::make_unique<material>();
                if (failing) nccl ? zero_emulation::fail_nccl_call(n) : zero_emulation::fail_cuda_call(n);
                const watched end = life(*with, stage, nodes);
                int there = failing && zero_emulation::fault_pending() ? 1 : 0;
                MPI_Bcast(&there, 1, MPI_INT, size() - 1, MPI_COMM_WORLD);
                zero_emulation::fail_cuda_call(0);
                zero_emulation::fail_nccl_call(0);
                with.reset();
                INFO(n << ": " << end.text);
                CHECK(zero_emulation::leaks() == "");
                CHECK((end.mine == code::ok || end.mine == code::cuda || end.mine == code::nccl || end.mine == code::mpi));
                CHECK((there == 0 || !end.failed));
                ++tried;
                errors += end.failed ? 1 : 0;
                all = there != 0;
            }
            zero_emulation::check_clean();
            UNSCOPED_INFO(tried << " lives, " << errors << " with an error");
            CHECK((errors > 0 || stride == 1));
            if (rank() == 0 && stride == 1) std::ofstream("stretch") << tried << ' ' << errors << ' ' << (all ? "end" : "more") << '\n';
        }
}
