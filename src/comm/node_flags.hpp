// What the ranks of a node tell each other through shared memory: counters that only grow, each written by one rank, and
// small messages beside them. Not here: who waits for what (node_shared.cpp).
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <type_traits>

#include "tensor/dtype.hpp"

namespace zero::comm {

// One rank's page of the board. A counter is published with release and read with acquire: what was written before it is
// then visible. Counters stand in cache lines of their own, for each is polled by all other ranks.
struct node_flags {
    static constexpr std::uint64_t slots = 64;        // operations that may be under way
    static constexpr std::int64_t capacity = 1024;    // numbers of one small reduction

    struct alignas(64) counter {
        std::atomic<std::uint64_t> count{0};
        std::uint64_t read() const noexcept { return count.load(std::memory_order_acquire); }
        void publish(std::uint64_t value) noexcept { count.store(value, std::memory_order_release); }
    };
    struct offer {
        std::int64_t offset = 0;                      // of the rank's data, in the node's memory
        dtype type = dtype::f32;
    };

    counter rounds;                                   // small reductions and fences that this rank has entered
    counter contributions, sums;                      // contributions that may be read; own slices that are summed
    counter parts, copies;                            // rounds of gathers: own parts that may be read; copied from all
    counter given_up;                                 // not 0: this rank sums and copies no more
    counter left;                                     // not 0: it may go, for what it owes is done or on its way
    alignas(64) std::array<offer, slots> contribution;
    std::array<std::int64_t, slots> part;             // where it lies, in the node's memory
    alignas(64) std::array<std::array<std::int64_t, capacity>, 2> numbers;  // of even and of odd rounds
};
static_assert(std::is_trivially_destructible_v<node_flags> && std::atomic<std::uint64_t>::is_always_lock_free);

// How one waits for a flag: polling costs least when the other rank is about to come, the core belongs to others when it is
// not, and after a long while to nobody.
class node_patience {
public:
    void reset() noexcept { turns_ = 0; }
    // True about twice a second: time to ask whether the others are alive.
    bool rest() noexcept {
        if (++turns_ < polls) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
            return false;
        }
        if (turns_ < polls + yields) {
            std::this_thread::yield();
            return false;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        return (turns_ - polls - yields) % 5000 == 0;
    }

private:
    static constexpr int polls = 200, yields = 20000;
    int turns_ = 0;
};

}  // namespace zero::comm
