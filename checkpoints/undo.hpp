// What a load overwrites, until all ranks have read all: then it is forgotten, or put back. Zeros, as the states of a context
// hold before its first step, take no memory. Not here: what is read (loading.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "device/memory.hpp"

namespace zero::checkpoint {

class undo {
public:
    explicit undo(ledger& book) : book_(book) {}
    void expect(std::int64_t bytes) noexcept { expected_ = bytes; }  // at most so many in all: memory comes in pieces
    // Before these bytes are overwritten. Several threads may do this at once, each for places of its own.
    void keep(std::byte* place, std::int64_t bytes);
    void put_back() noexcept;
    void forget() noexcept;

private:
    struct stretch {
        std::byte* place;
        std::int64_t bytes;
        const std::byte* copy;  // null: zeros
    };
    std::byte* room_for(std::int64_t bytes);

    ledger& book_;
    std::int64_t expected_ = 0, used_ = 0;  // of the last piece
    std::mutex guard_;
    std::vector<stretch> kept_;
    std::deque<buffer> pieces_;
};

}  // namespace zero::checkpoint
