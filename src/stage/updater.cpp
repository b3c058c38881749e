// Walks over the held ranges, tile by tile; LAMB by whole tensors. See updater.hpp.
#include "stage/updater.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zero::stage {

optimizer::update_range updater::range_of(int bucket, const stretch& part) const {
    const auto& b = all_.bucket(bucket);
    optimizer::update_range range;
    range.value_type = b.type;
    std::byte* value = part.tensor < 0 ? memory_.value_at(bucket, part.offset) : memory_.value(part.tensor, part.first);
    range.value = memory_.has_master(bucket) ? memory_.master_at(bucket, part.offset) : value;
    range.copy16 = memory_.has_master(bucket) ? value : nullptr;
    range.gradient = memory_.gradient_at(bucket, part.offset);
    for (std::size_t s = 0; s < memory_.optimizer_states(); ++s) range.states[s] = memory_.state_at(bucket, s, part.offset);
    range.count = part.count;
    return range;
}

bool updater::trains(int bucket, const update_numbers& numbers) const {
    const bool applied = !numbers.applied.empty() && numbers.applied[static_cast<std::size_t>(bucket)] != 0;
    return memory_.trainable(bucket) && !numbers.frozen[static_cast<std::size_t>(all_.bucket(bucket).group)] && !applied;
}

void updater::run_range(int bucket, partition::range part, const std::byte* gradient, const update_numbers& numbers) {
    const std::int64_t width = size_of(sum_type(all_.bucket(bucket).type));
    for (const auto& piece : memory_.stretches(bucket, part)) {
        auto range = range_of(bucket, piece);
        range.gradient = gradient + (piece.offset - part.first) * width;
        all_.work.update(which_, numbers.groups[static_cast<std::size_t>(all_.bucket(bucket).group)], numbers.clip_factor, numbers.step, range);
    }
}

void updater::run(const update_numbers& numbers) {
    if (which_ == optimizer::kind::lamb) return run_lamb(numbers);
    if (!all_.work.on_host()) return run_on_device(numbers);
    for (const auto values : {whose::others, whose::own}) {
        for (int b = 0; b < all_.buckets(); ++b)
            if (trains(b, numbers)) run_bucket(b, values, numbers);
        if (values == whose::others) let_values_be_written();
    }
}

// All that is updated on a device: its bucket, its group, and the whole stretch.
template <typename Each>
void updater::each_range(const update_numbers& numbers, const Each& each) const {
    for (int b = 0; b < all_.buckets(); ++b) {
        const auto group = static_cast<std::size_t>(all_.bucket(b).group);
        if (!memory_.trainable(b) || numbers.frozen[group]) continue;
        for (const auto& whole : memory_.stretches(b, memory_.states_part(b))) each(b, group, range_of(b, whole));
    }
}

passing passing_parts(const partition::layout& space, const config::settings& how) {
    passing longest;
    const auto offloaded = partition::offloaded_buckets(space, how.offload_optimizer ? how.offload_ratio : 0);
    for (std::size_t b = 0; b < offloaded.size(); ++b) {
        const auto& one = space.buckets()[b];
        if (offloaded[b]) longest.states = std::max(longest.states, one.slice);
        else if (one.trainable && how.offload_param && !one.whole_values) longest.values = std::max(longest.values, one.slice);
    }
    return longest;
}

void updater::take_staging() {
    if (all_.work.on_host()) return;
    const auto longest = passing_parts(all_.space, all_.how);
    if (longest.states > 0)
        on_host_ = std::make_unique<offload::host_update>(all_.work, all_.threads, all_.book, longest.states, all_.how.sub_group_size);
    if (longest.values > 0)
        on_device_ = std::make_unique<offload::device_update>(all_.work, all_.book, longest.values, all_.how.sub_group_size);
}

void updater::ranges::add(const storage& memory, int bucket, const optimizer::update_range& range, std::size_t tag) {
    const bool values_there = memory.values_offloaded(bucket);
    if (memory.states_offloaded(bucket)) {
        states_pass.push_back({range, memory.has_master(bucket) || values_there, values_there});
        tags_of_states.push_back(tag);
    } else if (values_there) {
        values_pass.push_back(range);
        tags_of_values.push_back(tag);
    } else {
        together.push_back(range);
    }
}

// `act` gets the tag of a range. What the device is to do comes first, for it then works beside the host.
void updater::pass_on(const ranges& all, offload::changes what, const compute::note& ready, const offload::action& act) {
    if (on_device_)
        on_device_->start(all.values_pass, what, [&](auto& by, const auto& piece, std::size_t k) { act(by, piece, all.tags_of_values[k]); });
    if (on_host_)
        on_host_->run(all.states_pass, what, [&](auto& by, const auto& piece, std::size_t k) { act(by, piece, all.tags_of_states[k]); }, ready);
    if (on_device_) on_device_->finish();
}

