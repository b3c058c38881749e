// Checked MPI calls, owned handles and the search for nodes. Not here: the verbs (mpi.cpp).
#include "comm/mpi_support.hpp"

#include <string>

#include "core/error.hpp"

namespace zero::comm {

namespace {

std::string text_of(int result) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(result, text, &length) != MPI_SUCCESS) return formatted("MPI error {}", result);
    return std::string(text, static_cast<std::size_t>(length));
}

}  // namespace

void check(int result, const char* call) {
    if (result != MPI_SUCCESS) fail(code::mpi, "{} failed: {}", call, text_of(result));
}

bool every_thread_may_call() noexcept {
    int level = MPI_THREAD_SINGLE;
    return MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE;
}

split_communicator::split_communicator(MPI_Comm comm, int rank) {
    check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm_), "MPI_Comm_split_type");
}

split_communicator::split_communicator(MPI_Comm comm, int color, int rank) {
    check(MPI_Comm_split(comm, color, rank, &comm_), "MPI_Comm_split");
}

split_communicator::~split_communicator() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

own_communicator::own_communicator(MPI_Comm from) {
    check(MPI_Comm_dup(from, &comm_), "MPI_Comm_dup");
    const int result = MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    if (result != MPI_SUCCESS) {
        MPI_Comm_free(&comm_);
        check(result, "MPI_Comm_set_errhandler");
    }
}

own_communicator::~own_communicator() {
    if (comm_ != MPI_COMM_NULL && !kept_ && mpi_is_usable()) MPI_Comm_free(&comm_);
}

// One by one: an error of a set would be handled as one of MPI's world, which ends the program; that of one request is its own
// communicator's, which returns it.
bool request_set::test() {
    if (requests_.empty()) return true;
    statuses_.resize(requests_.size());
    for (; done_ < requests_.size(); ++done_) {
        int done = 0;
        check(MPI_Test(&requests_[done_], &done, &statuses_[done_]), "MPI_Test");
        if (done == 0) return false;
    }
    clear();
    return true;
}

void request_set::drop() noexcept {
    if (requests_.empty() || !mpi_is_usable()) return;
    for (MPI_Request& request : requests_) {
        if (request == MPI_REQUEST_NULL) continue;
        // A receive that is already matched cannot be cancelled; it is given a while, because it writes into our
        // memory.
        MPI_Cancel(&request);
        int done = 0;
        for (int turn = 0; turn < 1000 && done == 0; ++turn) {
            if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
            if (done == 0) std::this_thread::yield();
        }
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    clear();
}

neighbourhood ask_mpi(MPI_Comm comm) {
    int rank = 0;
    check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    neighbourhood seen;
    seen.asked = true;
    const split_communicator node(comm, rank);
    check(MPI_Comm_rank(node.get(), &seen.local), "MPI_Comm_rank");
    check(MPI_Comm_size(node.get(), &seen.on_node), "MPI_Comm_size");
    return seen;
}

neighbourhood find_nodes(MPI_Comm comm, int node_size) {
    require(node_size >= 0, code::argument, "libzero.node_size is {}: give the ranks per node, or 0 to find them",
            node_size);
    int rank = 0, ranks = 0;
    check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
    if (node_size > 0) {
        neighbourhood by_fiat;
        by_fiat.nodes = {ranks, ranks % node_size == 0 ? ranks / node_size : 1};
        by_fiat.unequal = ranks > node_size && ranks % node_size != 0;
        return by_fiat;
    }
    neighbourhood seen = ask_mpi(comm);
    // Node by node means that the local rank counts on with the rank.
    const bool regular = ranks % seen.on_node == 0 && seen.local == rank % seen.on_node;
    int mine[3] = {regular ? 0 : 1, seen.on_node, -seen.on_node}, worst[3] = {0, 0, 0};
    check(MPI_Allreduce(mine, worst, 3, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
    const bool equal_nodes = worst[0] == 0 && worst[1] == -worst[2];
    seen.nodes = {ranks, equal_nodes ? ranks / seen.on_node : 1};
    seen.unequal = !equal_nodes;
    return seen;
}

}  // namespace zero::comm
