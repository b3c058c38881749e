// The few verbs by which ranks talk. Siblings behind this interface: self.cpp (one rank, no MPI call), mpi.cpp, node_shared.cpp,
// on top of these hierarchical.cpp, device_ranks.cpp and background.cpp. Start and finish are separate, so that overlap is free.
// Not here: what is sent when (stage/), and how ranks agree on errors (core/agreement.hpp).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/crew.hpp"
#include "core/ledger.hpp"
#include "device/memory.hpp"
#include "partition/layout.hpp"
#include "tensor/dtype.hpp"

namespace zero {
class exact_vector;
class node_memory;
namespace compute {
class processor;
}
}

namespace zero::comm {

// Something under way. Dropping an unfinished operation is allowed only after an error: it cancels what it can.
class operation {
public:
    virtual ~operation() = default;
    virtual bool progress() = 0;  // never waits; true when done
    virtual void finish() = 0;    // waits until done; errors are thrown here
};

// Sum over all ranks: in rank order inside each node, then over the nodes in their order (all ranks in rank order where
// there is one node, or one rank on each). The order follows from nodes() alone, never from the way that contributions
// take. Every rank keeps its own slice.
struct reduce_scatter_request {
    const void* source = nullptr;  // the whole bucket, `ranks * slice` elements of sum_type, slot after slot; in the
                                   // node's memory, where the communicator shares some
    dtype sum_type = dtype::f32;   // f32 or f64
    dtype travel_type = dtype::f32;// this rank's contribution goes over the wire in this type (ranks may differ:
                                   // receivers tell from the length); the own contribution is not rounded
    bool short_source = false;     // source holds elements of travel_type instead; then target lies outside of it
    dtype short_type = dtype::f32; // bf16 or f16: what contributions of 2 bytes per element are. Needed where others
                                   // may send such although the own travel_type is wider; f32: none is expected
    std::int64_t slice = 0;        // elements per slot
    void* target = nullptr;        // `slice` elements of sum_type; may be the own slot inside source
    bool add = false;              // target += sum instead of target = sum
    bool exact = false;            // nothing is rounded but the sum, once, so no order shows (tensor/exact_vector.hpp); without add
    exact_vector* running = nullptr;  // with exact: these sums of `slice` elements take the contributions (`add`: on top of
                                   // what they hold). Only with `finished` they are then rounded into target, while in cache
    // Called for ranges of target as soon as they are final, while they are in cache, each by the member of the crew that
    // summed it, with the address of the sums. May be empty.
    std::function<void(int member, std::int64_t first, std::int64_t count, void* sums)> finished{};
    bool passing = false;          // nobody but `finished` wants the sums, while it looks: they need not be written to target
};

struct landing {                   // where one rank's bytes arrive
    void* data = nullptr;
    std::int64_t bytes = 0;
};

struct all_gather_request {
    const void* own = nullptr;             // this rank's bytes; may be landings[rank].data (then nothing is copied)
    std::int64_t own_bytes = 0;
    std::vector<landing> landings;         // one per rank, the byte counts known to all; data may be null on a rank
                                           // that is not a receiver
    int root = -1;                         // -1: everyone receives; else only that rank
    bool visible = false;                  // on every rank, `own` lies in the node's memory, if there is such
    bool on_host = false;                  // all of it lies in host memory, wherever else values lie
    bool once = false;                     // the landings are places in the node's memory, the same for all of its ranks,
                                           // and `own` is at its own: a fence() of all ranks afterwards makes it known
};

inline dtype source_type(const reduce_scatter_request& what) noexcept {
    return what.short_source ? what.travel_type : what.sum_type;
}

enum class combine { sum, maximum };

class communicator {
public:
    virtual ~communicator() = default;
    virtual int rank() const noexcept = 0;
    virtual int size() const noexcept = 0;
    virtual const partition::topology& nodes() const noexcept = 0;

    // Reductions are started in the same order on all ranks; likewise gathers. The two orders are independent.
    virtual std::unique_ptr<operation> start_reduce_scatter(reduce_scatter_request what) = 0;
    virtual std::unique_ptr<operation> start_all_gather(all_gather_request what) = 0;

    // Blocking, small.
    virtual void all_reduce(std::span<std::int64_t> values, combine how) = 0;
    virtual void broadcast(void* data, std::int64_t bytes, int root) = 0;  // any size
    virtual std::vector<std::string> gather(const std::string& mine, int root) = 0;  // texts of all ranks, on root
    virtual std::string broadcast(const std::string& text, int root) = 0;