namespace {

template <typename Each>
void share_range(compute::processor& by, const optimizer::update_range& whole, const Each& each) {
    constexpr std::int64_t worth_a_thread = 1 << 15;
    by.share(whole.count, worth_a_thread, [&](int, std::int64_t first, std::int64_t count) { each(offload::piece_of(whole, first, count)); });
}

}  // namespace

// Hundreds of ranges are one kernel; what is offloaded passes beside it.
void updater::run_on_device(const update_numbers& numbers) {
    std::vector<ranges> of_groups(numbers.groups.size());
    each_range(numbers, [&](int b, std::size_t group, const optimizer::update_range& range) { of_groups[group].add(memory_, b, range, group); });
    const auto ready = all_.work.take_note();
    for (std::size_t group = 0; group < of_groups.size(); ++group)
        all_.work.update(which_, numbers.groups[group], numbers.clip_factor, numbers.step, of_groups[group].together);
    for (const auto& mine : of_groups)
        pass_on(mine, offload::changes::values, *ready, [&](compute::processor& by, const optimizer::update_range& piece, std::size_t group) {
            share_range(by, piece, [&](const optimizer::update_range& part) {
                by.update(which_, numbers.groups[group], numbers.clip_factor, numbers.step, part);
            });
        });
}

// Of a stretch, what this rank writes the values of, or the rest.
std::vector<stretch> updater::of(whose values, int bucket, const stretch& whole) const {
    if (!memory_.writes_share(bucket)) return values == whose::own ? std::vector<stretch>{whole} : std::vector<stretch>{};
    const auto share = all_.share_of_node(bucket);
    const std::int64_t end = whole.offset + whole.count;
    const std::int64_t from = std::clamp(share.first, whole.offset, end), to = std::clamp(share.first + share.count, from, end);
    std::vector<stretch> parts;
    const auto keep = [&](std::int64_t first, std::int64_t last) {
        if (last > first) parts.push_back({first, last - first, whole.tensor, whole.first + (first - whole.offset)});
    };
    if (values == whose::own) {
        keep(from, to);
    } else {
        keep(whole.offset, from);
        keep(to, end);
    }
    return parts;
}

// Values that exist once are read by all ranks of the node and written by one of them, afterwards.
void updater::let_values_be_written() {
    if (all_.how.stage == 0 && memory_.values_of_node() != nullptr) all_.ranks.fence();
}

namespace {

// The threads share a stretch; each calls `each` for its own part of it.
template <typename Each>
void share_stretch(compute::processor& work, const stretch& whole, const Each& each) {
    constexpr std::int64_t worth_a_thread = 1 << 15;
    work.share(whole.count, worth_a_thread, [&](int, std::int64_t begin, std::int64_t length) {
        each(stretch{whole.offset + begin, length, whole.tensor, whole.first + begin});
    });
}

}  // namespace

// Where another rank writes the values, they are updated aside, for the states to follow, and given up.
void updater::run_bucket(int bucket, whose values, const update_numbers& numbers) {
    const auto& hyper = numbers.groups[static_cast<std::size_t>(all_.bucket(bucket).group)];
    const std::int64_t aligned = partition::alignment(all_.bucket(bucket).type), width = size_of(sum_type(all_.bucket(bucket).type));
    const bool aside = values == whose::others && !memory_.has_master(bucket);
    constexpr std::int64_t room = 8192;
    const std::int64_t tile = aside ? room / width : std::max(aligned, all_.how.sub_group_size / aligned * aligned);
    const auto update = [&](const stretch& mine) {
        alignas(64) std::byte copy[room];
        for (std::int64_t done = 0; done < mine.count; done += tile) {
            const stretch part{mine.offset + done, std::min(tile, mine.count - done), mine.tensor, mine.first + done};
            auto range = range_of(bucket, part);
            if (values == whose::others) range.copy16 = nullptr;
            if (aside) {
                all_.work.copy(copy, range.value, part.count * width);
                range.value = copy;
            }
            all_.work.update(which_, hyper, numbers.clip_factor, numbers.step, range);
        }
    };
    for (const auto& whole : memory_.stretches(bucket, memory_.states_part(bucket)))
        for (const auto& piece : of(values, bucket, whole)) share_stretch(all_.work, piece, update);
}

// LAMB needs |p| and |r| of whole tensors, which lie in slices of several ranks. So tensors are taken in batches, whose norms
// are agreed in one all-reduce: one for each tensor would cost a round of messages each, one for all of them memory.
struct updater::lamb_batch {
    struct part_of_tensor {
        int bucket;
        stretch part;
        std::size_t tensor;  // its place in `squares`
    };
    struct sums {
        compute::totals value, direction;
    };
    std::vector<part_of_tensor> parts;  // what this rank holds of the tensors
    std::vector<sums> squares;          // one for each tensor, on all ranks
};

