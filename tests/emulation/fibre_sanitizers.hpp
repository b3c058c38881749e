// What the sanitizers want to be told about a fibre; nothing without them.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace zero_emulation {

struct sanitizer_fibre {
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    void* shadow = nullptr;  // of calls, while it is not running
    void* thread = nullptr;  // of the thread sanitizer

    void make([[maybe_unused]] const void* stack, [[maybe_unused]] std::size_t stack_bytes) {
        bottom = stack;
        bytes = stack_bytes;
#if defined(__SANITIZE_THREAD__)
        drop();
        thread = __tsan_create_fiber(0);
#endif
    }
    void adopt() {
#if defined(__SANITIZE_THREAD__)
        thread = __tsan_get_current_fiber();
#endif
    }
    void drop() {
#if defined(__SANITIZE_THREAD__)
        if (thread != nullptr) __tsan_destroy_fiber(thread);
        thread = nullptr;
#endif
    }
};

// from: null when it never runs again.
inline void before_switch([[maybe_unused]] sanitizer_fibre* from, [[maybe_unused]] const sanitizer_fibre& to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(from != nullptr ? &from->shadow : nullptr, to.bottom, to.bytes);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(to.thread, 0);
#endif
}

// came_from: told where its stack is (the thread's own, the first time).
inline void after_switch([[maybe_unused]] sanitizer_fibre& mine, [[maybe_unused]] sanitizer_fibre* came_from) {
#if defined(__SANITIZE_ADDRESS__)
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(mine.shadow, &bottom, &bytes);
    mine.shadow = nullptr;
    if (came_from != nullptr) {
        came_from->bottom = bottom;
        came_from->bytes = bytes;
    }
#endif
}

}  // namespace zero_emulation