    // Takes the chunks of the exchange, once, at commit; the bytes equal scratch_bytes() for the same arguments.
    virtual void reserve(ledger& book, std::int64_t largest_slice_bytes) = 0;
    virtual std::int64_t scratch_bytes(std::int64_t largest_slice_bytes) const noexcept = 0;         // of host memory
    virtual std::int64_t device_scratch_bytes(std::int64_t /*largest_slice_bytes*/) const noexcept { return 0; }

    // Payload that this rank sent over MPI, and what of it went to other nodes.
    struct traffic {
        std::int64_t reduce_bytes = 0, gather_bytes = 0, off_node_bytes = 0;
        traffic& operator+=(const traffic& more) noexcept {
            reduce_bytes += more.reduce_bytes;
            gather_bytes += more.gather_bytes;
            off_node_bytes += more.off_node_bytes;
            return *this;
        }
    };
    virtual traffic sent() const noexcept { return sent_; }

    // Zeroed memory where `work` works, for what messages bring: known to whoever brings them, where that makes it faster.
    virtual buffer take_landing(compute::processor& work, ledger& book, purpose why, std::int64_t bytes);

    // Memory that all ranks of this rank's node see at the same offsets; null where there is none.
    virtual node_memory* shared() const noexcept { return nullptr; }
    virtual void fence() {}  // where memory is shared: what ranks of a node wrote there before, all of them see afterwards

    // All ranks have agreed to end, and this one has done its part: from now on its end is no death to those who still wait.
    virtual void farewell() noexcept {}

    // This rank failed in the middle of what others wait for: nothing more will come from it, and they shall hear of it.
    virtual void give_up() noexcept {}
    virtual void leaves_messages() noexcept {}  // it is never freed: what is left in it shall not reach its successor
    virtual void refuse_given_up() {}  // throws why, where that has happened

    // Threads that help with sums and copies. It outlives the operations.
    virtual void employ(crew* threads) noexcept { threads_ = threads; }

    // From now on another thread asks operations for progress while the caller computes (background.hpp), so that starting one
    // is no more than saying so. False: no other thread may.
    virtual bool start_helper() { return false; }

    // For a communicator on top of this one.
    virtual bool on_one_node() { return size() == 1; }        // collective
    // Those ranks that give the same color, in the order of their ranks, with nodes of that size. Collective.
    virtual std::unique_ptr<communicator> part(int /*color*/, int /*node_size*/) { return nullptr; }
    virtual void meanwhile(std::function<bool()> /*work*/) {}  // called in every wait, which it ends by throwing; true when it
                                                               // moved something
    enum class news { none, given_up, dead };                  // an operation, or a rank of the teller's node
    virtual void tell(news /*what*/) noexcept {}               // all other ranks
    virtual news heard() { return news::none; }                // the worst so far

protected:
    traffic sent_;
    crew* threads_ = nullptr;
};

struct mpi_options {
    int node_size = 0;                 // 0: as MPI_Comm_split_type(SHARED) finds; else ranks per node by fiat
    std::int64_t largest_count = 0;    // 0: 2^31-1; tests lower it
};

// Declared here, defined in self.cpp / mpi.cpp. `mpi` duplicates the communicator (MPI_ERRORS_RETURN on the duplicate)
// and frees it in the destructor unless MPI is finalized. The MPI_Comm travels as a pointer so that this header stays
// free of <mpi.h>.
std::unique_ptr<communicator> make_self();
std::unique_ptr<communicator> make_mpi(const void* mpi_comm, const mpi_options& options);
// make_self() for one rank, make_mpi() else. Throws code::argument for MPI_COMM_NULL and inter-communicators,
// code::state outside MPI_Init..Finalize.
std::unique_ptr<communicator> make(const void* mpi_comm, const mpi_options& options);
// The same ranks through memory that those of a node share, and over MPI between equal nodes. Where that cannot be had,
// the communicator as it was, and the reason. Collective.
std::unique_ptr<communicator> share_node(std::unique_ptr<communicator> plain, std::string& reason);
void check_communicator(const void* mpi_comm);  // throws what make() would throw; local
bool mpi_is_usable() noexcept;         // between MPI_Init and MPI_Finalize

}  // namespace zero::comm
