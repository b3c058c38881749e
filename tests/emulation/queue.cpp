// Runs the operations of all streams: see queue.hpp.
#include "queue.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "race.hpp"

namespace zero_emulation {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds patience{60};

bool may_start(machine& m, CUstream_st& stream, moment now, moment& earliest) {
    if (stream.waiting.empty()) return false;
    const operation& head = stream.waiting.front();
    for (const dependency& each : head.after) {
        if (each.stream->done < each.number) return false;
    }
    moment from = stream.asleep_until;
    if (m.waiters == 0 && head.not_before > from) from = head.not_before;
    if (from <= now) return true;
    earliest = std::min(earliest, from);
    return false;
}

void run_one(machine& m, guard& lock, const std::shared_ptr<CUstream_st>& stream) {
    operation& head = stream->waiting.front();  // a deque keeps it in place while others are added
    bool finished = true;
    if (head.run && (m.dead == cudaSuccess || head.even_when_dead)) {
        if (m.fail_operation > 0 && !head.even_when_dead && --m.fail_operation == 0) {
            m.dead = m.operation_error;
        } else {
            stream->running = true;
            lock.unlock();
            finished = head.run();
            lock.lock();
            stream->running = false;
        }
    }
    if (!finished) {  // waits for another rank
        stream->polls = std::min(stream->polls + 1, 20);
        stream->asleep_until = steady_clock::now() + microseconds(10 * stream->polls);
        return;
    }
    stream->polls = 0;
    stream->asleep_until = {};
    const operation gone = std::move(head);
    stream->waiting.pop_front();
    ++stream->done;
    m.changed.notify_all();
}

[[noreturn]] void work() {
    machine& m = the_machine();
    guard lock(m.door);
    std::vector<std::shared_ptr<CUstream_st>> ready;
    for (;;) {
        const moment now = steady_clock::now();
        moment earliest = now + std::chrono::hours(1);
        ready.clear();
        for (const auto& each : m.streams) {
            if (may_start(m, *each, now, earliest)) ready.push_back(each);
        }
        if (ready.empty()) {
            m.changed.wait_until(lock, earliest);
            continue;
        }
        const auto chosen = ready[m.random() % ready.size()];
        run_one(m, lock, chosen);
        if (chosen->destroyed && chosen->waiting.empty()) std::erase(m.streams, chosen);
    }
}

std::shared_ptr<CUstream_st> implied(machine& m, std::map<int, std::shared_ptr<CUstream_st>>& of_devices) {
    auto& stream = of_devices[current_device()];
    if (!stream) {
        stream = std::make_shared<CUstream_st>();
        stream->id = m.streams_made++;
        stream->device = current_device();
        m.streams.push_back(stream);
    }
    return stream;
}

void order_after(operation& what, vector_clock& clock, const std::shared_ptr<CUstream_st>& stream) {
    if (stream->done < stream->enqueued) what.after.push_back({stream, stream->enqueued});
    clock.join(stream->clock);
}

}  // namespace

int& current_device() {
    thread_local int device = 0;
    return device;
}

std::shared_ptr<CUstream_st> stream_of(machine& m, cudaStream_t handle) {
    if (handle == nullptr || handle == cudaStreamLegacy) return implied(m, m.legacy);
    if (handle == cudaStreamPerThread) return implied(m, m.per_thread);
    for (const auto& each : m.streams) {
        if (each.get() == handle) return each->destroyed ? nullptr : each;
    }
    return nullptr;
}

cudaError_t enqueue(machine& m, cudaStream_t handle, operation what) {
    const auto stream = stream_of(m, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    return enqueue(m, stream, std::move(what));
}

cudaError_t enqueue(machine& m, const std::shared_ptr<CUstream_st>& stream, operation what, const vector_clock* also) {
    if (stream->capture != cudaStreamCaptureStatusNone) {
        stream->capture = cudaStreamCaptureStatusInvalidated;
        return cudaErrorStreamCaptureUnsupported;
    }
    vector_clock clock = stream->clock;
    clock.join(m.host);
    if (also != nullptr) clock.join(*also);
    // The legacy default stream comes after, and before, everything in the device's streams that block.
    const auto legacy = m.legacy.find(stream->device);
    const bool is_legacy = legacy != m.legacy.end() && legacy->second == stream;
    if (is_legacy) {
        for (const auto& each : m.streams) {
            if (each != stream && each->device == stream->device && (each->flags & cudaStreamNonBlocking) == 0) {
                order_after(what, clock, each);
            }
        }
    } else if (legacy != m.legacy.end() && (stream->flags & cudaStreamNonBlocking) == 0) {
        order_after(what, clock, legacy->second);
    }
    if (what.where.empty()) what.where = here();
    const std::uint64_t number = ++stream->enqueued;
    clock.set(stream->id, number);
    touch(m, what, stream->id, number, clock);
    stream->clock = clock;
    const auto held = m.delay > 0 ? m.random() % static_cast<unsigned>(m.delay) : 0;
    what.not_before = steady_clock::now() + microseconds(held);
    stream->waiting.push_back(std::move(what));
    if (!m.worker_runs) {
        m.worker_runs = true;
        std::thread(work).detach();
    }
    m.changed.notify_all();
    return cudaSuccess;
}

void wait_until(machine& m, guard& lock, const char* what, const std::function<bool()>& done) {
    const moment latest = steady_clock::now() + patience;
    ++m.waiters;
    m.changed.notify_all();
    while (!done()) {
        if (m.changed.wait_until(lock, latest) == std::cv_status::timeout && !done()) {
            std::fprintf(stderr, "emulation: a host thread waits for ever for %s. What the streams wait with:\n", what);
            for (const auto& each : m.streams) {
                if (each->waiting.empty()) continue;
                std::fprintf(stderr, "  stream %zu: operation %llu, %s\n", each->id,
                             static_cast<unsigned long long>(each->done + 1), each->waiting.front().what.c_str());
            }
            std::abort();
        }
    }
    --m.waiters;
}

void wait_for(machine& m, guard& lock, const std::shared_ptr<CUstream_st>& stream, std::uint64_t number) {
    wait_until(m, lock, "a stream", [&] { return stream->done >= number; });
}

void know(machine& m, const std::shared_ptr<CUstream_st>& stream) {
    m.host.join(stream->clock);
}

void wait_for_all(machine& m, guard& lock) {
    const auto streams = m.streams;
    for (const auto& each : streams) {
        const vector_clock clock = each->clock;
        wait_for(m, lock, each, each->enqueued);
        m.host.join(clock);
    }
}

std::byte* bytes_at(machine& m, std::uintptr_t address) {
    return m.memory.holds(address) ? m.memory.system(address) : reinterpret_cast<std::byte*>(address);
}

}  // namespace zero_emulation
