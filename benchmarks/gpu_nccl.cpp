// The messages of a step between devices: reduce-scatter and all-gather as the stages ask for them (comm/device_ranks), against the same
// bytes by NCCL's own calls, in one run and taking turns; the slowest rank counts. One rank for each GPU: on a single GPU two ranks share it,
// and what is measured is the way through host memory (no bound then). Status 77 where there is no GPU. Options: --json, --rounds N (9),
// --mebibytes N of a bucket (16 and 256), --node-size N (0: as it is).
#include <mpi.h>
#include <nccl.h>

#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/device_ranks.hpp"
#include "compute/processor.hpp"
#include "device/devices.hpp"
#include "support/measure.hpp"

namespace {

using zero::dtype;
using zero::purpose;

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

double slowest(double mine) {
    double most = 0;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

template <typename Work>
double timed(Work&& work) {
    MPI_Barrier(MPI_COMM_WORLD);
    return slowest(benchmark::seconds(work));
}

struct bench {
    int rank, ranks, rounds;
    zero::ledger book;
    std::unique_ptr<zero::compute::processor> work;
    std::unique_ptr<zero::comm::communicator> ours;
    ncclComm_t theirs = nullptr;  // null: several ranks on a device
    std::string staged;

    void finish(std::unique_ptr<zero::comm::operation> one) const {
        one->finish();
        work->wait();
    }

    void measure(benchmark::report& report, std::int64_t bytes, bool sums) {
        const std::int64_t slice = bytes / 4 / ranks / 16 * 16, part = slice * 4;
        const auto whole = work->take(book, purpose::gradients, part * ranks), own = work->take(book, purpose::gradients, part);
        work->wait();
        const auto stream = static_cast<cudaStream_t>(work->stream());
        const auto step = [&] {
            if (sums) {
                zero::comm::reduce_scatter_request what;
                what.source = whole.data();
                what.slice = slice;
                what.target = own.data();
                return finish(ours->start_reduce_scatter(std::move(what)));
            }
            zero::comm::all_gather_request what;
            for (int k = 0; k < ranks; ++k) what.landings.push_back({whole.data() + k * part, part});
            what.own = what.landings[static_cast<std::size_t>(rank)].data;
            what.own_bytes = part;
            finish(ours->start_all_gather(std::move(what)));
        };
        const auto reference = [&] {
            const auto elements = static_cast<std::size_t>(slice);
            if (sums) ncclReduceScatter(whole.data(), own.data(), elements, ncclFloat, ncclSum, theirs, stream);
            else ncclAllGather(whole.data() + rank * part, whole.data(), elements, ncclFloat, theirs, stream);
            cudaStreamSynchronize(stream);
        };
        benchmark::rounds times(2);
        for (int round = -2; round < rounds; ++round) {
            const double mine = timed(step), other = theirs == nullptr ? 1 : timed(reference);
            if (round < 0) continue;
            times.add(0, mine);
            times.add(1, other);
        }
        const double moved = static_cast<double>(part) * (ranks - 1);
        nlohmann::ordered_json row{{"what", sums ? "reduce-scatter" : "all-gather"}, {"ranks", ranks}, {"MiB", bytes / mebibyte},
                                   {"ms", times.time(0).median * 1e3}, {"GB/s", moved * 1e-9 / times.time(0).median}};
        if (theirs != nullptr) {
            row["NCCL GB/s"] = moved * 1e-9 / times.time(1).median;
            row["of NCCL"] = times.speedup(0, 1).median;
        } else {
            row["note"] = staged;
        }
        report.add(std::move(row));
    }
};

}  // namespace

int main(int count, char** texts) {
    int level = 0;
    MPI_Init_thread(&count, &texts, MPI_THREAD_MULTIPLE, &level);
    const benchmark::arguments options(count, texts);
    int rank = 0, ranks = 1, devices = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const auto chosen = zero::choose_device("auto");
    if (chosen.number < 0 || cudaGetDeviceCount(&devices) != cudaSuccess || ranks == 1) {
        if (rank == 0) std::printf("gpu_nccl: %s\n", ranks == 1 ? "start it with several ranks" : chosen.reason.c_str());
        MPI_Finalize();
        return 77;
    }
    {
        const int device = rank % devices;
        cudaSetDevice(device);
        bench all{rank, ranks, static_cast<int>(options.number("--rounds", 9)), {}, nullptr, nullptr, nullptr, ""};
        all.work = zero::compute::make_cuda(device, all.book);
        const MPI_Comm world = MPI_COMM_WORLD;
        all.ours = zero::comm::over_devices(zero::comm::make(&world, {static_cast<int>(options.number("--node-size", 0)), 0}), *all.work, all.staged);
        if (ranks <= devices) {
            ncclUniqueId id{};
            if (rank == 0) ncclGetUniqueId(&id);
            MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
            if (ncclCommInitRank(&all.theirs, ranks, id, rank) != ncclSuccess) all.theirs = nullptr;
        }
        benchmark::report report("gpu_nccl: messages of a step between devices, against NCCL's own collectives");
        const std::int64_t only = options.number("--mebibytes", 0);
        const std::vector<std::int64_t> sizes = only > 0 ? std::vector<std::int64_t>{only} : std::vector<std::int64_t>{16, 256};
        all.ours->reserve(all.book, (sizes.back() * mebibyte) / ranks + 64);
        for (const bool sums : {true, false})
            for (const std::int64_t size : sizes) all.measure(report, size * mebibyte, sums);
        if (rank == 0) report.print(options.has("--json"));
        if (all.theirs != nullptr) ncclCommDestroy(all.theirs);
        all.work->wait();
        all.ours.reset();
    }
    MPI_Finalize();
}
