// The forecast, bucket by bucket; the table in docs/architecture says what is whole and what is a slice in which stage.
// Not here: taking the memory (stage/), the chunks of the exchange (comm/).
#include "partition/plan.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "core/error.hpp"

namespace zero::partition {

namespace {

std::int64_t product(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    const bool overflow = __builtin_mul_overflow(a, b, &result);
    require(!overflow, code::argument, "the model takes more than 2^63-1 bytes: register fewer or smaller tensors");
    return result;
}

void grow(std::int64_t& bytes, std::int64_t by) {
    const bool overflow = __builtin_add_overflow(bytes, by, &bytes);
    require(!overflow, code::argument, "the model takes more than 2^63-1 bytes: register fewer or smaller tensors");
}

// Elements of the bucket that a rank keeps, of vectors that are whole up to stage `last_whole` and slices after it.
std::int64_t kept(const bucket& one, int stage, int last_whole) {
    return stage <= last_whole ? one.padded : one.slice;
}

// Values of caller's arrays are the caller's memory; a slice of them (stage 3) is the library's.
std::int64_t value_elements(const bucket& one, bool once, int per_node) {
    if (once) return one.padded / per_node;
    if (!one.whole_values) return one.slice;
    return one.library_owned ? one.padded : 0;
}

// At most what a checkpoint holds of the rank's slices: values (the master's of 16-bit types) and states. Buckets of one
// group and type lie in one stream for each of these, which begins a page.
std::int64_t copy_of_save(const layout& space, const plan_rules& how) {
    constexpr std::int64_t page = 4096;
    std::int64_t bytes = how.attached_bytes;
    std::set<std::tuple<int, dtype, bool>> streams;
    for (const bucket& one : space.buckets()) {
        const std::int64_t vectors = one.trainable ? 1 + how.optimizer_states + how.user_states : 1;
        grow(bytes, product(vectors, product(one.slice, size_of(one.trainable ? sum_type(one.type) : one.type))));
        if (streams.insert({one.group, one.type, one.trainable}).second) grow(bytes, product(vectors, page));
    }
    return bytes;
}

// Stages 2 and 3 keep slices of gradients only; whole ones pass through a few staging buckets, used in turn.
std::int64_t staging_bytes(const layout& space, const plan_rules& how) {
    if (how.stage < 2 || space.ranks().ranks == 1) return 0;
    std::int64_t trainable = 0, largest = 0;
    for (const bucket& one : space.buckets()) {
        if (!one.trainable) continue;
        ++trainable;
        largest = std::max(largest, product(one.padded, size_of(sum_type(one.type))));
    }
    return product(std::min(how.ring, trainable), largest);
}

}  // namespace

// A rank alone on its node gains nothing by it but in stage 3 on one node, where a gather is then no copy.
bool exists_once(const bucket& one, const topology& ranks, int stage, bool node_memory) noexcept {
    if (!node_memory || (stage == 3 && ranks.nodes > 1)) return false;
    return !one.whole_values || (one.library_owned && ranks.per_node() > 1);
}

std::vector<bool> offloaded_buckets(const layout& space, double part) {
    std::vector<bool> all;
    double passed = 0, there = 0;  // elements
    for (const bucket& one : space.buckets()) {
        const double mine = one.trainable ? static_cast<double>(one.slice) : 0;
        passed += mine;
        all.push_back(one.trainable && there + mine / 2 <= part * passed);  // nearer to the part with it than without
        if (all.back()) there += mine;
    }
    return all;
}

std::int64_t forecast::total() const noexcept {
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

std::int64_t forecast::model_states(const by_purpose& all) noexcept {
    const auto of = [&](purpose why) { return all[static_cast<std::size_t>(why)]; };
    return of(purpose::parameters) + of(purpose::gradients) + of(purpose::master) + of(purpose::states);
}

forecast plan(const layout& space, const plan_rules& how) {
    require(how.stage >= 0 && how.stage <= 3, code::config, "zero_optimization.stage is {}: give 0, 1, 2 or 3",
            how.stage);
    forecast result;
    const auto add = [&result](purpose why, std::int64_t elements, std::int64_t size, bool offloaded = false) {
        grow((offloaded ? result.offloaded : result.bytes)[static_cast<std::size_t>(why)], product(elements, size));
    };
    const auto offloaded = offloaded_buckets(space, how.states_offloaded);
    for (std::size_t b = 0; b < offloaded.size(); ++b) {
        const bucket& one = space.buckets()[b];
        const std::int64_t sum_size = size_of(sum_type(one.type));
        const bool once = exists_once(one, space.ranks(), how.stage, how.node_memory);
        add(purpose::parameters, value_elements(one, once, space.ranks().per_node()), size_of(one.type),
            how.slices_offloaded && !one.whole_values);
        if (!one.whole_values && !once) {
            result.largest_gather = std::max(result.largest_gather, product(one.padded, size_of(one.type)));
        }
        if (!one.trainable) continue;
        add(purpose::gradients, kept(one, how.stage, 1), sum_size);
        if (how.running_sums) add(purpose::gradients, one.slice, running_bytes);
        if (is_16bit(one.type)) add(purpose::master, kept(one, how.stage, 0), sum_size, offloaded[b]);
        add(purpose::states, product(kept(one, how.stage, 0), how.optimizer_states + how.user_states), sum_size, offloaded[b]);
    }
    add(purpose::communication, staging_bytes(space, how), 1);
    add(purpose::communication, how.exchange_bytes, 1);
    add(purpose::communication, how.publish_bytes, 1);
    add(purpose::communication, how.offload_bytes, 1);
    add(purpose::communication, how.host_bytes, 1, true);
    if (how.copies_of_save > 0) result.copies_of_save = product(how.copies_of_save, copy_of_save(space, how));
    // The sum over purposes must fit too; total() itself cannot fail.
    std::int64_t all = result.largest_gather;
    grow(all, result.copies_of_save);
    for (const auto* list : {&result.bytes, &result.offloaded})
        for (const std::int64_t bytes : *list) grow(all, bytes);
    return result;
}

}  // namespace zero::partition
