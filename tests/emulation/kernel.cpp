// Launches: device pointers in the arguments are translated, what the kernel declared is opened, the threads run one
// after the other. Not here: barriers (block.cpp).
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "block.hpp"
#include "calls.hpp"
#include "memory.hpp"
#include "queue.hpp"
#include "race.hpp"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace zero_emulation {
namespace {

const char* running_kernel = "";
struct sigaction before_us;

// Says what was touched, and leaves the rest to whoever handled the signal before.
void explain(int signal, siginfo_t* information, void*) {
    machine& m = the_machine();
    const auto address = reinterpret_cast<std::uintptr_t>(information->si_addr);
    const std::uintptr_t device = m.memory.device_of(address);
    char text[240];
    int length = 0;
    if (device != 0 && m.memory.holds(address)) {
        length = std::snprintf(text, sizeof text,
                               "emulation of CUDA: the host touches device memory at 0x%zx (or a kernel, %s, a "
                               "pointer that it loaded from memory)\n",
                               address, running_kernel);
    } else if (device != 0) {
        length = std::snprintf(text, sizeof text,
                               "emulation of CUDA: kernel %s touches device memory at 0x%zx that it did not "
                               "declare, or only to read\n",
                               running_kernel, device);
    }
    if (length > 0 && ::write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) length = 0;
    ::sigaction(signal, &before_us, nullptr);
}

void explain_faults() {
    static const bool done = [] {
        struct sigaction ours {};
        ours.sa_sigaction = explain;
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
        return ::sigaction(SIGSEGV, &ours, &before_us) == 0;
    }();
    static_cast<void>(done);
}

// Replaces each word that is an address of the arena; calls `found` with what it was.
void translate(machine& m, const piece& argument, const std::function<void(std::uintptr_t)>& found) {
    for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= argument.bytes; at += sizeof(std::uintptr_t)) {
        auto* const word = static_cast<std::byte*>(argument.data) + at;
        std::uintptr_t value;
        std::memcpy(&value, word, sizeof value);
        if (find(m, value) || m.memory.holds(value)) found(value);
        if (!m.memory.holds(value)) continue;
        value = m.memory.kernel(value);
        std::memcpy(word, &value, sizeof value);
    }
}

// Opens for reading first: where what is read and what is written share a page, writing wins.
void open_and_close(machine& m, const std::vector<range>& ranges, bool open) {
    for (const bool write : {false, true}) {
        for (const range& each : ranges) {
            const auto begin = reinterpret_cast<std::uintptr_t>(each.data);
            if (each.bytes == 0 || !m.memory.holds(begin) || (each.how != use::read) != write) continue;
            if (open)
                m.memory.open_for_kernel(begin, begin + each.bytes, write);
            else
                m.memory.close_for_kernel(begin, begin + each.bytes);
        }
    }
}

}  // namespace

cudaError_t launch_pieces(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t on,
                          std::vector<range> ranges, const std::vector<piece>& arguments,
                          std::function<void()> thread) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        const auto stream = stream_of(m, on);
        if (!stream || stream->device != current_device()) return cudaErrorInvalidResourceHandle;
        const std::size_t threads = std::size_t{block.x} * block.y * block.z;
        if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 || shared_bytes > (48 << 10)) {
            return cudaErrorInvalidConfiguration;
        }
        const bool declared = !ranges.empty();
        for (const range& each : ranges) {
            const bool known = each.bytes == 0 || around(m, each.data, each.bytes, name);
            if (!known) {
                if (!m.memory.holds(reinterpret_cast<std::uintptr_t>(each.data))) {
                    problem(m, std::string("kernel ") + name +
                                   " declares memory that is neither the device's nor pinned\n" + to_text(here()));
                }
                return cudaErrorInvalidValue;
            }
        }
        for (const piece& each : arguments) {
            translate(m, each, [&](std::uintptr_t address) {
                const auto owner = find(m, address);
                if (!declared && owner)
                    ranges.push_back({reinterpret_cast<void*>(owner->begin), owner->bytes, use::update});
                if (owner ? owner->freed : find_grave(m, address) != nullptr)
                    around(m, reinterpret_cast<void*>(address), 1, name);
            });
        }
        ++m.counted.kernels;
        explain_faults();
        const auto run = [=, &m, name = std::string(name)] {
            running_kernel = name.c_str();
            open_and_close(m, ranges, true);
            gridDim = grid;
            blockDim = block;
            for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z) {
                for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
                    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) run_block(thread);
                }
            }
            open_and_close(m, ranges, false);
            running_kernel = "";
            return true;
        };
        return enqueue(m, stream, {std::string("kernel ") + name, {}, run, ranges, {}, {}, false});
    });
}

}  // namespace zero_emulation
