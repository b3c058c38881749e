// What the emulation knows: one object per process, one lock. Not here: the functions that change it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "arena.hpp"
#include "control.hpp"

namespace zero_emulation {

using moment = std::chrono::steady_clock::time_point;
using guard = std::unique_lock<std::mutex>;

// How far each stream has come, as somebody knows it: at[s] operations of stream s are done.
class vector_clock {
public:
    std::uint64_t of(std::size_t stream) const { return stream < at_.size() ? at_[stream] : 0; }
    void set(std::size_t stream, std::uint64_t number);
    void join(const vector_clock& other);

private:
    std::vector<std::uint64_t> at_;
};

using call_site = std::vector<void*>;  // return addresses, innermost first

struct access {
    std::uintptr_t begin, end;
    bool write;
    std::size_t stream;
    std::uint64_t number;
    std::string what;
    call_site where;
};

struct allocation {
    enum class kind { device, pool, nccl, managed, pinned, registered };
    kind what;
    std::uintptr_t begin;
    std::size_t bytes;
    int device;
    unsigned flags;
    cudaMemPool_t pool;
    bool freed = false;  // given back in the order of a stream, not gone yet
    std::uintptr_t room = 0;
    std::size_t room_bytes = 0;  // of the arena, or of the mapping of pinned memory
    std::vector<access> history;
    call_site where;

    bool on_device() const { return what == kind::device || what == kind::pool || what == kind::nccl; }
    std::uintptr_t end() const { return begin + bytes; }
};
const char* name_of(allocation::kind what);

struct dependency {
    std::shared_ptr<CUstream_st> stream;
    std::uint64_t number;
};

struct operation {
    std::string what;
    std::vector<dependency> after;
    std::function<bool()> run;  // false: not finished, ask again
    std::vector<range> ranges;  // device addresses
    moment not_before;
    call_site where;
    bool even_when_dead = false;  // done after the device died, too
};

struct event_state {
    std::shared_ptr<CUstream_st> stream;  // null: never recorded
    std::uint64_t number = 0;
    vector_clock clock;
    std::shared_ptr<moment> reached;
};

struct machine {
    std::mutex door;
    std::condition_variable changed;

    arena memory;
    std::map<std::uintptr_t, std::shared_ptr<allocation>> allocations;  // by begin
    std::map<std::uintptr_t, std::shared_ptr<allocation>> graves;       // device memory given back
    std::int64_t device_bytes = 0, pinned_bytes = 0;
    std::int64_t device_limit = 0, pinned_limit = 0;

    std::vector<std::shared_ptr<CUstream_st>> streams;  // with something to do, or not destroyed
    std::map<int, std::shared_ptr<CUstream_st>> legacy, per_thread;
    std::map<cudaEvent_t, std::shared_ptr<CUevent_st>> events;
    std::map<cudaMemPool_t, std::shared_ptr<CUmemPoolHandle_st>> pools;
    std::map<int, cudaMemPool_t> default_pool, current_pool;
    std::vector<ncclComm_t> communicators;
    std::size_t streams_made = 0;
    vector_clock host;
    std::mt19937_64 random;
    int delay = 300;
    int waiters = 0;
    bool worker_runs = false;

    driver drivers = driver::present;
    int devices = 4;
    int node = 0;
    cudaError_t dead = cudaSuccess;
    counters counted;
    std::int64_t fail_cuda = 0, fail_nccl = 0, fail_operation = 0, fail_later = 0;  // calls until then; 0: never
    cudaError_t cuda_error = cudaErrorUnknown, operation_error = cudaErrorIllegalAddress;
    ncclResult_t nccl_error = ncclSystemError, later_error = ncclRemoteError;
    int collectors = 0;
    std::vector<std::string> problems;
};
machine& the_machine();

// Said and fatal, or collected.
void problem(machine& m, const std::string& text);
call_site here();
std::string to_text(const call_site& where);

}  // namespace zero_emulation

struct CUstream_st {
    std::size_t id = 0;
    unsigned flags = 0;
    int priority = 0;
    int device = 0;
    bool destroyed = false, running = false;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    std::deque<zero_emulation::operation> waiting;
    std::uint64_t enqueued = 0, done = 0;
    zero_emulation::vector_clock clock;  // of the last one enqueued
    zero_emulation::moment asleep_until;
    int polls = 0;
};
struct CUevent_st {
    unsigned flags = 0;
    zero_emulation::event_state state;
    zero_emulation::call_site where;
};
struct CUmemPoolHandle_st {
    int device = 0;
    std::uint64_t threshold = 0, used = 0, used_high = 0;
};
struct CUgraph_st {};
