// AdamW on a device against the copy rate of its memory, and with offloaded states against the slower of the link and of the
// host's own update; bytes by arithmetic, all in one run, taking turns. Ends with status 77 where there is no GPU. Options: --json,
// --rounds N (9), --smallest MiB (64), --largest MiB (1024) of parameters, --threads N (1) for the host.
#include <cstdint>

#include "compute/processor.hpp"
#include "core/crew.hpp"
#include "device/devices.hpp"
#include "offload/host_update.hpp"
#include "optimizer/optimizer.hpp"
#include "support/measure.hpp"

namespace {

using zero::buffer;
using zero::dtype;
using zero::memory_kind;
using zero::purpose;

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

struct bench {
    zero::ledger book;
    zero::crew threads;
    std::unique_ptr<zero::compute::processor> device, host;
    int rounds;

    buffer on_device(std::int64_t bytes) { return device->take(book, purpose::states, bytes); }
    buffer on_host(std::int64_t bytes) { return device->take(book, purpose::states, bytes, memory_kind::pinned); }

    void update_there(benchmark::report& report, dtype type, std::int64_t bytes) {
        const std::int64_t count = bytes / zero::size_of(zero::sum_type(type)), sixteen = zero::is_16bit(type) ? 2 : 0;
        const buffer value = on_device(bytes), gradient = on_device(bytes), m = on_device(bytes), v = on_device(bytes), other = on_device(bytes);
        const buffer copy = on_device(count * 2);
        const zero::optimizer::update_range range{type, value.data(), sixteen ? copy.data() : nullptr, gradient.data(), {m.data(), v.data()}, count};
        const double moved = 7.0 * static_cast<double>(bytes) + static_cast<double>(count * sixteen);  // four read, three written
        const auto times = benchmark::interleave(rounds, {
            [&] { device->update(zero::optimizer::kind::adam, {}, 0.5, 1, range); device->wait(); },
            [&] { for (int k = 0; k < 4; ++k) device->start_copy(other.data(), value.data(), bytes); device->wait(); }});
        const double rate = moved / times.time(0).median, copies = 8.0 * static_cast<double>(bytes) / times.time(1).median;
        report.add({{"what", "update on the device"}, {"type", zero::name(type)}, {"MiB", bytes / mebibyte}, {"ms", times.time(0).median * 1e3},
                    {"GB/s", rate * 1e-9}, {"bound GB/s", copies * 1e-9}, {"of bound", rate / copies}, {"goal", 0.9}});
    }

    void update_here(benchmark::report& report, std::int64_t bytes) {
        const std::int64_t count = bytes / 4;
        const buffer value = on_device(bytes), gradient = on_device(bytes), m = on_host(bytes), v = on_host(bytes);
        const buffer host_value = on_host(bytes), host_gradient = on_host(bytes);
        const zero::optimizer::hyper numbers{};
        zero::offload::host_update offloaded(*device, threads, book, count, count);
        zero::offload::host_update::part part{{dtype::f32, value.data(), nullptr, gradient.data(), {m.data(), v.data()}, count}, false, false};
        const zero::optimizer::update_range whole{dtype::f32, host_value.data(), nullptr, host_gradient.data(), {m.data(), v.data()}, count};
        const zero::offload::action update = [&](zero::compute::processor& by, const zero::optimizer::update_range& tile, std::size_t) {
            by.share(tile.count, 1 << 15, [&](int, std::int64_t first, std::int64_t n) {
                by.update(zero::optimizer::kind::adam, numbers, 0.5, 1, zero::offload::piece_of(tile, first, n));
            });
        };
        const auto times = benchmark::interleave(rounds, {
            [&] {
                offloaded.run({&part, 1}, zero::offload::changes::values, update, *device->take_note());
                device->wait();
            },
            [&] {  // what crosses the link: gradient and value down; the value goes up meanwhile
                device->start_copy(host_gradient.data(), gradient.data(), bytes);
                device->start_copy(host_value.data(), value.data(), bytes);
                device->wait();
            },
            [&] {
                threads.share(count, 1 << 15, [&](int, std::int64_t first, std::int64_t n) {
                    host->update(zero::optimizer::kind::adam, numbers, 0.5, 1, zero::offload::piece_of(whole, first, n));
                });
            }});
        const double bound = std::max(times.time(1).median, times.time(2).median);
        report.add({{"what", "states offloaded"}, {"type", "f32"}, {"MiB", bytes / mebibyte}, {"ms", times.time(0).median * 1e3},
                    {"GB/s", static_cast<double>(bytes) * 1e-9 / times.time(0).median}, {"bound GB/s", static_cast<double>(bytes) * 1e-9 / bound},
                    {"of bound", bound / times.time(0).median}, {"goal", 0.9}});
    }
};

}  // namespace

int main(int count, char** texts) {
    const benchmark::arguments options(count, texts);
    const auto chosen = zero::choose_device("auto");
    if (chosen.number < 0) {
        std::printf("gpu_adam: %s\n", chosen.reason.c_str());
        return 77;
    }
    bench all{{}, zero::crew(static_cast<int>(options.number("--threads", 1))), nullptr, nullptr, static_cast<int>(options.number("--rounds", 9))};
    all.device = zero::compute::make_cuda(chosen.number, all.book);
    all.host = zero::compute::make_host(all.threads);
    benchmark::report report("gpu_adam: AdamW on a device against copies of its memory, and with offloaded states");
    const std::int64_t smallest = options.number("--smallest", 64), largest = options.number("--largest", 1024);
    for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16})
        for (std::int64_t size = smallest; size <= largest; size *= 4) all.update_there(report, type, size * mebibyte);
    for (std::int64_t size = smallest; size <= largest; size *= 4) all.update_here(report, size * mebibyte);
    report.print(options.has("--json"));
}
