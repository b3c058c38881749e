// NCCL of the emulation between ranks that are processes, and between ranks of one process: results against plain
// loops, the order of streams, groups, splits, non-blocking communicators, errors.
#include <mpi.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "emulation/control.hpp"
#include "support/world.hpp"
#include "tensor/convert.hpp"

namespace emulation = zero_emulation;
using zero::test::world_rank;
using zero::test::world_size;

namespace {

ncclResult_t settle(ncclComm_t what, ncclResult_t result) {
    while (result == ncclInProgress) REQUIRE(ncclCommGetAsyncError(what, &result) == ncclSuccess);
    return result;
}

struct communicator {
    explicit communicator(int blocking = 1) {
        REQUIRE(cudaSetDevice(world_rank()) == cudaSuccess);
        ncclUniqueId id;
        if (world_rank() == 0) REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
        MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = blocking;
        const ncclResult_t result = ncclCommInitRankConfig(&handle, world_size(), id, world_rank(), &config);
        REQUIRE(result == (blocking == 1 ? ncclSuccess : ncclInProgress));
        REQUIRE(settle(handle, result) == ncclSuccess);
        REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    }
    ~communicator() {
        if (handle != nullptr) ncclCommDestroy(handle);
        cudaStreamDestroy(stream);
        emulation::check_clean();
    }
    ncclComm_t handle = nullptr;
    cudaStream_t stream = nullptr;
};

template <typename T>
struct array {
    explicit array(const std::vector<T>& host) : count(host.size()) {
        REQUIRE(cudaMalloc(&data, count * sizeof(T)) == cudaSuccess);
        REQUIRE(cudaMemcpy(data, host.data(), count * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
        REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
    }
    ~array() { cudaFree(data); }
    array(const array&) = delete;
    array& operator=(const array&) = delete;
    std::vector<T> values(cudaStream_t stream) const {
        std::vector<T> host(count);
        REQUIRE(cudaMemcpyAsync(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost, stream) == cudaSuccess);
        return host;
    }
    T* data = nullptr;
    std::size_t count;
};

template <typename T>
T element(int rank, std::size_t i) {
    return static_cast<T>((rank + 1) * 3 + static_cast<int>(i % 11));
}
template <typename T>
std::vector<T> mine(int rank, std::size_t count) {
    std::vector<T> host(count);
    for (std::size_t i = 0; i < count; ++i) host[i] = element<T>(rank, i);
    return host;
}

template <typename T>
void check_collectives(ncclDataType_t type) {
    const communicator on;
    const int size = world_size(), rank = world_rank();
    const std::size_t count = 1000;
    std::vector<T> sum(count * static_cast<std::size_t>(size)), largest(count), all;
    for (std::size_t i = 0; i < sum.size(); ++i) {
        for (int r = 0; r < size; ++r) sum[i] = static_cast<T>(sum[i] + element<T>(r, i));
    }
    for (std::size_t i = 0; i < count; ++i) largest[i] = element<T>(size - 1, i);
    for (int r = 0; r < size; ++r) {
        const auto part = mine<T>(r, count);
        all.insert(all.end(), part.begin(), part.end());
    }
    const auto slice = [&](int r) {
        return std::vector<T>(sum.begin() + static_cast<std::ptrdiff_t>(count) * r,
                              sum.begin() + static_cast<std::ptrdiff_t>(count) * (r + 1));
    };
    const array<T> input{mine<T>(rank, sum.size())}, one{std::vector<T>(count)}, many{std::vector<T>(sum.size())};
    REQUIRE(ncclAllGather(input.data, many.data, count, type, on.handle, on.stream) == ncclSuccess);
    CHECK(many.values(on.stream) == all);
    REQUIRE(ncclReduceScatter(input.data, one.data, count, type, ncclSum, on.handle, on.stream) == ncclSuccess);
    CHECK(one.values(on.stream) == slice(rank));
    REQUIRE(ncclAllReduce(input.data, one.data, count, type, ncclMax, on.handle, on.stream) == ncclSuccess);
    CHECK(one.values(on.stream) == largest);
    REQUIRE(ncclReduce(input.data, one.data, count, type, ncclSum, size - 1, on.handle, on.stream) == ncclSuccess);
    CHECK(one.values(on.stream) == (rank == size - 1 ? slice(0) : largest));
    // In place.
    REQUIRE(ncclBroadcast(one.data, one.data, count, type, size - 1, on.handle, on.stream) == ncclSuccess);
    CHECK(one.values(on.stream) == slice(0));
    REQUIRE(ncclAllReduce(input.data, input.data, sum.size(), type, ncclSum, on.handle, on.stream) == ncclSuccess);
    CHECK(input.values(on.stream) == sum);
}

}  // namespace

TEST_CASE("nccl: collectives against loops") {
    check_collectives<float>(ncclFloat32);
    check_collectives<double>(ncclFloat64);
    check_collectives<std::int8_t>(ncclInt8);
    check_collectives<std::int64_t>(ncclInt64);
}

TEST_CASE("nccl: 16-bit sums are rounded once, in the order of the ranks") {
    const communicator on;
    const int size = world_size();
    const auto exact = [](int rank) { return rank == 0 ? 256.0F : 0.5F + static_cast<float>(rank); };
    float sum = 0;
    for (int r = 0; r < size; ++r) sum += exact(r);
    zero::bf16 brain{}, expected_brain{};
    zero::f16 half{}, expected_half{};
    zero::narrow(exact(world_rank()), brain);
    zero::narrow(exact(world_rank()), half);
    zero::narrow(sum, expected_brain);
    zero::narrow(sum, expected_half);
    const array<zero::bf16> brains({brain});
    const array<zero::f16> halves({half});
    REQUIRE(ncclGroupStart() == ncclSuccess);
    REQUIRE(ncclAllReduce(brains.data, brains.data, 1, ncclBfloat16, ncclSum, on.handle, on.stream) == ncclSuccess);
    REQUIRE(ncclAllReduce(halves.data, halves.data, 1, ncclFloat16, ncclSum, on.handle, on.stream) == ncclSuccess);
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    CHECK(brains.values(on.stream)[0].bits == expected_brain.bits);
    CHECK(halves.values(on.stream)[0].bits == expected_half.bits);
}

TEST_CASE("nccl: everybody sends to everybody in a group") {
    const communicator on;
    const int size = world_size(), rank = world_rank();
    const auto ranks = static_cast<std::size_t>(size);
    std::vector<int> host(ranks), expected(ranks);
    for (int r = 0; r < size; ++r)
        host[static_cast<std::size_t>(r)] = rank * 100 + r, expected[static_cast<std::size_t>(r)] = r * 100 + rank;
    expected[static_cast<std::size_t>(rank)] = 0;
    const array<int> from(host), to(std::vector<int>(ranks, 0));
    for (int round = 0; round < 3; ++round) {
        REQUIRE(ncclGroupStart() == ncclSuccess);
        for (int r = 0; r < size; ++r) {
            if (r == rank) continue;
            REQUIRE(ncclSend(from.data + r, 1, ncclInt32, r, on.handle, on.stream) == ncclSuccess);
            REQUIRE(ncclRecv(to.data + r, 1, ncclInt32, r, on.handle, on.stream) == ncclSuccess);
        }
        REQUIRE(ncclGroupEnd() == ncclSuccess);
    }
    CHECK(to.values(on.stream) == expected);
}

TEST_CASE("nccl: non-blocking, and split") {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        emulation::seed(seed, 300);
        communicator on(0);
        const int rank = world_rank(), size = world_size();
        const array<double> values({static_cast<double>(rank + 1)});
        for (int i = 0; i < 5; ++i) {
            REQUIRE(settle(on.handle, ncclAllReduce(values.data, values.data, 1, ncclFloat64, ncclSum, on.handle,
                                                    on.stream)) == ncclSuccess);
        }
        double expected = size * (size + 1) / 2.0;
        for (int i = 1; i < 5; ++i) expected *= size;
        CHECK(values.values(on.stream)[0] == expected);

        // Even and odd ranks, the last one first.
        ncclComm_t half = nullptr;
        const ncclResult_t result = ncclCommSplit(on.handle, rank % 2, -rank, &half, nullptr);
        REQUIRE(result == ncclInProgress);
        REQUIRE(settle(half, result) == ncclSuccess);
        int half_rank = -1, half_size = -1;
        REQUIRE(ncclCommUserRank(half, &half_rank) == ncclSuccess);
        REQUIRE(ncclCommCount(half, &half_size) == ncclSuccess);
        CHECK(half_size == (size + 1 - rank % 2) / 2);
        CHECK(half_rank == (size - 1 - rank) / 2);
        const array<int> ids({rank}), all(std::vector<int>(static_cast<std::size_t>(half_size)));
        REQUIRE(settle(half, ncclAllGather(ids.data, all.data, 1, ncclInt32, half, on.stream)) == ncclSuccess);
        const auto found = all.values(on.stream);
        for (int i = 0; i < half_size; ++i) CHECK(found[static_cast<std::size_t>(i)] % 2 == rank % 2);
        CHECK(found[static_cast<std::size_t>(half_rank)] == rank);
        REQUIRE(ncclCommDestroy(half) == ncclSuccess);
    }
    emulation::seed(1, 300);
}

TEST_CASE("nccl: operations are ordered in their stream, and race outside of it") {
    const emulation::collect_problems problems;
    const communicator on;
    const array<float> values(std::vector<float>(100, 1.0F));
    REQUIRE(cudaMemsetAsync(values.data, 0, 400, on.stream) == cudaSuccess);
    REQUIRE(ncclAllReduce(values.data, values.data, 100, ncclFloat32, ncclSum, on.handle, on.stream) == ncclSuccess);
    CHECK(problems.texts().empty());
    float* const first = values.data;
    REQUIRE(cudaMemsetAsync(first, 0, 4, nullptr) == cudaSuccess);
    CHECK(problems.has("ncclAllReduce"));
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("nccl: host memory is refused, registered buffers are counted") {
    const emulation::collect_problems problems;
    const communicator on;
    std::vector<float> plain(10);
    CHECK(ncclAllReduce(plain.data(), plain.data(), 10, ncclFloat32, ncclSum, on.handle, on.stream) ==
          ncclInvalidArgument);
    void *buffer = nullptr, *handle = nullptr;
    REQUIRE(ncclMemAlloc(&buffer, 100) == ncclSuccess);
    REQUIRE(ncclCommRegister(on.handle, buffer, 100, &handle) == ncclSuccess);
    REQUIRE(ncclCommDeregister(on.handle, handle) == ncclSuccess);
    CHECK(ncclCommDeregister(on.handle, handle) != ncclSuccess);
    CHECK(cudaFree(buffer) != cudaSuccess);
    CHECK(problems.has("not from the allocator"));
    REQUIRE(ncclMemFree(buffer) == ncclSuccess);
}

TEST_CASE("nccl: an operation that does not end is seen by all, and abort frees the stream") {
    communicator on;
    const array<float> values(std::vector<float>(10, 1.0F));
    if (world_rank() == 0) emulation::fail_nccl_later(1, ncclSystemError);
    REQUIRE(ncclAllReduce(values.data, values.data, 10, ncclFloat32, ncclSum, on.handle, on.stream) == ncclSuccess);
    ncclResult_t error = ncclSuccess;
    if (world_rank() == 0) {
        while (error == ncclSuccess) REQUIRE(ncclCommGetAsyncError(on.handle, &error) == ncclSuccess);
        CHECK(error == ncclSystemError);
    } else {
        CHECK(cudaStreamQuery(on.stream) == cudaErrorNotReady);
    }
    if (world_rank() == 0) REQUIRE(ncclCommAbort(std::exchange(on.handle, nullptr)) == ncclSuccess);
    while (error == ncclSuccess) REQUIRE(ncclCommGetAsyncError(on.handle, &error) == ncclSuccess);
    if (world_rank() != 0) {
        CHECK(error == ncclRemoteError);
        REQUIRE(ncclCommAbort(std::exchange(on.handle, nullptr)) == ncclSuccess);
    }
    CHECK(cudaStreamSynchronize(on.stream) == cudaSuccess);
}

TEST_CASE("nccl: calls that do not match are an error") {
    if (world_size() == 1) return;
    communicator on;
    const array<float> values(std::vector<float>(10, 1.0F));
    const std::size_t count = world_rank() == 0 ? 9 : 10;
    REQUIRE(ncclAllReduce(values.data, values.data, count, ncclFloat32, ncclSum, on.handle, on.stream) == ncclSuccess);
    ncclResult_t error = ncclSuccess;
    while (error == ncclSuccess) REQUIRE(ncclCommGetAsyncError(on.handle, &error) == ncclSuccess);
    CHECK((error == ncclInvalidUsage ||
           error == ncclRemoteError));  // the latter: another rank found it first and is gone
    REQUIRE(ncclCommAbort(std::exchange(on.handle, nullptr)) == ncclSuccess);
}

TEST_CASE("nccl: every call in turn fails once, on one rank") {
    MPI_Barrier(MPI_COMM_WORLD);
    emulation::fail_nccl_call(2, ncclInternalError);
    ncclUniqueId id;
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
    ncclComm_t comm = nullptr;
    CHECK(ncclCommInitRank(&comm, 1, id, 0) == ncclInternalError);
    CHECK(comm == nullptr);
    REQUIRE(ncclCommInitRank(&comm, 1, id, 0) == ncclSuccess);
    const array<float> values(std::vector<float>(10, 1.0F));
    emulation::fail_nccl_call(2, ncclInternalError);
    REQUIRE(ncclGroupStart() == ncclSuccess);
    CHECK(ncclAllReduce(values.data, values.data, 10, ncclFloat32, ncclSum, comm, nullptr) == ncclInternalError);
    CHECK(ncclGroupEnd() == ncclInternalError);
    emulation::fail_nccl_call(1, ncclInternalError);
    CHECK(ncclCommDestroy(comm) == ncclInternalError);  // and yet it is gone
    CHECK(emulation::leaks().find("NCCL") == std::string::npos);
}

TEST_CASE("nccl: three ranks in one process") {
    constexpr int size = 3;
    ncclUniqueId id;
    ncclComm_t ranks[size];
    cudaStream_t streams[size];
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (int r = 0; r < size; ++r) {
        REQUIRE(cudaSetDevice(r) == cudaSuccess);
        REQUIRE(ncclCommInitRank(&ranks[r], size, id, r) == ncclSuccess);
        REQUIRE(cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking) == cudaSuccess);
    }
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    const array<int> values({1, 20, 300});
    for (int r = 0; r < size; ++r) {
        REQUIRE(ncclAllReduce(values.data + r, values.data + r, 1, ncclInt32, ncclSum, ranks[r], streams[r]) ==
                ncclSuccess);
    }
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(values.values(nullptr) == std::vector<int>{321, 321, 321});
    for (int r = 0; r < size; ++r) {
        REQUIRE(ncclCommDestroy(ranks[r]) == ncclSuccess);
        REQUIRE(cudaStreamDestroy(streams[r]) == cudaSuccess);
    }
}

TEST_CASE("nccl: two ranks of one device are refused, of two nodes they are not") {
    for (const int node : {0, 1}) {
        ncclUniqueId id;
        ncclComm_t ranks[2];
        REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
        REQUIRE(cudaSetDevice(0) == cudaSuccess);
        REQUIRE(ncclGroupStart() == ncclSuccess);
        for (int r = 0; r < 2; ++r) {
            emulation::set_node(r * node);
            REQUIRE(ncclCommInitRank(&ranks[r], 2, id, r) == ncclSuccess);
        }
        CHECK(ncclGroupEnd() == (node == 0 ? ncclInvalidUsage : ncclSuccess));
        for (const ncclComm_t each : ranks) REQUIRE(ncclCommAbort(each) == ncclSuccess);
    }
    emulation::set_node(0);
}
