// Walks over the held ranges, tile by tile. See updater.hpp.
#include "stage/updater.hpp"

#include <algorithm>
#include <cmath>

#include "tensor/vector.hpp"

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

void updater::run(const update_numbers& numbers) {
    if (which_ == optimizer::kind::lamb) return run_lamb(numbers);
    for (int b = 0; b < all_.buckets(); ++b)
        if (memory_.trainable(b) && !numbers.frozen[static_cast<std::size_t>(all_.bucket(b).group)]) run_bucket(b, numbers);
}

void updater::run_bucket(int bucket, const update_numbers& numbers) {
    const auto& hyper = numbers.groups[static_cast<std::size_t>(all_.bucket(bucket).group)];
    const std::int64_t aligned = partition::alignment(all_.bucket(bucket).type);
    const std::int64_t tile = std::max(aligned, all_.how.sub_group_size / aligned * aligned);
    constexpr std::int64_t worth_a_thread = 1 << 15;
    for (const auto& whole : memory_.stretches(bucket, memory_.states_part(bucket))) {
        all_.threads.share(whole.count, worth_a_thread, [&](int, std::int64_t begin, std::int64_t length) {
            for (std::int64_t done = begin; done < begin + length; done += tile) {
                stretch part = whole;
                part.offset += done;
                part.first += done;
                part.count = std::min(tile, begin + length - done);
                optimizer::update(which_, hyper, numbers.clip_factor, numbers.step, range_of(bucket, part));
            }
        });
    }
}

// LAMB needs |p| and |r| of whole tensors: directions first (over the gradients, which are given up), then the norms of
// a batch of tensors in one all-reduce, then the steps.
void updater::run_lamb(const update_numbers& numbers) {
    constexpr std::size_t batch = 64;
    struct part_of_tensor { int bucket; stretch part; };
    const auto own = [&](int bucket) { return memory_.states_part(bucket); };
    std::vector<part_of_tensor> parts;
    std::vector<int> tensors;
    const auto apply = [&] {
        std::vector<exact_sum> sums(2 * tensors.size());
        for (const auto& p : parts) {
            const auto range = range_of(p.bucket, p.part);
            const auto at = static_cast<std::size_t>(std::find(tensors.begin(), tensors.end(), p.part.tensor) - tensors.begin());
            const dtype type = sum_type(range.value_type);
            auto* direction = memory_.gradient_at(p.bucket, p.part.offset);
            vector::dot(type, range.value, range.value, range.count, sums[2 * at]);
            const auto& hyper = numbers.groups[static_cast<std::size_t>(all_.bucket(p.bucket).group)];
            optimizer::lamb_direction(hyper, numbers.clip_factor, numbers.step, range, direction);
            vector::dot(type, direction, direction, range.count, sums[2 * at + 1]);
        }
        if (!all_.alone() && all_.how.stage > 0) {
            std::vector<std::int64_t> limbs;
            for (auto& s : sums) {
                s.normalize();
                limbs.insert(limbs.end(), s.data().begin(), s.data().end());
            }
            all_.ranks.all_reduce(limbs, comm::combine::sum);
            for (std::size_t i = 0; i < sums.size(); ++i)
                std::copy_n(limbs.begin() + static_cast<std::ptrdiff_t>(i * exact_sum::limbs), exact_sum::limbs, sums[i].data().begin());
        }
        for (const auto& p : parts) {
            const auto at = static_cast<std::size_t>(std::find(tensors.begin(), tensors.end(), p.part.tensor) - tensors.begin());
            const auto& hyper = numbers.groups[static_cast<std::size_t>(all_.bucket(p.bucket).group)];
            const double trust = optimizer::lamb_trust(hyper, std::sqrt(sums[2 * at].value()), std::sqrt(sums[2 * at + 1].value()));
            optimizer::lamb_apply(hyper, trust, range_of(p.bucket, p.part), memory_.gradient_at(p.bucket, p.part.offset));
        }
        parts.clear();
        tensors.clear();
    };
    for (int b = 0; b < all_.buckets(); ++b) {
        if (!memory_.trainable(b) || numbers.frozen[static_cast<std::size_t>(all_.bucket(b).group)]) continue;
        for (int id : all_.bucket(b).tensors) {
            if (all_.tensors.at(id).count == 0) continue;
            tensors.push_back(id);
            const auto& seat = all_.space.where(id);
            const auto held = own(b);
            const std::int64_t first = std::max(seat.offset, held.first);
            const std::int64_t end = std::min(seat.offset + all_.tensors.at(id).count, held.first + held.count);
            if (end > first) {
                stretch part{first, end - first, id, first - seat.offset};
                parts.push_back({b, part});
            }
            if (tensors.size() == batch) apply();
        }
    }
    apply();
}

}  // namespace zero::stage
