// Exceptions to codes, and this thread's last sentence. Not here: which exceptions are thrown, and why.
#include "capi/guard.hpp"

#include <exception>
#include <new>

#include "core/error.hpp"

namespace zero::capi {

namespace {

// Per thread, because the sentence belongs to the call that this thread made last.
struct sentence {
    std::string text;
    const char* fixed = "";  // used instead of text where there was no memory for a copy
};
thread_local sentence last;

int remember(code which, const char* text) noexcept {
    try {
        last.text = text;
        last.fixed = nullptr;
    } catch (...) {
        last.fixed = "out of memory, even for the text of the error";
    }
    return static_cast<int>(which);
}

}  // namespace

int remember_current_exception() noexcept {
    try {
        throw;
    } catch (const error& problem) {
        return remember(problem.which(), problem.what());
    } catch (const std::bad_alloc&) {
        return remember(code::memory,
                        "the library ran out of host memory for its own tables; give the job more memory");
    } catch (const std::exception& problem) {
        try {
            const std::string text = std::string("a fault of the library, please report it: ") + problem.what();
            return remember(code::internal, text.c_str());
        } catch (...) {
            return remember(code::internal, "a fault of the library, please report it");
        }
    } catch (...) {
        return remember(code::internal, "a fault of the library, please report it: unknown exception");
    }
}

const char* last_sentence() noexcept {
    return last.fixed != nullptr ? last.fixed : last.text.c_str();
}

}  // namespace zero::capi
