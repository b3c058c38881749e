// `new` and `delete` for a whole test program, which remember the largest request.
#include "largest_allocation.hpp"

#include <cstdlib>
#include <new>

std::atomic<std::size_t> zero::test::largest_allocation{0};

namespace {

void* taken(std::size_t bytes, std::size_t alignment) {
    std::size_t known = zero::test::largest_allocation;
    while (bytes > known && !zero::test::largest_allocation.compare_exchange_weak(known, bytes)) {
    }
    void* const made = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
    if (made == nullptr) throw std::bad_alloc();
    return made;
}

}  // namespace

void* operator new(std::size_t bytes) {
    return taken(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return taken(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* made) noexcept {
    std::free(made);
}
void operator delete(void* made, std::size_t) noexcept {
    std::free(made);
}
void operator delete(void* made, std::align_val_t) noexcept {
    std::free(made);
}
void operator delete(void* made, std::size_t, std::align_val_t) noexcept {
    std::free(made);
}
