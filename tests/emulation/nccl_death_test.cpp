// A rank of a communicator that ends without a word: the others hear of it, and abort frees their streams.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "emulation/child.hpp"
#include "emulation/control.hpp"

namespace emulation = zero_emulation;

namespace {

constexpr const char* id_name = "ZERO_TEST_NCCL_ID";  // of the environment

std::string in_digits(const ncclUniqueId& id) {
    std::string text;
    for (const char each : id.internal) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(each)));
        text += digits;
    }
    return text;
}

ncclUniqueId from_digits(const std::string& text) {
    ncclUniqueId id;
    for (std::size_t i = 0; i < sizeof id.internal; ++i) {
        id.internal[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
    }
    return id;
}

void add_up(ncclComm_t on, float* value) {
    REQUIRE(ncclAllReduce(value, value, 1, ncclFloat32, ncclSum, on, nullptr) == ncclSuccess);
}

}  // namespace

TEST_CASE("a rank that dies", "[.]") {
    const char* const id = std::getenv(id_name);
    REQUIRE(id != nullptr);
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    ncclComm_t on = nullptr;
    float* value = nullptr;
    REQUIRE(ncclCommInitRank(&on, 2, from_digits(id), 1) == ncclSuccess);
    REQUIRE(cudaMalloc(&value, sizeof(float)) == cudaSuccess);
    add_up(on, value);
    REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
    ::_exit(0);
}

TEST_CASE("nccl: the death of a rank is an error on the others") {
    ncclUniqueId id;
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
    ::setenv(id_name, in_digits(id).c_str(), 1);
    zero::test::child_end end{false, {}};
    std::thread other([&] { end = zero::test::run_case("a rank that dies"); });
    ncclComm_t on = nullptr;
    float* value = nullptr;
    const ncclResult_t made = ncclCommInitRank(&on, 2, id, 0);
    CHECK(made == ncclSuccess);
    REQUIRE(cudaMalloc(&value, sizeof(float)) == cudaSuccess);
    ncclResult_t error = ncclSuccess;
    if (made == ncclSuccess) {
        add_up(on, value);
        CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
        add_up(on, value);
        while (error == ncclSuccess) REQUIRE(ncclCommGetAsyncError(on, &error) == ncclSuccess);
        CHECK(error == ncclRemoteError);
        CHECK(cudaStreamQuery(nullptr) == cudaErrorNotReady);
    }
    other.join();
    INFO(end.output);
    CHECK(end.well);
    REQUIRE(ncclCommAbort(on) == ncclSuccess);
    CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
    REQUIRE(cudaFree(value) == cudaSuccess);
    emulation::check_clean();
    ::unsetenv(id_name);
}
