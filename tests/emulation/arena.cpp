// Device memory of the emulation: see arena.hpp.
#include "arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace zero_emulation {
namespace {

constexpr std::size_t reserved = std::size_t{64} << 30;
constexpr int poison = 0xA5;

std::size_t up(std::size_t value, std::size_t unit) {
    return (value + unit - 1) / unit * unit;
}

void* map(std::size_t bytes, int protection, int flags, int file) {
    void* place = ::mmap(nullptr, bytes, protection, flags | MAP_NORESERVE, file, 0);
    if (place == MAP_FAILED) {
        std::perror("emulation: no address space for device memory");
        std::abort();
    }
    return place;
}

}  // namespace

void arena::reserve() {
    file_ = ::memfd_create("zero_emulated_device", MFD_CLOEXEC);
    if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(reserved)) != 0) {
        std::perror("emulation: no file for device memory");
        std::abort();
    }
    device_ = reinterpret_cast<std::uintptr_t>(map(reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
    kernel_ = reinterpret_cast<std::uintptr_t>(map(reserved, PROT_NONE, MAP_SHARED, file_));
    system_ = static_cast<std::byte*>(map(reserved, PROT_READ | PROT_WRITE, MAP_SHARED, file_));
    size_ = reserved;
    next_ = page;
}

std::uintptr_t arena::take(std::size_t bytes, std::uintptr_t& room, std::size_t& room_bytes) {
    if (size_ == 0) reserve();
    const std::size_t whole = up(std::max<std::size_t>(bytes, 1), alignment);
    room_bytes = up(whole, page);
    if (room_bytes > size_) return 0;
    if (next_ + room_bytes + page <= size_) {
        room = device_ + next_;
        next_ += room_bytes + page;
    } else {
        const auto found = rested_.lower_bound(room_bytes);
        if (found == rested_.end()) return 0;
        room = found->second;
        room_bytes = found->first;
        rested_.erase(found);
    }
    std::memset(system(room), poison, room_bytes);
    return room + room_bytes - whole;
}

bool arena::intact(std::uintptr_t begin, std::size_t bytes, std::uintptr_t room, std::size_t room_bytes) const {
    const auto is_poison = [](std::byte each) { return each == std::byte{poison}; };
    return std::all_of(system(begin + bytes), system(room) + room_bytes, is_poison) &&
           std::all_of(system(room), system(begin), is_poison);
}

void arena::give_back(std::uintptr_t room, std::size_t room_bytes) {
    ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset(room)),
                static_cast<off_t>(room_bytes));
    rested_.emplace(room_bytes, room);
}

std::uintptr_t arena::device_of(std::uintptr_t address) const {
    const auto first = reinterpret_cast<std::uintptr_t>(system_);
    for (const std::uintptr_t start : {device_, kernel_, first}) {
        if (address - start < size_) return device_ + (address - start);
    }
    return 0;
}

int arena::file() {
    if (size_ == 0) reserve();
    return file_;
}

void arena::open_for_kernel(std::uintptr_t begin, std::uintptr_t end, bool write) {
    const std::uintptr_t first = kernel(begin) / page * page;
    ::mprotect(reinterpret_cast<void*>(first), up(kernel(end) - first, page),
               write ? PROT_READ | PROT_WRITE : PROT_READ);
}

void arena::close_for_kernel(std::uintptr_t begin, std::uintptr_t end) {
    const std::uintptr_t first = kernel(begin) / page * page;
    ::mprotect(reinterpret_cast<void*>(first), up(kernel(end) - first, page), PROT_NONE);
}

}  // namespace zero_emulation
