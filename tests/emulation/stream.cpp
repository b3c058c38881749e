// Streams, events, host functions and capture of the emulated runtime. Not here: how the queue runs (queue.cpp).
#include <algorithm>
#include <utility>

#include "calls.hpp"
#include "queue.hpp"

using namespace zero_emulation;

namespace zero_emulation {
namespace {

thread_local bool calling_back = false;

using stream_pointer = std::shared_ptr<CUstream_st>;

template <typename Body>
cudaError_t with_stream(cudaStream_t handle, const Body& body) {
    return cuda_call([&](machine& m, guard& lock) -> cudaError_t {
        const stream_pointer stream = stream_of(m, handle);
        return stream ? body(m, lock, stream) : cudaErrorInvalidResourceHandle;
    });
}

template <typename Body>
cudaError_t with_event(cudaEvent_t handle, const Body& body, when_failing then = when_failing::nothing) {
    return cuda_call(
        [&](machine& m, guard& lock) -> cudaError_t {
            const auto found = m.events.find(handle);
            if (found == m.events.end()) return cudaErrorInvalidResourceHandle;
            const auto keep = found->second;
            return body(m, lock, *keep);
        },
        then);
}

cudaError_t create(cudaStream_t* made, unsigned flags, int priority) {
    return cuda_call([&](machine& m, guard&) -> cudaError_t {
        if (made == nullptr || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
        auto stream = std::make_shared<CUstream_st>();
        stream->id = m.streams_made++;
        stream->flags = flags;
        stream->priority = std::clamp(priority, -5, 0);
        stream->device = current_device();
        *made = stream.get();
        m.streams.push_back(std::move(stream));
        return cudaSuccess;
    });
}

bool reached(const event_state& state) {
    return !state.stream || state.stream->done >= state.number;
}

// What a capture forbids.
cudaError_t refuse(CUstream_st& stream) {
    if (stream.capture == cudaStreamCaptureStatusNone) return cudaSuccess;
    stream.capture = cudaStreamCaptureStatusInvalidated;
    return cudaErrorStreamCaptureUnsupported;
}

}  // namespace

bool in_host_function() {
    return calling_back;
}

}  // namespace zero_emulation

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* made) {
    return create(made, cudaStreamDefault, 0);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) {
    return create(made, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* made, unsigned flags, int priority) {
    return create(made, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    return cuda_call(
        [&](machine& m, guard&) -> cudaError_t {
            const auto found = std::find_if(m.streams.begin(), m.streams.end(),
                                            [&](const auto& each) { return each.get() == handle; });
            if (found == m.streams.end() || (*found)->destroyed) {
                problem(m, "cudaStreamDestroy of what is no stream\n" + to_text(here()));
                return cudaErrorInvalidResourceHandle;
            }
            (*found)->destroyed = true;
            if ((*found)->waiting.empty()) m.streams.erase(found);
            return cudaSuccess;
        },
        when_failing::release);
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
    return with_stream(handle, [&](machine&, guard&, const stream_pointer& stream) {
        *flags = stream->flags;
        return cudaSuccess;
    });
}
cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
    return with_stream(handle, [&](machine&, guard&, const stream_pointer& stream) {
        *priority = stream->priority;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    return with_stream(handle, [&](machine& m, guard&, const stream_pointer& stream) -> cudaError_t {
        if (const cudaError_t refused = refuse(*stream); refused != cudaSuccess) return refused;
        if (stream->done < stream->enqueued) return cudaErrorNotReady;
        know(m, stream);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    return with_stream(handle, [&](machine& m, guard& lock, const stream_pointer& stream) -> cudaError_t {
        if (const cudaError_t refused = refuse(*stream); refused != cudaSuccess) return refused;
        ++m.counted.stream_synchronizes;
        // The legacy stream is also done only when what it follows is.
        if (handle == nullptr || handle == cudaStreamLegacy) {
            if (enqueue(m, stream,
                        {.what = "cudaStreamSynchronize",
                         .after = {},
                         .run = {},
                         .ranges = {},
                         .not_before = {},
                         .where = {},
                         .even_when_dead = true}) != cudaSuccess) {
                return cudaErrorStreamCaptureUnsupported;
            }
        }
        const vector_clock clock = stream->clock;
        wait_for(m, lock, stream, stream->enqueued);
        m.host.join(clock);
        return m.dead;
    });
}

cudaError_t cudaDeviceSynchronize(void) {
    return cuda_call([](machine& m, guard& lock) {
        ++m.counted.device_synchronizes;
        wait_for_all(m, lock);
        return m.dead;
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
    return with_stream(handle, [&](machine& m, guard&, const stream_pointer& stream) -> cudaError_t {
        const auto found = m.events.find(event);
        if (found == m.events.end()) return cudaErrorInvalidResourceHandle;
        const event_state& state = found->second->state;
        if (!state.stream) return cudaSuccess;
        operation wait{"cudaStreamWaitEvent", {{state.stream, state.number}}, {}, {}, {}, {}, true};
        return enqueue(m, stream, std::move(wait), &state.clock);
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
    return with_stream(handle, [&](machine& m, guard&, const stream_pointer& stream) -> cudaError_t {
        if (function == nullptr) return cudaErrorInvalidValue;
        ++m.counted.host_functions;
        const auto run = [function, data] {
            calling_back = true;
            function(data);
            calling_back = false;
            return true;
        };
        return enqueue(m, stream, {"a host function", {}, run, {}, {}, {}, false});
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus* status) {
    return with_stream(handle, [&](machine&, guard&, const stream_pointer& stream) {
        *status = stream->capture;
        return cudaSuccess;
    });
}
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode) {
    return with_stream(handle, [&](machine&, guard&, const stream_pointer& stream) -> cudaError_t {
        if (handle == nullptr || handle == cudaStreamLegacy) return cudaErrorStreamCaptureUnsupported;
        if (stream->capture != cudaStreamCaptureStatusNone) return cudaErrorInvalidValue;
        stream->capture = cudaStreamCaptureStatusActive;
        return cudaSuccess;
    });
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
    return with_stream(handle, [&](machine&, guard&, const stream_pointer& stream) -> cudaError_t {
        *graph = nullptr;
        const auto before = std::exchange(stream->capture, cudaStreamCaptureStatusNone);
        if (before == cudaStreamCaptureStatusInvalidated) return cudaErrorStreamCaptureInvalidated;
        if (before == cudaStreamCaptureStatusNone) return cudaErrorStreamCaptureUnmatched;
        *graph = new CUgraph_st;  // of nothing: operations are refused while capturing
        return cudaSuccess;
    });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    return cuda_call([&](machine& m, guard&) {
        auto made = std::make_shared<CUevent_st>();
        made->flags = flags;
        made->where = here();
        *event = made.get();
        m.events.emplace(*event, std::move(made));
        return cudaSuccess;
    });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    return with_event(
        handle,
        [&](machine& m, guard&, CUevent_st&) {
            m.events.erase(handle);
            return cudaSuccess;
        },
        when_failing::release);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t on) {
    return with_event(handle, [&](machine& m, guard&, CUevent_st& event) -> cudaError_t {
        const stream_pointer stream = stream_of(m, on);
        if (!stream) return cudaErrorInvalidResourceHandle;
        auto at = std::make_shared<moment>();
        const auto run = [at] {
            *at = std::chrono::steady_clock::now();
            return true;
        };
        const cudaError_t error = enqueue(m, stream, {"cudaEventRecord", {}, run, {}, {}, {}, true});
        if (error == cudaSuccess) event.state = {stream, stream->enqueued, stream->clock, at};
        return error;
    });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    return with_event(handle, [&](machine& m, guard&, CUevent_st& event) -> cudaError_t {
        if (!reached(event.state)) return cudaErrorNotReady;
        m.host.join(event.state.clock);
        return m.dead;
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    return with_event(handle, [&](machine& m, guard& lock, CUevent_st& event) {
        ++m.counted.event_synchronizes;
        const event_state state = event.state;
        wait_until(m, lock, "an event", [&] { return reached(state); });
        m.host.join(state.clock);
        return m.dead;
    });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    return with_event(start, [&](machine& m, guard&, CUevent_st& first) -> cudaError_t {
        const auto found = m.events.find(end);
        if (found == m.events.end()) return cudaErrorInvalidResourceHandle;
        const CUevent_st& second = *found->second;
        if (((first.flags | second.flags) & cudaEventDisableTiming) != 0 || !first.state.stream ||
            !second.state.stream) {
            return cudaErrorInvalidResourceHandle;
        }
        if (!reached(first.state) || !reached(second.state)) return cudaErrorNotReady;
        *milliseconds = std::chrono::duration<float, std::milli>(*second.state.reached - *first.state.reached).count();
        return cudaSuccess;
    });
}

}  // extern "C"
