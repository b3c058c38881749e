// Failures of a rank that must still take part in what the others do: the first is kept until then. Not here: how others
// learn of it (core/agreement.hpp).
#pragma once
#include <exception>
#include <utility>

namespace zero {

class postponed {
public:
    template <typename Work>
    void attempt(const Work& work) noexcept {
        try {
            work();
        } catch (...) {
            if (!first_) first_ = std::current_exception();
        }
    }
    std::exception_ptr failure() const noexcept { return first_; }
    void rethrow() const {
        if (first_) std::rethrow_exception(first_);
    }

private:
    std::exception_ptr first_;
};

}  // namespace zero
