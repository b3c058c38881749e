// The three batch sizes: any two give the third; see batch.hpp.
#include "config/batch.hpp"

#include "core/error.hpp"

namespace zero::config {
namespace {

constexpr const char* train_key = "train_batch_size";
constexpr const char* micro_key = "train_micro_batch_size_per_gpu";
constexpr const char* accumulation_key = "gradient_accumulation_steps";

std::int64_t given(const options& from, const char* key) {
    return from.has(key) && !from.is_auto(key) ? from.integer(key) : 0;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    require(!__builtin_mul_overflow(a, b, &result), code::config, "{} x {} x {} x ranks is beyond 2^63", train_key,
            micro_key, accumulation_key);
    return result;
}

// whole / (part x ranks), which must be an integer.
std::int64_t quotient(std::int64_t whole, std::int64_t part, const char* part_name, int ranks) {
    const std::int64_t divisor = product(part, ranks);
    require(whole % divisor == 0, code::config,
            "{} = {} cannot be cut evenly: it must be a multiple of {} = {} times the {} ranks of the communicator",
            train_key, whole, part_name, part, ranks);
    return whole / divisor;
}

}  // namespace

batch_sizes resolve_batch(const options& from, int ranks) {
    batch_sizes sizes{given(from, train_key), given(from, micro_key), given(from, accumulation_key)};
    if (sizes.train > 0 && sizes.micro > 0 && sizes.accumulation > 0) {
        const std::int64_t all = product(product(sizes.micro, sizes.accumulation), ranks);
        require(all == sizes.train, code::config,
                "{} = {} contradicts {} = {} x {} = {} x {} ranks = {}: change or remove one", train_key, sizes.train,
                micro_key, sizes.micro, accumulation_key, sizes.accumulation, ranks, all);
        return sizes;
    }
    if (sizes.train > 0 && sizes.micro > 0) {
        sizes.accumulation = quotient(sizes.train, sizes.micro, micro_key, ranks);
        return sizes;
    }
    if (sizes.accumulation == 0) sizes.accumulation = 1;
    if (sizes.train > 0) sizes.micro = quotient(sizes.train, sizes.accumulation, accumulation_key, ranks);
    if (sizes.micro > 0) sizes.train = product(product(sizes.micro, sizes.accumulation), ranks);
    return sizes;
}

}  // namespace zero::config
