// What the ranks of an emulated communicator see of each other: a file that all of them map. Data does not go through
// it: a rank says where in its device memory a buffer is, and the others read it there, from the file behind that
// memory.
#pragma once
#include <atomic>
#include <cstdint>

namespace zero_emulation {

constexpr int most_ranks = 16;

enum class verb : int { all_gather, reduce_scatter, all_reduce, broadcast, reduce, send, receive };

struct collective_call {  // what all ranks must agree on, and where this one's data is
    verb what;
    int type, operation, root;
    std::uint64_t count;
    std::int64_t offset;
};
struct split_call {
    int color, key;
    std::int64_t process, file;
    std::uint64_t token;
};
struct message {
    std::int64_t offset;
    std::uint64_t bytes;
};

struct shared_rank {
    std::atomic<int> joined{0}, aborted{0};
    std::int64_t process, device_file;
    int device, node;
    // Collective number n is in calls[n % 4]: nobody posts n + 2 before all have read what n says.
    std::atomic<std::uint64_t> posted{0}, read{0}, split{0};
    collective_call calls[4];
    split_call splits[2];
};
struct channel {  // from one rank to another, one message at a time
    std::atomic<std::uint64_t> sent{0}, received{0};
    message what;
};
struct shared_communicator {
    std::uint64_t token;
    shared_rank ranks[most_ranks];
    channel channels[most_ranks][most_ranks];  // [from][to]
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace zero_emulation
