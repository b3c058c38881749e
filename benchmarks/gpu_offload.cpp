// A whole optimizer step whose states lie in host memory (offload_optimizer), all of them or a part (ratio), and one whose parameters do
// too (offload_param), against the slower of the link and of the host's own update, in one run and taking turns. One rank, one GPU; status
// 77 where there is none. Options: --json, --rounds N (9), --mebibytes N of parameters (256 and 1024), --tensors N (16).
#include <mpi.h>

#include <string>
#include <vector>

#include "compute/processor.hpp"
#include "core/crew.hpp"
#include "device/devices.hpp"
#include "engine/engine.hpp"
#include "offload/tiles.hpp"
#include "support/measure.hpp"

namespace {

using zero::dtype;
using zero::memory_kind;
using zero::purpose;

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

struct bench {
    int rounds;
    std::int64_t tensors;
    int device_number;

    static std::string config(int stage, std::int64_t bucket, const std::string& offload) {
        return R"({"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}, "libzero": {"device": "cuda"}, "zero_optimization": {"stage": )" +
               std::to_string(stage) + R"(, "stage3_param_persistence_threshold": 0, "reduce_bucket_size": )" + std::to_string(bucket) + offload + "}}";
    }

    // Seconds of a step in which every gradient was handed over before.
    struct model {
        zero::engine z;
        std::int64_t each;
        int tensors;
        model(const void* comm, const std::string& text, std::int64_t count, std::int64_t number)
            : z(comm, text), each(count / number), tensors(static_cast<int>(number)) {
            for (int t = 0; t < tensors; ++t) z.add_tensor("w" + std::to_string(t), dtype::f32, std::vector<std::int64_t>{each}, nullptr, 0);
            z.commit();
        }
        ~model() { z.close(); }
        void hand_over() {
            for (int t = 0; t < tensors; ++t) {  // as a forward pass does
                z.gather(t);
                z.release(t);
            }
            for (int t = tensors; t-- > 0;) {
                z.gradient(t);
                z.reduce(t, 1, nullptr);
            }
        }
    };

    void measure(benchmark::report& report, std::int64_t bytes) {
        const MPI_Comm world = MPI_COMM_WORLD;
        const std::int64_t count = bytes / 4 / tensors * tensors, bucket = count / tensors;
        const std::string cpu = R"({"device": "cpu")";
        struct variant {
            const char* what;
            int stage;
            std::string offload;
            double states, values;  // shares that pass
        };
        const std::vector<variant> variants{
            {"states offloaded", 2, R"(, "offload_optimizer": )" + cpu + "}", 1, 0},
            {"half of them", 2, R"(, "offload_optimizer": )" + cpu + R"(, "ratio": 0.5})", 0.5, 0},
            {"states and parameters", 3, R"(, "offload_optimizer": )" + cpu + R"(}, "offload_param": )" + cpu + "}", 1, 0},
            {"parameters alone", 3, R"(, "offload_param": )" + cpu + "}", 0, 1}};
        zero::ledger book;
        zero::crew threads(1);  // as a context without libzero.threads has
        const auto device = zero::compute::make_cuda(device_number, book);
        const auto host = zero::compute::make_host(threads);
        const auto there = device->take(book, purpose::states, bytes), other = device->take(book, purpose::states, bytes);
        std::vector<zero::buffer> here;
        for (int k = 0; k < 4; ++k) here.push_back(device->take(book, purpose::states, bytes, memory_kind::pinned));
        const zero::optimizer::update_range whole{dtype::f32, here[0].data(), nullptr, here[1].data(), {here[2].data(), here[3].data()}, count};
        for (const variant& one : variants) {
            model ours(&world, config(one.stage, bucket, one.offload), count, tensors);
            benchmark::rounds times(3);
            for (int round = -1; round < rounds; ++round) {
                ours.hand_over();
                const double step = benchmark::seconds([&] { ours.z.step(); });
                const double link = benchmark::seconds([&] {  // gradient and value one way; the other way is free meanwhile
                    device->start_copy(here[0].data(), there.data(), bytes);
                    if (one.stage == 2) device->start_copy(here[1].data(), other.data(), bytes);
                    device->wait();
                });
                const double update = benchmark::seconds([&] {
                    threads.share(count, 1 << 15, [&](int, std::int64_t first, std::int64_t n) {
                        host->update(zero::optimizer::kind::adam, {}, 1, 1, zero::offload::piece_of(whole, first, n));
                    });
                });
                if (round < 0) continue;
                times.add(0, step);
                times.add(1, link * (one.states + one.values));
                times.add(2, update * one.states);
            }
            const double bound = std::max(times.time(1).median, times.time(2).median);
            report.add({{"what", one.what}, {"stage", one.stage}, {"MiB", bytes / mebibyte}, {"step ms", times.time(0).median * 1e3},
                        {"link ms", times.time(1).median * 1e3}, {"host update ms", times.time(2).median * 1e3},
                        {"of bound", bound / times.time(0).median}, {"goal", 0.9}});
        }
    }
};

}  // namespace

int main(int count, char** texts) {
    MPI_Init(&count, &texts);
    const benchmark::arguments options(count, texts);
    const auto chosen = zero::choose_device("auto");
    if (chosen.number < 0) {
        std::printf("gpu_offload: %s\n", chosen.reason.c_str());
        MPI_Finalize();
        return 77;
    }
    {
        const bench all{static_cast<int>(options.number("--rounds", 9)), options.number("--tensors", 16), chosen.number};
        benchmark::report report("gpu_offload: a step with states or parameters in host memory against max(link, host update)");
        const std::int64_t only = options.number("--mebibytes", 0);
        for (const std::int64_t size : only > 0 ? std::vector<std::int64_t>{only} : std::vector<std::int64_t>{256, 1024})
            bench(all).measure(report, size * mebibyte);
        report.print(options.has("--json"));
    }
    MPI_Finalize();
}
