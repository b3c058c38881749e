// Groups, collectives and messages of the emulated NCCL, in the order of streams. Not here: communicators, arithmetic.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "memory.hpp"
#include "nccl_state.hpp"
#include "queue.hpp"

namespace zero_emulation {
namespace {

struct task {
    ncclComm_t on;
    cudaStream_t stream;
    verb what;
    const void* send;
    void* receive;
    std::size_t count;
    ncclDataType_t type;
    ncclRedOp_t operation;
    int root;  // of a message: the other rank
    // Set later.
    std::uint64_t number = 0;
    int phase = 0;  // 0: to be said, 1: waits for the others, 2: has what it needs, 3: done
    std::vector<std::byte> result;
};

struct {
    int depth;
    ncclResult_t error;
    std::vector<task> tasks;
    std::vector<ncclComm*> made;
} thread_local group;

bool is_message(verb what) {
    return what == verb::send || what == verb::receive;
}

std::vector<std::byte> read_from(int file, std::int64_t offset, std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    std::size_t done = 0;
    while (done < bytes) {
        const auto got =
            ::pread(file, data.data() + done, bytes - done, static_cast<off_t>(offset) + static_cast<off_t>(done));
        if (got <= 0) break;
        done += static_cast<std::size_t>(got);
    }
    return data;
}

std::int64_t offset_of(machine& m, const void* place) {
    return place == nullptr ? -1 : m.memory.offset(reinterpret_cast<std::uintptr_t>(place));
}

// Nothing comes from a rank that is gone, or gave up.
void look_for_trouble(ncclComm& on, int other) {
    if (on.shared->ranks[other].aborted != 0 || !is_alive(on, other)) on.error = ncclRemoteError;
}

bool all_at(ncclComm& on, std::uint64_t number, std::atomic<std::uint64_t> shared_rank::*counter) {
    for (int r = 0; r < on.ranks; ++r) {
        if ((on.shared->ranks[r].*counter).load() >= number) continue;
        look_for_trouble(on, r);
        return false;
    }
    return true;
}

bool agree(const ncclComm& on, const task& mine) {
    for (int r = 0; r < on.ranks; ++r) {
        const collective_call& other = on.shared->ranks[r].calls[mine.number % 4];
        if (other.what != mine.what || other.type != mine.type || other.count != mine.count ||
            other.root != mine.root || other.operation != mine.operation) {
            return false;
        }
    }
    return true;
}

void take_in(task& mine) {
    const ncclComm& on = *mine.on;
    const std::size_t bytes = mine.count * size_of(mine.type);
    const auto piece_of = [&](int rank, std::size_t index) {
        const auto& call = on.shared->ranks[rank].calls[mine.number % 4];
        return read_from(on.device_files[rank], call.offset + static_cast<std::int64_t>(index * bytes), bytes);
    };
    if (mine.what == verb::broadcast) {
        mine.result = piece_of(mine.root, 0);
        return;
    }
    if (mine.what == verb::reduce && on.rank != mine.root) return;
    std::vector<std::vector<std::byte>> inputs;
    for (int r = 0; r < on.ranks; ++r) {
        inputs.push_back(piece_of(r, mine.what == verb::reduce_scatter ? static_cast<std::size_t>(on.rank) : 0));
    }
    if (mine.what == verb::all_gather) {
        for (const auto& each : inputs) mine.result.insert(mine.result.end(), each.begin(), each.end());
    } else {
        mine.result.resize(bytes);
        combine(mine.type, mine.operation, inputs, mine.result.data());
    }
}

void put(machine& m, const task& mine) {
    if (mine.result.empty() || mine.receive == nullptr) return;
    std::memcpy(bytes_at(m, reinterpret_cast<std::uintptr_t>(mine.receive)), mine.result.data(), mine.result.size());
}

bool trips(machine& m, ncclComm& on) {
    const guard lock(m.door);
    if (m.fail_later == 0 || --m.fail_later > 0) return false;
    on.error = m.later_error;
    return true;
}

void step_collective(machine& m, task& mine) {
    ncclComm& on = *mine.on;
    shared_rank& me = on.shared->ranks[on.rank];
    if (mine.phase == 0) {
        if (trips(m, on)) return;
        me.calls[mine.number % 4] = {mine.what, mine.type,  mine.operation,
                                     mine.root, mine.count, offset_of(m, mine.send)};
        me.posted = mine.number;
        mine.phase = 1;
    }
    if (mine.phase == 1) {
        if (!all_at(on, mine.number, &shared_rank::posted)) return;
        if (!agree(on, mine)) {
            on.error = ncclInvalidUsage;
            return;
        }
        take_in(mine);
        me.read = mine.number;
        mine.phase = 2;
    }
    if (mine.phase == 2 && all_at(on, mine.number, &shared_rank::read)) {
        put(m, mine);
        mine.phase = 3;
    }
}

void step_message(machine& m, task& mine) {
    ncclComm& on = *mine.on;
    const bool sends = mine.what == verb::send;
    channel& way = sends ? on.shared->channels[on.rank][mine.root] : on.shared->channels[mine.root][on.rank];
    const std::size_t bytes = mine.count * size_of(mine.type);
    if (sends) {
        if (mine.phase == 0 && way.received == mine.number - 1) {
            way.what = {offset_of(m, mine.send), bytes};
            way.sent = mine.number;
            mine.phase = 1;
        }
        if (mine.phase == 1 && way.received >= mine.number) mine.phase = 3;
    } else if (way.sent >= mine.number) {
        if (way.what.bytes != bytes) {
            on.error = ncclInvalidUsage;
            return;
        }
        mine.result = read_from(on.device_files[mine.root], way.what.offset, bytes);
        put(m, mine);
        way.received = mine.number;
        mine.phase = 3;
    }
    if (mine.phase != 3) look_for_trouble(on, mine.root);
}

bool run(machine& m, ncclComm& on, std::vector<task>& tasks) {
    bool finished = true, collectives_wait = false;
    cudaError_t dead;
    {
        const guard lock(m.door);
        dead = m.dead;
    }
    if (!on.aborted && dead == cudaSuccess) {
        for (task& each : tasks) {
            if (each.phase == 3) continue;
            if (on.error == ncclSuccess) {
                if (is_message(each.what))
                    step_message(m, each);
                else if (!collectives_wait)
                    step_collective(m, each);
            }
            collectives_wait = collectives_wait || (each.phase != 3 && !is_message(each.what));
            finished = finished && each.phase == 3;
        }
    }
    if (finished) --on.pending;
    return finished;
}

const char* name_of(verb what) {
    constexpr const char* names[] = {"ncclAllGather", "ncclReduceScatter", "ncclAllReduce", "ncclBroadcast",
                                     "ncclReduce",    "ncclSend",          "ncclRecv"};
    return names[static_cast<int>(what)];
}

void declare(const task& what, std::vector<range>& ranges) {
    const std::size_t bytes = what.count * size_of(what.type), all = bytes * static_cast<std::size_t>(what.on->ranks);
    const bool is_root = what.on->rank == what.root;
    const std::size_t sent = what.what == verb::reduce_scatter ? all : bytes;
    const std::size_t received = what.what == verb::all_gather ? all : bytes;
    if (what.what != verb::receive && (what.what != verb::broadcast || is_root))
        ranges.push_back({what.send, sent, use::read});
    if (what.what != verb::send && (what.what != verb::reduce || is_root))
        ranges.push_back({what.receive, received, use::write});
}

ncclResult_t check(machine& m, const task& what) {
    if (!is_known(m, what.on) || !what.on->ready) return ncclInvalidArgument;
    if (what.on->error != ncclSuccess) return what.on->error;
    if (what.on->hesitates) {
        problem(m, "a communicator is used before ncclCommGetAsyncError said that it is no longer in progress\n" +
                       to_text(here()));
        return ncclInvalidUsage;
    }
    if (size_of(what.type) == 0 || what.root < 0 || what.root >= what.on->ranks) return ncclInvalidArgument;
    if (is_message(what.what) && what.root == what.on->rank && what.on->ranks == 1) return ncclInvalidUsage;
    std::vector<range> ranges;
    declare(what, ranges);
    for (const range& each : ranges) {
        const auto owner = around(m, each.data, each.bytes, name_of(what.what));
        if (each.bytes > 0 && (!owner || !owner->on_device())) return ncclInvalidArgument;
    }
    return ncclSuccess;
}

// One operation for what a group does on one communicator and stream.
ncclResult_t issue(machine& m, std::vector<task> tasks) {
    ncclComm& on = *tasks[0].on;
    const auto stream = stream_of(m, tasks[0].stream);
    if (!stream) return ncclInvalidArgument;
    operation what{name_of(tasks[0].what), {}, {}, {}, {}, here(), true};
    for (task& each : tasks) {
        declare(each, what.ranges);
        if (is_message(each.what))
            each.number = ++(each.what == verb::send ? on.sends : on.receives)[each.root];
        else
            each.number = ++on.collectives;
        ++(is_message(each.what) ? m.counted.sends : m.counted.collectives);
        if (each.what == verb::send) m.counted.sent_bytes += static_cast<std::int64_t>(each.count * size_of(each.type));
    }
    if (on.last.stream) what.after.push_back(on.last);
    const auto shared = std::make_shared<std::vector<task>>(std::move(tasks));
    what.run = [&m, &on, shared] { return run(m, on, *shared); };
    ++on.pending;
    if (enqueue(m, stream, std::move(what)) != cudaSuccess) {
        --on.pending;
        return ncclInvalidUsage;  // the stream is being captured
    }
    on.last = {stream, stream->enqueued};
    if (on.blocking || m.random() % 4 != 0) return ncclSuccess;
    on.hesitates = true;
    return ncclInProgress;
}

ncclResult_t issue_all(machine& m, std::vector<task> tasks) {
    ncclResult_t result = ncclSuccess;
    while (!tasks.empty()) {
        const task first = tasks[0];
        const auto same = [&](const task& each) { return each.on == first.on && each.stream == first.stream; };
        const auto rest = std::stable_partition(tasks.begin(), tasks.end(), same);
        std::vector<task> now(tasks.begin(), rest);
        tasks.erase(tasks.begin(), rest);
        const ncclResult_t one = issue(m, std::move(now));
        if (one != ncclSuccess && (result == ncclSuccess || result == ncclInProgress)) result = one;
    }
    return result;
}

ncclResult_t add(task what) {
    const ncclResult_t result = nccl_call([&](machine& m, guard&) -> ncclResult_t {
        if (const ncclResult_t error = check(m, what); error != ncclSuccess) return error;
        if (what.count == 0) return ncclSuccess;
        if (group.depth == 0) return issue_all(m, {what});
        group.tasks.push_back(std::move(what));
        return ncclSuccess;
    });
    if (group.depth > 0 && result != ncclSuccess && group.error == ncclSuccess) group.error = result;
    return result;
}

}  // namespace

bool in_group() {
    return group.depth > 0;
}
void join_group(ncclComm* made) {
    group.made.push_back(made);
}

}  // namespace zero_emulation

