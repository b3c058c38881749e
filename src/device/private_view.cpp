// Finds the pages that were written by asking the kernel which of them are no longer the file's. See private_view.hpp.
#include "device/private_view.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "device/pages.hpp"

namespace zero {

namespace {

const std::int64_t page = page_bytes();

// Documentation/admin-guide/mm/pagemap.rst: 64 bits for each page of the process.
constexpr std::uint64_t is_of_a_file = std::uint64_t{1} << 61, is_present = std::uint64_t{1} << 63, is_swapped = std::uint64_t{1} << 62;
bool is_copy(std::uint64_t entry) noexcept { return (entry & (is_present | is_swapped)) != 0 && (entry & is_of_a_file) == 0; }

}  // namespace

private_view::private_view(std::shared_ptr<node_memory> memory, const node_memory::stretch& of)
    : memory_(std::move(memory)), original_(of.data), data_(nullptr), bytes_(of.bytes), page_map_(-1) {
    if (bytes_ == 0) return;
    data_ = memory_->map_privately(of.data, bytes_);
    require(data_ != nullptr, code::memory, "{} bytes of address space could not be had ({}): raise the limit of the shell (ulimit -v)",
            bytes_, std::strerror(errno));
    page_map_ = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

private_view::~private_view() {
    if (data_ != nullptr) ::munmap(data_, static_cast<std::size_t>(bytes_));
    if (page_map_ >= 0) ::close(page_map_);
}

// Calls each(first, end) for runs of pages that were, or may have been, written.
template <typename Each>
void private_view::written_pages(std::int64_t first, std::int64_t end, const Each& each) {
    std::array<std::uint64_t, 512> entries;
    const auto base = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data_)) / page;
    std::int64_t run = -1;  // where the present run began
    for (std::int64_t at = first; at < end;) {
        const std::int64_t n = std::min((end - at) / page, static_cast<std::int64_t>(entries.size()));
        const auto bytes = static_cast<std::size_t>(n) * sizeof entries[0];
        if (page_map_ < 0 || ::pread(page_map_, entries.data(), bytes, (base + at / page) * 8) != static_cast<ssize_t>(bytes))
            entries.fill(is_present);
        for (std::int64_t i = 0; i < n; ++i, at += page) {
            const bool copy = is_copy(entries[static_cast<std::size_t>(i)]);
            if (copy && run < 0) run = at;
            if (!copy && run >= 0) each(std::exchange(run, -1), at);
        }
    }
    if (run >= 0) each(run, end);
}

void private_view::refresh(std::int64_t offset, std::int64_t bytes, bool whole_pages) {
    if (bytes == 0) return;
    constexpr std::int64_t sooner_compared = 32 * 1024;  // than asked for: one call of the kernel takes about as long
    if (bytes <= sooner_compared && std::memcmp(data_ + offset, original_ + offset, static_cast<std::size_t>(bytes)) == 0) return;
    const std::int64_t end = offset + bytes;
    const auto drop = [&](std::int64_t from, std::int64_t to) {
        if (to > from) ::madvise(data_ + from, static_cast<std::size_t>(to - from), MADV_DONTNEED);
    };
    const auto restore = [&](std::int64_t from, std::int64_t to) {
        if (to > from) std::memcpy(data_ + from, original_ + from, static_cast<std::size_t>(to - from));
    };
    written_pages(offset / page * page, round_up(end, page), [&](std::int64_t from, std::int64_t to) {
        if (whole_pages) return drop(from, to);
        const std::int64_t inner_from = round_up(std::max(from, offset), page);
        const std::int64_t inner_to = std::max(inner_from, std::min(to, end) / page * page);
        restore(std::max(from, offset), std::min(inner_from, end));
        drop(inner_from, inner_to);
        restore(std::max(inner_to, offset), std::min(to, end));
    });
}

}  // namespace zero
