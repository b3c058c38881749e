// The reduce-scatter over MPI: point to point, in chunks, summed by the owner of each slice in the one order
// (nested_sum.hpp). All reductions in flight form one stream of chunks that passes through the same few scratch lanes,
// first come first served. Not here: which buckets are reduced when (stage/), the sum itself (tensor/vector.hpp).
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "comm/chunks.hpp"
#include "comm/mpi_support.hpp"
#include "device/memory.hpp"

namespace zero::comm {

class exchange {
public:
    // `sent` counts the payload bytes; it outlives the exchange, as does the communicator.
    exchange(MPI_Comm comm, const partition::topology& nodes, std::int64_t largest_count, communicator::traffic& sent);

    // One reduce-scatter on its way.
    struct reduction {
        reduce_scatter_request what;
        int tag = 0;
        chunks parts;                            // of the slice, in elements
        std::int64_t received = 0, sent = 0;     // chunks whose transfers were started
        std::int64_t summed = 0, delivered = 0;  // chunks that are done with
        std::exception_ptr error;
        bool done() const noexcept { return summed == parts.number() && delivered == parts.number(); }
    };

    std::shared_ptr<reduction> start(reduce_scatter_request what);
    bool progress() noexcept;                // never waits; true when something moved. Errors wait in the reductions
    void abandon(const char* why) noexcept;  // cancels all that is under way; later reductions are refused
    void reserve(ledger& book, std::int64_t largest_slice_bytes);
    void employ(crew* threads) noexcept { threads_ = threads; }  // for sums and conversions
    std::int64_t scratch_bytes(std::int64_t largest_slice_bytes) const noexcept;

private:
    static constexpr std::size_t lanes = 2;  // one chunk is summed while the next one travels
    struct lane {
        std::shared_ptr<reduction> of;  // null: free
        std::int64_t chunk = 0;
        request_set requests;
    };

    std::int64_t chunk_bytes(std::int64_t largest_slice_bytes) const noexcept;
    std::byte* receive_place(std::size_t which, int peer) const noexcept;
    std::byte* send_place(std::size_t which, int peer) const noexcept;
    bool advance();
    bool post_receives();
    bool post_sends();
    bool sum_next();
    bool retire_sends();
    void receive_chunk(std::size_t which, reduction& one);
    void send_chunk(std::size_t which, reduction& one);
    void sum_chunk(std::size_t which, reduction& one);
    chunks messages(const reduction& one, std::int64_t chunk) const noexcept;
    dtype arrived(std::size_t which, int peer,
                  const reduction& one) const;  // the type of that peer's row, now contiguous
    void fail_all(std::exception_ptr why) noexcept;

    MPI_Comm comm_;
    partition::topology nodes_;
    int rank_ = 0, ranks_ = 1;
    std::int64_t largest_count_;
    communicator::traffic& sent_;
    crew* threads_ = nullptr;
    std::int64_t sequence_ = 0;
    buffer scratch_;
    std::int64_t chunk_bytes_ = 0;
    std::deque<std::shared_ptr<reduction>> queue_;  // in the order of their starts
    std::array<lane, lanes> receiving_, sending_;
    std::size_t next_receive_ = 0, next_sum_ = 0, next_send_ = 0, next_delivery_ = 0;  // lanes
    bool busy_ = false;  // `finished` must not come back in here
    std::exception_ptr broken_;
    std::vector<const void*> sources_;
    std::vector<dtype> types_;
};

}  // namespace zero::comm
