// Long reads and writes with several requests under way, so that the storage is busy while the next bytes are prepared
// or the last ones checked. Not here: which bytes (saving_data.cpp, loading.cpp), and how the kernel is asked (ring.hpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "files.hpp"

namespace zero::checkpoint {

struct transfer {
    files::file* file = nullptr;
    bool writes = false;
    void* data = nullptr;
    std::int64_t bytes = 0, offset = 0;
};
// The next request: number k in lane `lane`, whose memory nobody else uses until `taken` has returned.
using next_transfer = std::function<transfer(int lane, std::size_t k)>;
// `had`: the bytes moved; fewer than asked for when a file that is read ends.
using transfer_taken = std::function<void(int lane, std::size_t k, std::int64_t had)>;

// For k = 0 .. count-1, begun in this order, ended in any. After a failure none begins, those under way are waited for,
// and it is thrown. By the ring where the kernel has one: all by the calling thread; else by `lanes` threads.
void carry_out(int lanes, std::size_t count, const next_transfer& next, const transfer_taken& taken);

// The two ways, for tests. False: the kernel refuses, nothing was done.
bool by_ring(int lanes, std::size_t count, const next_transfer& next, const transfer_taken& taken);
void by_threads(int lanes, std::size_t count, const next_transfer& next, const transfer_taken& taken);

}  // namespace zero::checkpoint
