// Buffers that are taken and given back again and again, in a few sizes: what was given back rests (device/memory.hpp) and
// is taken again without page faults. Awake and resting together never exceed what once was awake.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "device/memory.hpp"

namespace zero {

class spares {
public:
    explicit spares(std::function<buffer(std::int64_t)> fresh) : fresh_(std::move(fresh)) {}

    buffer take(std::int64_t bytes) {  // what is in it is undefined
        const auto found = resting_.find(bytes);
        if (found == resting_.end()) {
            most_ = std::max(most_, awake_ + bytes);
            while (!resting_.empty() && awake_ + asleep_ + bytes > most_) drop(resting_.begin());
            buffer fresh = fresh_(bytes);
            awake_ += bytes;
            return fresh;
        }
        buffer again = std::move(found->second);
        drop(found);
        again.wake();
        awake_ += bytes;
        return again;
    }
    void give_back(buffer&& used) {
        const std::int64_t bytes = used.bytes();
        awake_ -= bytes;
        if (!used.can_rest()) {
            const buffer gone = std::move(used);
            return;
        }
        const auto place = resting_.emplace(bytes, std::move(used));
        place->second.rest();
        asleep_ += bytes;
    }
    std::int64_t resting() const noexcept { return asleep_; }

private:
    using shelf = std::multimap<std::int64_t, buffer>;
    void drop(shelf::iterator which) {
        asleep_ -= which->first;
        resting_.erase(which);
    }

    std::function<buffer(std::int64_t)> fresh_;
    shelf resting_;
    std::int64_t awake_ = 0, asleep_ = 0, most_ = 0;
};

}  // namespace zero