void updater::run_lamb(const update_numbers& numbers) {
    constexpr std::size_t tensors_at_once = 64;
    lamb_batch batch;
    for (int b = 0; b < all_.buckets(); ++b) {
        if (!memory_.trainable(b) || numbers.frozen[static_cast<std::size_t>(all_.bucket(b).group)]) continue;
        const auto held = memory_.states_part(b);
        for (int id : all_.bucket(b).tensors) {
            const std::int64_t offset = all_.space.where(id).offset, count = all_.tensors.at(id).count;
            if (count == 0) continue;
            const std::int64_t first = std::max(offset, held.first), end = std::min(offset + count, held.first + held.count);
            if (end > first) batch.parts.push_back({b, {first, end - first, id, first - offset}, batch.squares.size()});
            batch.squares.emplace_back();
            if (batch.squares.size() == tensors_at_once) update_batch(std::exchange(batch, {}), numbers);
        }
    }
    if (!batch.squares.empty()) update_batch(std::move(batch), numbers);
}

void updater::update_batch(lamb_batch batch, const update_numbers& numbers) {
    static_assert(sizeof(lamb_batch::sums) == 2 * sizeof(compute::totals));
    const compute::held until_then(all_.work, {&batch.squares.front().value, 2 * batch.squares.size()});
    postponed directions;
    directions.attempt([&] { take_directions(batch, numbers); });
    if (!all_.alone() && all_.how.stage > 0) sum_over_ranks(batch, directions);
    directions.rethrow();
    let_values_be_written();
    apply_directions(batch, numbers);
}

// Over the gradients, which are given up.
void updater::take_directions(lamb_batch& batch, const update_numbers& numbers) {
    const auto ready = all_.work.take_note();
    ranges offloaded;
    const auto measured = [&](compute::processor& by, const void* data, const optimizer::update_range& of, compute::totals& into) {
        by.dot(sum_type(of.value_type), data, data, of.count, into);
    };
    const auto direct = [&](compute::processor& by, const optimizer::update_range& mine, std::size_t k) {
        const auto& part = batch.parts[k];
        const auto& hyper = numbers.groups[static_cast<std::size_t>(all_.bucket(part.bucket).group)];
        measured(by, mine.value, mine, batch.squares[part.tensor].value);
        share_range(by, mine, [&](const optimizer::update_range& piece) {
            by.lamb_direction(hyper, numbers.clip_factor, numbers.step, piece, const_cast<void*>(piece.gradient));
        });
        measured(by, mine.gradient, mine, batch.squares[part.tensor].direction);
    };
    for (std::size_t k = 0; k < batch.parts.size(); ++k) {
        const auto& [bucket, part, tensor] = batch.parts[k];
        if (memory_.passes(bucket)) offloaded.add(memory_, bucket, range_of(bucket, part), k);
        else direct(all_.work, range_of(bucket, part), k);
    }
    pass_on(offloaded, offload::changes::gradient, *ready, direct);
    all_.work.wait();
}

void updater::sum_over_ranks(lamb_batch& batch, const postponed& directions) {
    std::vector<std::int64_t> limbs;
    for (auto& of : batch.squares)
        for (exact_sum* sum : {&of.value.squares, &of.direction.squares}) {
            sum->normalize();
            limbs.insert(limbs.end(), sum->data().begin(), sum->data().end());
        }
    limbs.push_back(directions.failure() ? 1 : 0);
    all_.ranks.all_reduce(limbs, comm::combine::sum);
    if (limbs.back() != 0) all_.agree.settle({"zero_step (norms of tensors)", 63, 0}, [&] { directions.rethrow(); });
    auto next = limbs.begin();
    for (auto& of : batch.squares)
        for (exact_sum* sum : {&of.value.squares, &of.direction.squares}) {
            std::copy_n(next, exact_sum::limbs, sum->data().begin());
            next += exact_sum::limbs;
        }
}

void updater::apply_directions(const lamb_batch& batch, const update_numbers& numbers) {
    const auto ready = all_.work.take_note();
    ranges offloaded;
    const auto apply = [&](compute::processor& by, const optimizer::update_range& mine, std::size_t k) {
        const auto& of = batch.parts[k];
        const auto& hyper = numbers.groups[static_cast<std::size_t>(all_.bucket(of.bucket).group)];
        const auto& squares = batch.squares[of.tensor];
        const double trust = optimizer::lamb_trust(hyper, std::sqrt(squares.value.squares.value()), std::sqrt(squares.direction.squares.value()));
        share_range(by, mine, [&](const optimizer::update_range& piece) { by.lamb_apply(hyper, trust, piece, piece.gradient); });
    };
    for (std::size_t k = 0; k < batch.parts.size(); ++k) {
        const auto& [bucket, part, tensor] = batch.parts[k];
        if (memory_.passes(bucket)) {
            offloaded.add(memory_, bucket, range_of(bucket, part), k);
            continue;
        }
        for (const auto values : {whose::own, whose::others}) {
            if (values == whose::others && !memory_.has_master(bucket)) continue;
            for (const auto& piece : of(values, bucket, part)) {
                auto range = range_of(bucket, piece);
                if (values == whose::others) range.copy16 = nullptr;
                apply(all_.work, range, k);
            }
        }
    }
    pass_on(offloaded, offload::changes::values, *ready, apply);
}

}  // namespace zero::stage
