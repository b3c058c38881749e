// Communicators of the emulated NCCL: made among processes, or inside of one, through a file that rank 0 (of a split:
// the first of its part) makes. Not here: the functions themselves (nccl_calls.cpp), operations (nccl_operations.cpp).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "nccl_state.hpp"
#include "queue.hpp"

#ifndef F_OFD_SETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

namespace zero_emulation {
namespace {

int open_of(std::int64_t process, std::int64_t file) {
    const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
    return ::open(path.c_str(), O_RDWR | O_CLOEXEC);
}

struct flock lock_on(int rank) {
    struct flock one {};
    one.l_type = F_WRLCK;
    one.l_whence = SEEK_SET;
    one.l_start = rank;
    one.l_len = 1;
    return one;
}

// Opens the file that the id names, says that this rank is there and where its device memory is.
void join(machine& m, ncclComm& what) {
    what.file = open_of(what.file_process, what.file_number);
    void* place = what.file < 0
                      ? MAP_FAILED
                      : ::mmap(nullptr, sizeof(shared_communicator), PROT_READ | PROT_WRITE, MAP_SHARED, what.file, 0);
    struct flock lock = lock_on(what.rank);
    if (place == MAP_FAILED || ::fcntl(what.file, F_OFD_SETLK, &lock) != 0) {
        what.error = ncclSystemError;
        return;
    }
    what.shared = static_cast<shared_communicator*>(place);
    shared_rank& mine = what.shared->ranks[what.rank];
    if (what.shared->token != what.token || mine.joined != 0) {
        what.error = ncclInvalidUsage;  // another file, or a rank that exists twice
        return;
    }
    mine.process = ::getpid();
    mine.device_file = m.memory.file();
    mine.device = what.device;
    mine.node = m.node;
    mine.joined = 1;
}

// Splits: once every rank of the parent has said its color, who is in this part, and whose file it uses.
void find_part(ncclComm& what) {
    ncclComm& parent = *what.parent;
    struct member {
        int key, rank;
    };
    std::vector<member> members;
    const split_call mine = parent.shared->ranks[parent.rank].splits[what.split_number % 2];
    for (int r = 0; r < parent.ranks; ++r) {
        const shared_rank& other = parent.shared->ranks[r];
        if (other.split < what.split_number) {
            if (!is_alive(parent, r) || other.aborted != 0) what.error = ncclRemoteError;
            return;
        }
        const split_call& call = other.splits[what.split_number % 2];
        if (call.color == mine.color) members.push_back({call.key, r});
    }
    std::stable_sort(members.begin(), members.end(), [](const member& a, const member& b) { return a.key < b.key; });
    what.ranks = static_cast<int>(members.size());
    for (int i = 0; i < what.ranks; ++i) {
        if (members[static_cast<std::size_t>(i)].rank == parent.rank) what.rank = i;
    }
    const split_call& leader = parent.shared->ranks[members[0].rank].splits[what.split_number % 2];
    what.file_process = leader.process;
    what.file_number = leader.file;
    what.token = leader.token;
    what.parent = nullptr;
}

// NCCL refuses two ranks on one device ("Duplicate GPU detected").
bool shares_a_device(const ncclComm& what) {
    for (int a = 0; a < what.ranks; ++a) {
        for (int b = 0; b < a; ++b) {
            const shared_rank &one = what.shared->ranks[a], &other = what.shared->ranks[b];
            if (one.device == other.device && one.node == other.node) return true;
        }
    }
    return false;
}

}  // namespace

bool is_alive(const ncclComm& of, int rank) {
    struct flock lock = lock_on(rank);
    return rank == of.rank || of.shared == nullptr || of.shared->ranks[rank].joined == 0 ||
           ::fcntl(of.file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool is_known(machine& m, ncclComm_t what) {
    return std::find(m.communicators.begin(), m.communicators.end(), what) != m.communicators.end();
}

void advance(machine& m, ncclComm& what) {
    if (what.ready || what.error != ncclSuccess) return;
    if (what.parent != nullptr) find_part(what);
    if (what.parent != nullptr || what.error != ncclSuccess) return;
    if (what.shared == nullptr) join(m, what);
    if (what.error != ncclSuccess) return;
    for (int r = 0; r < what.ranks; ++r) {
        if (what.shared->ranks[r].joined != 0) continue;
        // Who gave up after everybody had come is found by the first operation.
        for (int other = 0; other < what.ranks; ++other) {
            if (what.shared->ranks[other].aborted != 0) what.error = ncclRemoteError;
        }
        return;
    }
    if (shares_a_device(what)) {
        what.error = ncclInvalidUsage;
        return;
    }
    for (int r = 0; r < what.ranks; ++r) {
        what.device_files[r] = open_of(what.shared->ranks[r].process, what.shared->ranks[r].device_file);
        if (what.device_files[r] < 0) what.error = ncclRemoteError;
    }
    if (what.own_file >= 0) ::close(what.own_file);  // all have opened it
    what.own_file = -1;
    what.ready = what.error == ncclSuccess;
}

ncclResult_t wait_ready(machine& m, guard& lock, const std::vector<ncclComm*>& what) {
    const moment latest = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (;;) {
        bool all = true;
        for (ncclComm* each : what) {
            advance(m, *each);
            if (each->error != ncclSuccess) return each->error;
            all = all && each->ready;
        }
        if (all) return ncclSuccess;
        if (std::chrono::steady_clock::now() > latest) return ncclSystemError;
        lock.unlock();
        ::usleep(50);
        lock.lock();
    }
}

}  // namespace zero_emulation

using namespace zero_emulation;

namespace {

struct id_content {
    std::int64_t process, file;
    std::uint64_t token;
};
static_assert(sizeof(id_content) <= NCCL_UNIQUE_ID_BYTES);

// A file for a communicator that may come; -1: none.
int make_file(std::uint64_t token) {
    const int file = ::memfd_create("zero_emulated_communicator", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, sizeof(shared_communicator)) != 0) return -1;
    void* place = ::mmap(nullptr, sizeof(shared_communicator), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) return -1;
    new (place) shared_communicator{};
    static_cast<shared_communicator*>(place)->token = token;
    ::munmap(place, sizeof(shared_communicator));
    return file;
}

std::uint64_t new_token() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    static std::atomic<std::uint64_t> count{0};
    return static_cast<std::uint64_t>(now) ^ (static_cast<std::uint64_t>(::getpid()) << 40) ^ ++count;
}

std::map<std::uint64_t, int>& files_of_ids() {  // not used by a communicator yet
    static std::map<std::uint64_t, int> files;
    return files;
}

// Not in the books any more; the lock is held.
void close(ncclComm* gone) {
    if (gone->ready) {
        for (int r = 0; r < gone->ranks; ++r) ::close(gone->device_files[r]);
    }
    if (gone->shared != nullptr) ::munmap(gone->shared, sizeof(shared_communicator));
    if (gone->file >= 0) ::close(gone->file);
    if (gone->own_file >= 0) ::close(gone->own_file);
    delete gone;
}

ncclResult_t start(machine& m, guard& lock, ncclComm* made, ncclComm_t* place, const ncclConfig_t* config) {
    made->device = current_device();
    made->blocking = config == nullptr || config->blocking != 0;  // undefined: blocking
    made->where = here();
    m.communicators.push_back(made);
    *place = made;
    advance(m, *made);
    if (in_group()) {
        join_group(made);
        return ncclSuccess;
    }
    if (!made->blocking) return made->error == ncclSuccess ? ncclInProgress : made->error.load();
    const ncclResult_t result = wait_ready(m, lock, {made});
    if (result == ncclSuccess) return result;
    std::erase(m.communicators, made);
    close(made);
    *place = nullptr;
    return result;
}

ncclResult_t end(machine& m, guard& lock, ncclComm_t what, bool abort) {
    if (!is_known(m, what)) {
        problem(m, std::string(abort ? "ncclCommAbort" : "ncclCommDestroy") + " of what is no communicator\n" +
                       to_text(here()));
        return ncclInvalidArgument;
    }
    for (ncclComm_t each : m.communicators) {
        if (each->parent == what) each->error = ncclInvalidUsage, each->parent = nullptr;
    }
    if (abort || what->error != ncclSuccess || !what->ready) {
        what->aborted = true;
        if (what->shared != nullptr) what->shared->ranks[what->rank].aborted = 1;
    }
    wait_until(m, lock, "the end of a communicator's operations", [&] { return what->pending == 0; });
    if (!abort && !what->registrations.empty())
        problem(m, "a communicator is destroyed with registered buffers\n" + to_text(here()));
    std::erase(m.communicators, what);
    close(what);
    return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    return nccl_call([&](machine&, guard&) -> ncclResult_t {
        const std::uint64_t token = new_token();
        const int file = make_file(token);
        if (file < 0) return ncclSystemError;
        files_of_ids()[token] = file;
        const id_content content{::getpid(), file, token};
        std::memset(id, 0, sizeof *id);
        std::memcpy(id->internal, &content, sizeof content);
        return ncclSuccess;
    });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* place, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
    return nccl_call([&](machine& m, guard& lock) -> ncclResult_t {
        *place = nullptr;
        if (ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks) return ncclInvalidArgument;
        id_content content;
        std::memcpy(&content, id.internal, sizeof content);
        auto* made = new ncclComm;
        made->rank = rank;
        made->ranks = ranks;
        made->file_process = content.process;
        made->file_number = content.file;
        made->token = content.token;
        if (rank == 0) {
            const auto own = files_of_ids().find(content.token);
            if (own != files_of_ids().end()) {
                made->own_file = own->second;
                files_of_ids().erase(own);
            }
        }
        return start(m, lock, made, place, config);
    });
}
ncclResult_t ncclCommInitRank(ncclComm_t* place, int ranks, ncclUniqueId id, int rank) {
    return ncclCommInitRankConfig(place, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* place, ncclConfig_t* config) {
    return nccl_call([&](machine& m, guard& lock) -> ncclResult_t {
        *place = nullptr;
        if (!is_known(m, parent) || !parent->ready || parent->error != ncclSuccess) return ncclInvalidArgument;
        const std::uint64_t number = ++parent->splits, token = new_token();
        const int file = make_file(token);
        if (file < 0) return ncclSystemError;
        shared_rank& mine = parent->shared->ranks[parent->rank];
        mine.splits[number % 2] = {color, key, ::getpid(), file, token};
        mine.split = number;
        if (color == NCCL_SPLIT_NOCOLOR) {
            ::close(file);
            return ncclSuccess;
        }
        auto* made = new ncclComm;
        made->parent = parent;
        made->split_number = number;
        made->own_file = file;
        ncclConfig_t inherited = NCCL_CONFIG_INITIALIZER;
        inherited.blocking = parent->blocking ? 1 : 0;
        return start(m, lock, made, place, config != nullptr ? config : &inherited);
    });
}

ncclResult_t ncclCommFinalize(ncclComm_t what) {
    return nccl_call([&](machine& m, guard& lock) -> ncclResult_t {
        if (!is_known(m, what)) return ncclInvalidArgument;
        what->finalizing = true;
        if (!what->blocking && what->pending > 0) return ncclInProgress;
        wait_until(m, lock, "ncclCommFinalize", [&] { return what->pending == 0 || what->error != ncclSuccess; });
        return what->error;
    });
}
ncclResult_t ncclCommDestroy(ncclComm_t what) {
    return nccl_call([&](machine& m, guard& lock) { return end(m, lock, what, false); }, when_failing::release);
}
ncclResult_t ncclCommAbort(ncclComm_t what) {
    return nccl_call([&](machine& m, guard& lock) { return end(m, lock, what, true); }, when_failing::release);
}

}  // extern "C"
