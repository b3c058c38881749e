// A look at memory of the node in which the caller may scribble: pages are the node's own until this process writes into
// them, then copies that nobody else sees. refresh() makes them the node's again. Not here: whose values they are.
#pragma once
#include <cstdint>
#include <memory>

#include "device/node_memory.hpp"

namespace zero {

class private_view {
public:
    // Throws code::memory. `of` starts at the start of a page.
    private_view(std::shared_ptr<node_memory> memory, const node_memory::stretch& of);
    ~private_view();
    private_view(const private_view&) = delete;
    private_view& operator=(const private_view&) = delete;

    std::byte* at(std::int64_t offset) const noexcept { return data_ + offset; }
    // `bytes` from `offset` on show the node's values again. Pages at the ends may hold neighbours: unless `whole_pages`,
    // what was written there outside of the range stays.
    void refresh(std::int64_t offset, std::int64_t bytes, bool whole_pages);

private:
    template <typename Each>
    void written_pages(std::int64_t first, std::int64_t end, const Each& each);

    std::shared_ptr<node_memory> memory_;
    const std::byte* original_;
    std::byte* data_;
    std::int64_t bytes_;
    int page_map_;  // -1: the system does not tell which pages were written
};

}  // namespace zero
