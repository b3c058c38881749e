// The border of the library: inside it errors are exceptions, outside they are codes with a sentence. Every C function
// runs its body in guard(), which is the last catch. It also sets the caller's floating-point environment aside.
#pragma once
#include <string>

#include "core/floating_point.hpp"

namespace zero::capi {

// Turns the exception being handled into a code and keeps its sentence for last_sentence(). Call only from a catch
// block.
int remember_current_exception() noexcept;
const char* last_sentence() noexcept;  // of this thread; never null

template <typename Work>
int guard(Work&& work) noexcept {
    const floating_point_guard callers_environment;
    try {
        work();
        return 0;
    } catch (...) {
        return remember_current_exception();
    }
}

}  // namespace zero::capi
