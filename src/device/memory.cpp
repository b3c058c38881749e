// Host memory: large buffers are mappings of their own, small ones come from the heap. Every page is touched here, so
// that a shortage shows as an error at commit and not as a kill in the middle of a step.
#include "device/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "device/available.hpp"
#include "device/pages.hpp"

namespace zero {

namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::int64_t smallest_mapping = mebibyte / 4;
constexpr std::int64_t huge_page = 2 * mebibyte;
constexpr std::int64_t aligned_to_huge_pages = 16 * mebibyte;  // from here on; smaller ones would waste address space
constexpr std::int64_t cache_line = 64;

// Where a buffer starts in its first page. Streams that start at equal places in their pages get in each other's way in
// the nearest cache (stores seem to hit loads 4096 bytes away), and an update reads and writes five at a time.
constexpr std::int64_t most_stagger = 15 * 3 * cache_line;
std::int64_t stagger(const std::byte* mapping) noexcept {
    const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(mapping)) >> 12;
    return static_cast<std::int64_t>((number * 0x9E3779B97F4A7C15U) >> 60) * 3 * cache_line;
}

[[noreturn]] void refuse(purpose why, std::int64_t bytes, const std::string& reason) {
    fail(code::memory,
         "{} bytes of host memory for {} could not be had ({}): use more ranks, a higher stage or smaller buckets",
         bytes, name(why), reason);
}

void check_size(purpose why, std::int64_t bytes) {
    require(bytes >= 0, code::memory, "a buffer of {} bytes for {} is impossible: the sizes behind it overflowed",
            bytes, name(why));
    if (const std::string lacking = shortage(bytes); !lacking.empty()) refuse(why, bytes, lacking);
}

// A mapping whose start is a multiple of `unit`: maps more and gives the ends back. Null when refused.
std::byte* map_aligned(std::int64_t length, std::int64_t unit, std::int64_t page) noexcept {
    const std::int64_t extra = unit - page;
    void* all = ::mmap(nullptr, static_cast<std::size_t>(length + extra), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    const std::int64_t before =
        (unit - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(all) % static_cast<std::uintptr_t>(unit))) %
        unit;
    std::byte* start = static_cast<std::byte*>(all) + before;
    if (before > 0) ::munmap(all, static_cast<std::size_t>(before));
    if (extra > before) ::munmap(start + length, static_cast<std::size_t>(extra - before));
    return start;
}

// All pages at once, else one byte per page. They are zero already.
void touch(std::byte* data, std::int64_t bytes, std::int64_t page) noexcept {
    if (populate(data, bytes)) return;
    volatile std::byte* at = data;
    for (std::int64_t offset = 0; offset < bytes; offset += page) at[offset] = std::byte{0};
}

}  // namespace

buffer::buffer(ledger& book, purpose why, std::int64_t bytes, memory_kind kind) : book_(&book), why_(why) {
    check_size(why, bytes);
    if (bytes == 0) return;
    // Locking works on pages, so pinned memory never shares a page with the heap.
    if (bytes >= smallest_mapping || kind == memory_kind::pinned) {
        const std::int64_t page = page_bytes();
        if (bytes > INT64_MAX - 2 * huge_page) refuse(why, bytes, "more than the address space");
        const bool large = bytes >= aligned_to_huge_pages;
        mapped_ = round_up(bytes + most_stagger, page);
        data_ = map_aligned(mapped_, large ? huge_page : page, page);
        if (data_ == nullptr) refuse(why, bytes, std::strerror(errno));
        if (large)
            ::madvise(data_, static_cast<std::size_t>(mapped_), MADV_HUGEPAGE);  // a hint: faster where it is taken
        if (kind != memory_kind::untouched) touch(data_, mapped_, page);
        locked_ = kind == memory_kind::pinned && ::mlock(data_, static_cast<std::size_t>(mapped_)) == 0;
        data_ += stagger(data_);
    } else {
        const auto length = static_cast<std::size_t>(round_up(bytes, cache_line));
        data_ = static_cast<std::byte*>(std::aligned_alloc(static_cast<std::size_t>(cache_line), length));
        if (data_ == nullptr) refuse(why, bytes, std::strerror(ENOMEM));
        std::memset(data_, 0, length);
    }
    bytes_ = bytes;
    book_->add(place::host, why_, bytes_);
}

buffer::buffer(ledger& book, purpose why, std::int64_t bytes, std::byte* data, std::shared_ptr<const void> keeper, place where,
               bool locked)
    : book_(&book), why_(why), where_(where), data_(data), bytes_(bytes), locked_(locked), keeper_(std::move(keeper)) {
    book_->add(where_, why_, bytes_);
}

buffer::~buffer() {
    if (data_ == nullptr) return;
    if (keeper_) {
        keeper_.reset();
    } else if (mapped_ > 0) {
        ::munmap(mapping(), static_cast<std::size_t>(mapped_));  // unlocks too
    } else {
        std::free(data_);
    }
    if (!resting_) book_->remove(where_, why_, bytes_);
}

std::byte* buffer::mapping() const noexcept {
    return data_ - reinterpret_cast<std::uintptr_t>(data_) % static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
}

void buffer::rest() noexcept {
    resting_ = true;
    ::madvise(mapping(), static_cast<std::size_t>(mapped_), MADV_FREE);
    book_->remove(place::host, why_, bytes_);
}

void buffer::wake() noexcept {
    resting_ = false;
    book_->add(place::host, why_, bytes_);
}

buffer::buffer(buffer&& other) noexcept
    : book_(other.book_),
      why_(other.why_),
      where_(other.where_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_(std::exchange(other.mapped_, 0)),
      locked_(std::exchange(other.locked_, false)),
      resting_(std::exchange(other.resting_, false)),
      keeper_(std::move(other.keeper_)) {}

buffer& buffer::operator=(buffer&& other) noexcept {
    buffer taken(std::move(other));
    std::swap(book_, taken.book_);
    std::swap(why_, taken.why_);
    std::swap(where_, taken.where_);
    std::swap(data_, taken.data_);
    std::swap(bytes_, taken.bytes_);
    std::swap(mapped_, taken.mapped_);
    std::swap(locked_, taken.locked_);
    std::swap(resting_, taken.resting_);
    std::swap(keeper_, taken.keeper_);
    return *this;
}

}  // namespace zero
