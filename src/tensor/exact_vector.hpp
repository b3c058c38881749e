// Sums of vectors that come out the same in whatever order and groups their terms are added: nothing is rounded until the
// end, and then once, to nearest even. A sum under way is a few doubles whose exact total it is (the expansions of
// J. R. Shewchuk, "Adaptive precision floating-point arithmetic", 1997). Not here: one such sum over all elements
// (core/exact_sum.hpp), the loops (vector_kernels.inc).
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tensor/dtype.hpp"

namespace zero {

namespace vector {

// target[i] = the exact sum of sources[k][i], rounded once in sum_type (f32 or f64). Infinities and NaN give what they give in
// any order: infinite or NaN. A sum of zeros is negative only when all of them are. target may be one of the sources (same
// type, same place).
void order_free_sum(dtype sum_type, void* target, const void* const* sources, const dtype* types, int ranks, std::int64_t count);

}  // namespace vector

// Such sums, kept from call to call. Two doubles per element hold every sum whose terms lie within 106 bits; further vectors
// are taken as the terms demand them, so nothing is ever lost. Elements may be worked on by several threads, each by one.
class exact_vector {
public:
    // `upper` and `lower` have room for `count` doubles each, as long as this lives.
    exact_vector(double* upper, double* lower, std::int64_t count);

    // sum[first + i] += sources[k][i] for all k; anew: sum = the sources.
    void add(std::int64_t first, const void* const* sources, const dtype* types, int ranks, std::int64_t count, bool anew);
    // target[i] = sum[first + i], rounded as above.
    void round(dtype sum_type, void* target, std::int64_t first, std::int64_t count);
    std::int64_t further_bytes();  // taken beyond the two

private:
    struct terms;  // of a part of one block
    std::vector<double*> further();
    bool add_quickly(std::int64_t at, const terms& these);
    void add_carefully(std::int64_t at, const terms& these);
    void add_slowly(std::int64_t element, double term);

    double *upper_, *lower_;
    std::int64_t count_;
    std::vector<std::atomic<bool>> has_lower_;  // by blocks; false: all lower ones are 0, in memory too
    std::vector<std::unique_ptr<double[]>> further_;
    std::mutex guard_;  // of that, and of what is slow
};

}  // namespace zero
