// Memory that all ranks of a node see: one anonymous file (memfd), mapped by every rank. It has a common part, in which all
// ranks take the same places by making the same calls, and a part per rank, in which that rank alone takes what it likes.
// Pages are reserved before they are touched: a shortage is an error, never a signal. Not here: flags, and who reads what
// when (comm/node_shared).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "device/memory.hpp"

namespace zero {

class node_memory : public std::enable_shared_from_this<node_memory> {
public:
    // What the other ranks need to open the file of the one that made it.
    struct address {
        std::int64_t process = 0, descriptor = -1, ranks = 1, part_bytes = 0;
        std::uint64_t token = 0;  // stands in the file: tells this file from one of another machine
    };

    // Both return null with the reason where the system does not allow it. They take address space, no memory.
    static std::shared_ptr<node_memory> make(int ranks, std::string& reason);
    static std::shared_ptr<node_memory> open(const address& where, int rank, std::string& reason);
    ~node_memory();
    node_memory(const node_memory&) = delete;
    node_memory& operator=(const node_memory&) = delete;

    const address& where() const noexcept { return where_; }
    std::byte* at(std::int64_t offset) const noexcept { return data_ + offset; }
    std::int64_t offset_of(const void* place) const noexcept;  // -1: outside

    // A stretch that is given back with the last copy of the pointer. A common one has reserved nothing yet.
    struct stretch {
        std::byte* data = nullptr;
        std::int64_t bytes = 0;
    };
    std::shared_ptr<const stretch> take_common(std::int64_t bytes);
    std::shared_ptr<const stretch> take_own(std::int64_t bytes);       // reserved, zero
    buffer own_buffer(ledger& book, purpose why, std::int64_t bytes);  // the same, booked; bytes > 0
    // Reserves and touches zeros; `first` need not be the start of a page. Throws code::memory.
    void reserve(const std::byte* first, std::int64_t bytes, bool pinned = false);
    void discard(const std::byte* first, std::int64_t bytes) noexcept;  // zeros again; whole pages go back to the system

    // A look at a part of the file in which this process may write without anybody noticing (device/private_view.hpp).
    std::byte* map_privately(const std::byte* first, std::int64_t bytes) const;  // null when refused

    // Ranks that live hold a lock, which the system takes from them when they end.
    bool lives(int rank) const noexcept;

private:
    struct part {
        std::int64_t first = 0;
        std::multiset<std::int64_t> ends;  // of the stretches in use; the next one lies behind them all
    };
    node_memory(int file, std::byte* data, const address& where, int rank);
    static std::shared_ptr<node_memory> map_and_lock(int file, const address& where, int rank, std::string& reason);
    std::shared_ptr<const stretch> take(part& from, std::int64_t bytes, std::int64_t stagger);
    void give_back(part& to, const stretch& what) noexcept;

    int file_;
    std::byte* data_;
    address where_;
    int rank_;
    part common_, own_;
};

}  // namespace zero
