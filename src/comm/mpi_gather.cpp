// The all-gather over MPI (mpi_gather.hpp).
#include "comm/mpi_gather.hpp"

#include <cstddef>
#include <cstring>

#include "comm/chunks.hpp"
#include "core/error.hpp"

namespace zero::comm {

namespace {

void receive_from(int peer, const landing& where, MPI_Comm comm, int tag, std::int64_t largest_count,
                  request_set& posted) {
    const chunks parts{where.bytes, largest_count};
    for (std::int64_t k = 0; k < parts.number(); ++k) {
        check(MPI_Irecv(static_cast<std::byte*>(where.data) + parts.first(k), static_cast<int>(parts.count(k)),
                        MPI_BYTE, peer, tag, comm, posted.add()),
              "MPI_Irecv");
    }
}

std::int64_t send_to(int peer, const void* data, std::int64_t bytes, MPI_Comm comm, int tag, std::int64_t largest_count,
                     request_set& posted) {
    const chunks parts{bytes, largest_count};
    for (std::int64_t k = 0; k < parts.number(); ++k) {
        check(MPI_Isend(static_cast<const std::byte*>(data) + parts.first(k), static_cast<int>(parts.count(k)),
                        MPI_BYTE, peer, tag, comm, posted.add()),
              "MPI_Isend");
    }
    return bytes;
}

}  // namespace

std::int64_t post_gather(MPI_Comm comm, const all_gather_request& what, int tag, std::int64_t largest_count,
                         request_set& posted) {
    int rank = 0, ranks = 0;
    check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
    const bool receives = what.root < 0 || what.root == rank;
    for (int step = 1; step < ranks && receives; ++step) {
        const int peer = (rank + ranks - step) % ranks;
        receive_from(peer, what.landings[static_cast<std::size_t>(peer)], comm, tag, largest_count, posted);
    }
    // The copy comes first and is what leaves: it is in the caches when the peers read it.
    const landing& mine = what.landings[static_cast<std::size_t>(rank)];
    const void* leaves = receives ? mine.data : what.own;
    if (leaves != what.own && mine.bytes > 0) std::memcpy(mine.data, what.own, static_cast<std::size_t>(mine.bytes));
    std::int64_t sent = 0;
    for (int step = 1; step < ranks; ++step) {
        const int peer = (rank + step) % ranks;  // everyone starts with another peer
        if (what.root >= 0 && what.root != peer) continue;
        sent += send_to(peer, leaves, what.own_bytes, comm, tag, largest_count, posted);
    }
    return sent;
}

}  // namespace zero::comm
