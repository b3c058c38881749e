// Reductions and gathers of device memory over a communicator that reaches host memory only: in pieces through locked memory, so
// that the copies down, the messages and the copies up are under way at the same time. Not here: ranks that reach each
// other's devices (nccl.cpp).
#pragma once
#include <array>
#include <deque>
#include <exception>
#include <memory>

#include "comm/communicator.hpp"
#include "compute/processor.hpp"

namespace zero::comm {

// Reductions or gathers, not both: their orders are independent, and what waits for the one must not stop the other.
class staged {
public:
    enum class kind { reductions, gathers };
    // The first two outlive this. `copies` is one beside `work`.
    staged(kind what, communicator& host, compute::processor& work, std::unique_ptr<compute::processor> copies);
    ~staged();

    std::unique_ptr<operation> start_reduce_scatter(reduce_scatter_request what);  // source and target on the device
    std::unique_ptr<operation> start_all_gather(all_gather_request what);          // own and landings on the device
    void reserve(ledger& book, std::int64_t largest_slice_bytes);
    std::int64_t scratch_bytes(std::int64_t largest_slice_bytes) const noexcept;  // of locked host memory
    void settle() noexcept { copies_->settle(); }
    bool advance();  // never waits; true when something moved. Throws what failed, after which nothing more is taken

    struct transfer;

private:
    static constexpr std::size_t lanes = 2;  // one is copied while the other one travels
    struct lane;
    std::int64_t row_bytes(std::int64_t largest_slice_bytes) const noexcept;
    std::unique_ptr<operation> queue(std::shared_ptr<transfer> one);
    void fill(lane& next);
    bool move(lane& one);

    kind kind_;
    communicator& host_;
    std::unique_ptr<compute::processor> copies_;
    compute::processor& work_;
    buffer memory_;
    std::int64_t row_ = 0;
    std::array<std::unique_ptr<lane>, lanes> lanes_;
    std::size_t filling_ = 0, emptying_ = 0;
    std::deque<std::shared_ptr<transfer>> queue_;  // in the order of their starts
    std::exception_ptr broken_;
};

}  // namespace zero::comm
