// Device memory: one anonymous file and three places to see it. The addresses that callers get lie in a mapping that
// nobody may touch; kernels see the file through a second one, which is closed but for what the running kernel has
// declared; copies through a third. Not here: who owns what (memory.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>

namespace zero_emulation {

class arena {
public:
    static constexpr std::size_t page = 4096, alignment = 256;

    bool holds(std::uintptr_t device) const { return device - device_ < size_ && size_ != 0; }
    // The end of the bytes is at the end of a page, but for rounding up to the alignment; a page that nobody may touch
    // follows. 0: no room. `room` and `room_bytes` are for give_back().
    std::uintptr_t take(std::size_t bytes, std::uintptr_t& room, std::size_t& room_bytes);
    void give_back(std::uintptr_t room, std::size_t room_bytes);
    // Whether nobody wrote between what was asked for and the end of its pages.
    bool intact(std::uintptr_t begin, std::size_t bytes, std::uintptr_t room, std::size_t room_bytes) const;

    std::byte* system(std::uintptr_t device) const { return system_ + (device - device_); }
    std::uintptr_t kernel(std::uintptr_t device) const { return kernel_ + (device - device_); }
    std::uintptr_t device_of(std::uintptr_t address) const;  // of an address in any of the three; 0: elsewhere
    std::int64_t offset(std::uintptr_t device) const { return static_cast<std::int64_t>(device - device_); }
    int file();  // which another process may read
    void open_for_kernel(std::uintptr_t begin, std::uintptr_t end, bool write);
    void close_for_kernel(std::uintptr_t begin, std::uintptr_t end);

private:
    void reserve();
    int file_ = -1;
    std::size_t size_ = 0, next_ = 0;
    std::uintptr_t device_ = 0, kernel_ = 0;
    std::byte* system_ = nullptr;
    std::multimap<std::size_t, std::uintptr_t> rested_;  // used again when the addresses run out
};

}  // namespace zero_emulation