using namespace zero_emulation;

extern "C" {

ncclResult_t ncclGroupStart() {
    return nccl_call([](machine&, guard&) {
        ++group.depth;
        return ncclSuccess;
    });
}

ncclResult_t ncclGroupEnd() {
    if (group.depth == 0) return ncclInvalidUsage;
    if (--group.depth > 0) return nccl_call([](machine&, guard&) { return ncclSuccess; });
    std::vector<task> tasks = std::move(group.tasks);
    const std::vector<ncclComm*> made = std::move(group.made);
    const ncclResult_t before = std::exchange(group.error, ncclSuccess);
    group.tasks.clear();
    group.made.clear();
    return nccl_call([&](machine& m, guard& lock) -> ncclResult_t {
        if (before != ncclSuccess) return before;
        std::vector<ncclComm*> blocking;
        std::copy_if(made.begin(), made.end(), std::back_inserter(blocking),
                     [](const ncclComm* each) { return each->blocking; });
        if (const ncclResult_t error = wait_ready(m, lock, blocking); error != ncclSuccess) return error;
        const ncclResult_t result = issue_all(m, std::move(tasks));
        return result == ncclSuccess && blocking.size() < made.size() ? ncclInProgress : result;
    });
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t on,
                           cudaStream_t stream) {
    return add({on, stream, verb::all_gather, send, receive, count, type, ncclSum, 0, 0, 0, {}});
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t on, cudaStream_t stream) {
    return add({on, stream, verb::reduce_scatter, send, receive, count, type, operation, 0, 0, 0, {}});
}
ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t on, cudaStream_t stream) {
    return add({on, stream, verb::all_reduce, send, receive, count, type, operation, 0, 0, 0, {}});
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t on,
                           cudaStream_t stream) {
    return add({on, stream, verb::broadcast, send, receive, count, type, ncclSum, root, 0, 0, {}});
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                        int root, ncclComm_t on, cudaStream_t stream) {
    return add({on, stream, verb::reduce, send, receive, count, type, operation, root, 0, 0, {}});
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t on,
                      cudaStream_t stream) {
    return add({on, stream, verb::send, send, nullptr, count, type, ncclSum, peer, 0, 0, {}});
}
ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t on, cudaStream_t stream) {
    return add({on, stream, verb::receive, nullptr, receive, count, type, ncclSum, peer, 0, 0, {}});
}

}  // extern "C"
