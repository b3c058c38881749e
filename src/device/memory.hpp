// Buffers: aligned memory, owned or kept alive by somebody else (a part of the node's memory), whose bytes stand in the ledger
// from construction to destruction, but for times of rest. Host memory, unless a keeper says otherwise. Not here: how ranks share
// memory (node_memory.hpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/ledger.hpp"

namespace zero {

// pinned: locked pages; plain memory where locking is refused. untouched: large buffers get each page when it is first
// written, for what is filled at once by several threads; that the memory is there is asked before, but not held.
enum class memory_kind { plain, pinned, untouched };

class buffer {
public:
    buffer() = default;
    // Zeroed, 64-byte aligned, every page touched (unless untouched). bytes may be 0. Throws code::memory with size and purpose.
    buffer(ledger& book, purpose why, std::int64_t bytes, memory_kind kind = memory_kind::plain);
    // Memory that `keeper` holds, counted here.
    buffer(ledger& book, purpose why, std::int64_t bytes, std::byte* data, std::shared_ptr<const void> keeper,
           place where = place::host, bool locked = false);
    ~buffer();
    buffer(buffer&& other) noexcept;
    buffer& operator=(buffer&& other) noexcept;
    buffer(const buffer&) = delete;
    buffer& operator=(const buffer&) = delete;

    std::byte* data() const noexcept { return data_; }
    std::int64_t bytes() const noexcept { return bytes_; }
    bool locked() const noexcept { return locked_; }
    bool can_rest() const noexcept { return mapped_ > 0 && !locked_; }
    // Out of the ledger: the system may take the pages back whenever it is short (MADV_FREE), and until then wake() costs
    // no page faults. The bytes are lost.
    void rest() noexcept;
    void wake() noexcept;
    explicit operator bool() const noexcept { return data_ != nullptr; }

private:
    ledger* book_ = nullptr;
    purpose why_{};
    place where_ = place::host;
    std::byte* data_ = nullptr;
    std::int64_t bytes_ = 0;
    std::int64_t mapped_ = 0;  // length of the mapping; 0: from the heap
    bool locked_ = false;
    bool resting_ = false;
    std::shared_ptr<const void> keeper_;  // null: own memory
    std::byte* mapping() const noexcept;
};

}  // namespace zero
