// libzero.reproducible with several micro-steps: the exact sum of a slice over all micro-gradients of a window, as two doubles
// per element in the ledger, and further ones once they are there. Not here: the sums (tensor/exact_vector.hpp).
#pragma once
#include "config/settings.hpp"
#include "device/memory.hpp"
#include "partition/plan.hpp"
#include "tensor/exact_vector.hpp"

namespace zero::stage {

inline bool keeps_running_sums(const config::settings& how) noexcept { return how.reproducible && how.accumulation_steps > 1; }

class running_sums {
public:
    running_sums(ledger& book, std::int64_t slice)
        : book_(book), memory_(book, purpose::gradients, slice * partition::running_bytes), sums_(part(0), part(slice), slice) {}

    ~running_sums() { book_.remove(place::host, purpose::gradients, booked_); }

    exact_vector& sums() noexcept { return sums_; }
    // Not when they are taken: sums are formed by helpers too, and the ledger is the caller's.
    void book_further() {
        const std::int64_t more = sums_.further_bytes() - booked_;
        book_.add(place::host, purpose::gradients, more);
        booked_ += more;
    }

private:
    double* part(std::int64_t first) const noexcept { return reinterpret_cast<double*>(memory_.data()) + first; }

    ledger& book_;
    buffer memory_;
    exact_vector sums_;
    std::int64_t booked_ = 0;
};

}  // namespace zero::stage
