// Copies and fills. Not here: who owns the memory.
#include <cstring>

#include "calls.hpp"
#include "memory.hpp"
#include "queue.hpp"
#include "race.hpp"

namespace zero_emulation {
namespace {

struct shape {
    std::size_t width, height = 1, to_pitch = 0, from_pitch = 0;
    std::size_t to_bytes() const { return height == 0 || width == 0 ? 0 : (height - 1) * to_pitch + width; }
    std::size_t from_bytes() const { return height == 0 || width == 0 ? 0 : (height - 1) * from_pitch + width; }
};

enum class side { pageable, pinned, device };

side side_of(const std::shared_ptr<allocation>& owner) {
    if (!owner) return side::pageable;
    return owner->on_device() || owner->what == allocation::kind::managed ? side::device : side::pinned;
}

bool fits(enum cudaMemcpyKind kind, side to, side from, const std::shared_ptr<allocation>& to_owner,
          const std::shared_ptr<allocation>& from_owner) {
    const auto managed = [](const auto& owner) { return owner && owner->what == allocation::kind::managed; };
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    return kind == cudaMemcpyDefault || ((managed(to_owner) || (to == side::device) == to_device) &&
                                         (managed(from_owner) || (from == side::device) == from_device));
}

void rows(std::byte* to, const std::byte* from, const shape& size) {
    for (std::size_t row = 0; row < size.height; ++row) {
        std::memmove(to + row * size.to_pitch, from + row * size.from_pitch, size.width);
    }
}

std::uint64_t sum_of(const std::byte* from, const shape& size) {
    std::uint64_t sum = 0xcbf29ce484222325U;
    for (std::size_t row = 0; row < size.height; ++row) {
        std::size_t i = 0;
        for (; i + 8 <= size.width; i += 8) {
            std::uint64_t word;
            std::memcpy(&word, from + row * size.from_pitch + i, 8);
            sum = (sum ^ word) * 0x9e3779b97f4a7c15U;
            sum ^= sum >> 29;
        }
        for (; i < size.width; ++i)
            sum = (sum ^ static_cast<std::uint64_t>(from[row * size.from_pitch + i])) * 0x100000001b3U;
    }
    return sum;
}

void count(machine& m, side to, side from, std::int64_t bytes) {
    if (to == side::device && from == side::device)
        m.counted.bytes_on_device += bytes;
    else if (to == side::device)
        m.counted.bytes_to_device += bytes;
    else if (from == side::device)
        m.counted.bytes_to_host += bytes;
    if (to == side::pageable || from == side::pageable) m.counted.pageable_bytes += bytes;
}

const char* copy_name(side to, side from) {
    if (to == side::device) return from == side::device ? "a copy on the device" : "a copy to the device";
    return from == side::device ? "a copy to the host" : "a copy on the host";
}

cudaError_t wait_here(machine& m, guard& lock, const std::shared_ptr<CUstream_st>& stream) {
    const vector_clock clock = stream->clock;
    wait_for(m, lock, stream, stream->enqueued);
    m.host.join(clock);
    return m.dead;
}

// `call_waits`: cudaMemcpy, which returns when the copy is done unless both sides are on the device.
cudaError_t copy(void* to, const void* from, const shape& size, enum cudaMemcpyKind kind, cudaStream_t on,
                 bool call_waits) {
    return cuda_call([&](machine& m, guard& lock) -> cudaError_t {
        const auto stream = stream_of(m, on);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (size.to_bytes() == 0) return cudaSuccess;
        if (size.height > 1 && (size.to_pitch < size.width || size.from_pitch < size.width))
            return cudaErrorInvalidPitchValue;
        const auto to_owner = around(m, to, size.to_bytes(), "a copy to");
        const auto from_owner = around(m, from, size.from_bytes(), "a copy from");
        const auto to_address = reinterpret_cast<std::uintptr_t>(to),
                   from_address = reinterpret_cast<std::uintptr_t>(from);
        if ((!to_owner && m.memory.holds(to_address)) || (!from_owner && m.memory.holds(from_address)))
            return cudaErrorInvalidValue;
        const side to_side = side_of(to_owner), from_side = side_of(from_owner);
        if (to == nullptr || from == nullptr || !fits(kind, to_side, from_side, to_owner, from_owner))
            return cudaErrorInvalidValue;
        if (stream->capture != cudaStreamCaptureStatusNone) return enqueue(m, stream, {});
        count(m, to_side, from_side, static_cast<std::int64_t>(size.width * size.height));

        operation what{copy_name(to_side, from_side), {}, {}, {}, {}, here(), false};
        std::byte* const target = bytes_at(m, to_address);
        const std::byte* const source = bytes_at(m, from_address);
        const auto declare = [&](const void* first, std::size_t pitch, use how) {
            if (pitch == size.width || size.height == 1)
                what.ranges.push_back({first, size.height * size.width, how});
            else
                for (std::size_t row = 0; row < size.height; ++row) {
                    what.ranges.push_back({static_cast<const std::byte*>(first) + row * pitch, size.width, how});
                }
        };
        declare(to, size.to_pitch, use::write);
        if (from_side != side::pageable) declare(from, size.from_pitch, use::read);

        if (from_side ==
            side::pageable) {  // staged: the source may change as soon as the call returns, the target comes later
            ++m.counted.implicit_synchronizes;
            if (const cudaError_t error = wait_here(m, lock, stream); error != cudaSuccess) return error;
            auto staged = std::make_shared<std::vector<std::byte>>(size.width * size.height);
            const shape packed{size.width, size.height, size.width, size.from_pitch};
            rows(staged->data(), source, packed);
            what.run = [=] {
                rows(target, staged->data(), {size.width, size.height, size.to_pitch, size.width});
                return true;
            };
            const bool target_pageable = to_side == side::pageable;
            const cudaError_t error = enqueue(m, stream, std::move(what));
            return error == cudaSuccess && target_pageable ? wait_here(m, lock, stream) : error;
        }
        const bool watch = from_side == side::pinned && !in_flight(m, from_address, size.from_bytes(), true);
        const std::uint64_t sum = watch ? sum_of(source, size) : 0;
        if (to_side == side::pinned && !in_flight(m, to_address, size.to_bytes(), false)) {
            for (std::size_t row = 0; row < size.height; ++row)
                std::memset(target + row * size.to_pitch, 0xA5, size.width);
        }
        what.run = [=, where = what.where] {
            if (watch && sum_of(source, size) != sum) {
                machine& all = the_machine();
                guard again(all.door);
                problem(all, "race: the host changed pinned memory while a copy from it waited in its stream\n" +
                                 to_text(where));
            }
            rows(target, source, size);
            return true;
        };
        if (const cudaError_t error = enqueue(m, stream, std::move(what)); error != cudaSuccess) return error;
        const bool waits =
            to_side == side::pageable || (call_waits && !(to_side == side::device && from_side == side::device));
        if (!waits) return cudaSuccess;
        ++m.counted.implicit_synchronizes;
        return wait_here(m, lock, stream);
    });
}

cudaError_t fill(void* place, int value, std::size_t bytes, cudaStream_t on) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        if (bytes == 0) return cudaSuccess;
        if (!around(m, place, bytes, "cudaMemset")) return cudaErrorInvalidValue;
        std::byte* const target = bytes_at(m, reinterpret_cast<std::uintptr_t>(place));
        const auto run = [=] {
            std::memset(target, value, bytes);
            return true;
        };
        return enqueue(m, on, {"cudaMemset", {}, run, {{place, bytes, use::write}}, {}, {}, false});
    });
}

}  // namespace
}  // namespace zero_emulation

using namespace zero_emulation;

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) {
    return copy(to, from, {bytes, 1, bytes, bytes}, kind, nullptr, true);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy(to, from, {bytes, 1, bytes, bytes}, kind, stream, false);
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) {
    return copy(to, from, {width, height, to_pitch, from_pitch}, kind, nullptr, true);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    return copy(to, from, {width, height, to_pitch, from_pitch}, kind, stream, false);
}
cudaError_t cudaMemset(void* place, int value, size_t bytes) {
    return fill(place, value, bytes, nullptr);
}
cudaError_t cudaMemsetAsync(void* place, int value, size_t bytes, cudaStream_t stream) {
    return fill(place, value, bytes, stream);
}

}  // extern "C"
