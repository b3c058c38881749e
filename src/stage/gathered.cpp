// Counted copies of whole values. See gathered.hpp.
#include "stage/gathered.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/agreement.hpp"
#include "core/error.hpp"

namespace zero::stage {

// What the caller wrote into an earlier look is gone, but for neighbours in the same page that it holds.
void* gathered::look(int tensor, bool whole_pages) {
    const auto& t = all_.tensors.at(tensor);
    if (t.count == 0) return nullptr;
    if (!view_) view_ = std::make_unique<private_view>(all_.ranks.shared()->shared_from_this(), *memory_.values_of_node());
    const std::int64_t at = memory_.value(tensor, 0) - memory_.values_of_node()->data;
    view_->refresh(at, t.bytes(), whole_pages);
    return view_->at(at);
}

std::int64_t gathered::count(int tensor) const {
    return all_.bucket(all_.space.where(tensor).bucket).whole_values ? 0 : all_.tensors.at(tensor).count;
}

void gathered::make_room(int tensor) {
    if (copies_.count(tensor) != 0) return;
    const auto& b = all_.bucket(all_.space.where(tensor).bucket);
    copy fresh;
    if (!only_looks()) fresh.memory = spares_.take(b.padded * size_of(b.type));
    copies_[tensor] = std::move(fresh);
    live_ += count(tensor);
}

// All tensors of a call fit under the cap together, or none is taken.
void gathered::keep_below_cap(std::span<const int> tensors) {
    const std::int64_t cap = all_.how.max_live_parameters;
    const auto wanted = [&] {
        std::set<int> fresh;
        for (int tensor : tensors)
            if (copies_.count(tensor) == 0) fresh.insert(tensor);
        std::int64_t elements = 0;
        for (int tensor : fresh) elements += count(tensor);
        return elements;
    };
    if (live_ + wanted() > cap) drop_idle();  // copies that nobody holds are a courtesy: they go first
    const std::int64_t elements = wanted();
    const auto others = tensors.size() > 1 ? formatted(" and {} more", tensors.size() - 1) : std::string();
    require(live_ + elements <= cap, code::memory,
            "gathering '{}'{} ({} elements) would make {} elements live, more than zero_optimization.stage3_max_live_parameters = {}: "
            "release other tensors first or raise that key", all_.tensors.at(tensors.front()).name, others, elements, live_ + elements, cap);
}

bool gathered::lacks(int tensor) const {
    if (only_looks()) return false;
    const auto& c = copies_.at(tensor);
    const bool here = c.ready && (c.holders > 0 ||
        (c.digest != 0 && digest(c.memory.data(), static_cast<std::size_t>(c.memory.bytes())) == c.digest));
    return !here && !c.travel;
}

gathered::wish gathered::prepare(std::span<const int> tensors) {
    wish mine{false, 0};
    keep_below_cap(tensors);
    for (int tensor : tensors) {
        make_room(tensor);
        mine.lacking |= lacks(tensor);
    }
    mine.ahead = room_ahead(tensors.size());
    return mine;
}

gathered::wish gathered::prepare_ahead(int tensor) {
    if (copies_.count(tensor) == 0 && live_ + count(tensor) > all_.how.max_live_parameters) return {false, 0};
    try {
        make_room(tensor);
    } catch (const error&) {
        return {false, 0};  // no memory for a courtesy
    }
    return {lacks(tensor), 1};
}

void gathered::give_up() {
    planned_.clear();
    for (auto it = copies_.begin(); it != copies_.end();) {
        const auto& [tensor, c] = *it++;
        if (c.holders == 0 && !c.ready && !c.travel) drop(tensor);
    }
}

void gathered::transfer(int tensor) {
    auto& c = copies_.at(tensor);
    const int bucket = all_.space.where(tensor).bucket;
    const auto& b = all_.bucket(bucket);
    const std::int64_t width = size_of(b.type);
    comm::all_gather_request request;
    for (int rank = 0; rank < all_.ranks.size(); ++rank) {
        const auto part = all_.space.slice_of(bucket, rank);
        request.landings.push_back({c.memory.data() + part.first * width, part.count * width});
    }
    request.own = memory_.values(bucket);
    request.own_bytes = b.slice * width;
    if (memory_.values_offloaded(bucket)) {  // streams in
        void* place = request.landings[static_cast<std::size_t>(all_.ranks.rank())].data;
        all_.work.start_copy(place, std::exchange(request.own, place), request.own_bytes);
    }
    c.ready = false;
    c.travel = all_.ranks.start_all_gather(std::move(request));
}

void gathered::begin(int tensor, const wish& agreed) {
    auto& c = copies_.at(tensor);
    if (!agreed.lacking) return;
    if (c.travel) c.travel->finish();  // on its way here, but another rank has given it up meanwhile
    transfer(tensor);
}

void gathered::look_ahead(std::span<const int> tensors, const wish& agreed) {
    for (int tensor : tensors) follow_record(tensor);
    for (std::size_t i = 0; i < planned_.size(); ++i) {
        if (static_cast<std::int64_t>(i) < agreed.ahead) transfer(planned_[i]);
        else drop(planned_[i]);
    }
    if (recorded_) ahead_ = std::max(ahead_, cursor_) + std::min(planned_.size(), static_cast<std::size_t>(agreed.ahead));
    planned_.clear();
}

void gathered::hold(copy& one) {
    if (one.holders++ == 0) ++open_;
}

void* gathered::finish(int tensor) {
    auto& c = copies_.at(tensor);
    if (only_looks()) {
        if (c.holders == 0) c.look = look(tensor, !any_open());
        hold(c);
        return c.look;
    }
    if (c.travel) {
        c.travel->finish();
        c.travel.reset();
        c.ready = true;
    }
    hold(c);
    const std::int64_t next = recorded_ ? distance_to_next_use(tensor) : -1;
    c.digest = 0;
    // May stay after release: what it is is remembered. What the caller writes on a device would not be noticed.
    if (all_.work.on_host() && c.holders == 1 && next >= 0 && next <= all_.how.max_reuse_distance)
        c.digest = digest(c.memory.data(), static_cast<std::size_t>(c.memory.bytes()));
    return c.memory.data();
}

void gathered::prefetch(int tensor, const wish& agreed) {
    if (agreed.ahead > 0) begin(tensor, agreed);
    give_up();
}

void gathered::follow_record(int tensor) {
    if (!recorded_) {
        record_.push_back(tensor);
        return;
    }
    // Off the record (another phase of the program): look for the place further on, from the start if need be.
    for (std::size_t tried = 0; tried < record_.size(); ++tried) {
        const std::size_t position = (cursor_ + tried) % record_.size();
        if (record_[position] != tensor) continue;
        cursor_ = position + 1;
        ahead_ = std::max(ahead_, cursor_);
        return;
    }
}

std::int64_t gathered::distance_to_next_use(int tensor) const {
    std::int64_t between = 0;
    for (std::size_t i = cursor_; i < record_.size(); ++i) {
        if (record_[i] == tensor) return between;
        between += count(record_[i]);
    }
    return -1;
}

bool gathered::stays_by_record(std::size_t position) const {
    std::int64_t between = 0;
    for (std::size_t i = position; i-- > 0;) {
        if (record_[i] == record_[position]) return between <= all_.how.max_reuse_distance;
        between += count(record_[i]);
    }
    return false;
}

// Which entries come next follows from the record alone and is equal on all ranks; how many of them there is room for
// is not, and is agreed.
std::int64_t gathered::room_ahead(std::size_t behind) {
    if (!recorded_ || all_.alone() || only_looks() || all_.how.prefetch_bucket_size == 0) return 0;
    std::int64_t elements = 0;
    for (std::size_t i = cursor_ + behind; i < record_.size(); ++i) {
        const int next = record_[i];
        elements += count(next);
        if (elements > all_.how.prefetch_bucket_size) break;
        if (i < ahead_) continue;
        if (stays_by_record(i)) break;  // comes back by itself
        if (copies_.count(next) != 0 || live_ + count(next) > all_.how.max_live_parameters) break;
        try {
            make_room(next);
        } catch (const error&) {
            break;  // no memory for a courtesy
        }
        planned_.push_back(next);
    }
    return static_cast<std::int64_t>(planned_.size());
}

void gathered::release(int tensor) {
    const auto found = copies_.find(tensor);
    require(found != copies_.end() && found->second.holders > 0, code::state,
            "'{}' is released but not gathered: every zero_release needs a zero_gather before it", all_.tensors.at(tensor).name);
    if (--found->second.holders > 0) return;
    --open_;
    if (found->second.digest == 0) drop(tensor);
}

int gathered::holders(int tensor) const {
    const auto found = copies_.find(tensor);
    return found == copies_.end() ? 0 : found->second.holders;
}

// Copies that somebody holds over an update show the new values afterwards, as the arrays of the other stages do.
void gathered::refresh_open() {
    if (only_looks()) {
        for (const auto& [tensor, c] : copies_)
            if (c.holders > 0) look(tensor, true);
        return;
    }
    std::vector<std::int64_t> open(static_cast<std::size_t>(all_.tensors.count()), 0);
    for (const auto& [tensor, c] : copies_) open[static_cast<std::size_t>(tensor)] = c.holders > 0 ? 1 : 0;
    all_.ranks.all_reduce(open, comm::combine::maximum);
    all_.agree.settle({"zero_step (memory for open copies)", 61, 0}, [&] {
        for (int tensor = 0; tensor < all_.tensors.count(); ++tensor)
            if (open[static_cast<std::size_t>(tensor)] != 0) make_room(tensor);
    });
    for (int tensor = 0; tensor < all_.tensors.count(); ++tensor) {
        if (open[static_cast<std::size_t>(tensor)] == 0) continue;
        transfer(tensor);
        auto& c = copies_.at(tensor);
        c.travel->finish();
        c.travel.reset();
        c.ready = true;
        c.digest = 0;
        if (c.holders == 0) drop(tensor);
    }
}

void gathered::drop(int tensor) {
    const auto found = copies_.find(tensor);
    if (found->second.travel) found->second.travel->finish();  // never leave a message half received
    live_ -= count(tensor);
    if (found->second.memory) spares_.give_back(std::move(found->second.memory));
    copies_.erase(found);
}

void gathered::drop_idle() {
    for (auto it = copies_.begin(); it != copies_.end();) {
        const int tensor = (it++)->first;
        if (copies_.at(tensor).holders == 0) drop(tensor);
    }
}

void gathered::end_of_step() {
    drop_idle();
    if (!record_.empty()) recorded_ = true;
    cursor_ = ahead_ = 0;
}

}  // namespace zero::stage
