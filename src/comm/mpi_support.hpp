// Small wrappers around MPI: every return code checked, every handle owned by one object, and the one policy of
// waiting. Not here: what is sent (exchange.cpp, mpi_gather.cpp) and the verbs (mpi.cpp).
#pragma once
#include <mpi.h>

#include <span>
#include <thread>
#include <vector>

#include "comm/communicator.hpp"

namespace zero::comm {

void check(int result, const char* call);                                 // throws code::mpi with MPI's own text
bool every_thread_may_call() noexcept;                                     // MPI_THREAD_MULTIPLE

// Some of the ranks, for a while: by MPI's choice of a node, or by color.
class split_communicator {
public:
    split_communicator(MPI_Comm comm, int rank);
    split_communicator(MPI_Comm comm, int color, int rank);
    ~split_communicator();
    split_communicator(const split_communicator&) = delete;
    split_communicator& operator=(const split_communicator&) = delete;
    MPI_Comm get() const noexcept { return comm_; }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

// A duplicate with MPI_ERRORS_RETURN, freed in the destructor unless MPI is finalized by then.
class own_communicator {
public:
    explicit own_communicator(MPI_Comm from);
    ~own_communicator();
    own_communicator(const own_communicator&) = delete;
    own_communicator& operator=(const own_communicator&) = delete;
    MPI_Comm get() const noexcept { return comm_; }
    // It is not freed: messages may be left in it, and MPI would deliver them to whoever gets its number next.
    void keep() noexcept { kept_ = true; }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
    bool kept_ = false;
};

// Polls, and gives the core away when nothing comes: the peer may need this very core.
class patience {
public:
    void rest() noexcept {
        if (++idle_ > polls) std::this_thread::yield();
    }
    void reset() noexcept { idle_ = 0; }

private:
    static constexpr int polls = 200;
    int idle_ = 0;
};

// Requests that complete together. What is unfinished in the destructor (after an error only) is cancelled where MPI
// can.
class request_set {
public:
    request_set() = default;
    ~request_set() { drop(); }
    request_set(request_set&&) = default;
    request_set& operator=(request_set&&) = delete;

    MPI_Request* add() { return &requests_.emplace_back(MPI_REQUEST_NULL); }
    bool empty() const noexcept { return requests_.empty(); }
    bool test();  // true when all are done, then statuses() holds and the set counts as finished
    std::span<const MPI_Status> statuses() const noexcept { return statuses_; }
    void clear() noexcept {  // without waiting: MPI keeps what is under way
        requests_.clear();
        done_ = 0;
    }
    void drop() noexcept;

private:
    std::vector<MPI_Request> requests_;
    std::vector<MPI_Status> statuses_;
    std::size_t done_ = 0;  // requests, from the first
};

// A tag names the kind of exchange and which one it is, so that neighbours in time never pair up. Within 0..32767,
// which every MPI has. Tests tell the kinds apart by the two lowest bits.
enum class kind : int { reduce = 0, gather = 1, text = 2, news = 3 };
constexpr int tag_of(kind which, std::int64_t sequence) noexcept {
    return static_cast<int>(sequence % 8192) * 4 + static_cast<int>(which);
}

// Nodes as MPI sees them, or by fiat; anything but equal nodes numbered one after the other is one flat node.
// Collective.
struct neighbourhood {
    partition::topology nodes;
    bool unequal = false;  // several nodes, but not equal ones numbered one after the other
    bool asked = false;  // MPI was: the rest holds
    int local = 0, on_node = 1;  // this rank among those of its node, and how many these are
};
neighbourhood ask_mpi(MPI_Comm comm);  // only what MPI sees. Collective
neighbourhood find_nodes(MPI_Comm comm, int node_size);

}  // namespace zero::comm
