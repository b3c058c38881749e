// The collective calls, as agreements compare them.
#pragma once
#include <string_view>

#include "core/agreement.hpp"

namespace zero::calls {

inline call init(std::uint64_t digest) { return {"zero_init", 1, digest}; }
inline call set_model_comm() { return {"zero_set_model_comm", 2, 0}; }
inline call commit(std::uint64_t digest) { return {"zero_commit", 3, digest}; }
inline call fill(std::uint64_t digest) { return {"zero_fill", 4, digest}; }
inline call gather(std::uint64_t digest) { return {"zero_gather", 5, digest}; }
inline call prefetch(std::uint64_t digest) { return {"zero_prefetch", 6, digest}; }
inline call scatter(std::uint64_t digest) { return {"zero_scatter", 7, digest}; }
inline call gather_to(std::uint64_t digest) { return {"zero_gather_to", 8, digest}; }
inline call gather_state(std::uint64_t digest) { return {"zero_gather_state", 9, digest}; }
inline call scatter_state(std::uint64_t digest) { return {"zero_scatter_state", 10, digest}; }
inline call step(std::uint64_t digest) { return {"zero_step", 11, digest, true}; }
inline call finish(std::uint64_t digest) { return {"zero_finish", 12, digest, true}; }
inline call publish(std::uint64_t digest) { return {"zero_publish", 13, digest}; }
inline call dot(std::uint64_t digest) { return {"zero_dot", 14, digest, true}; }
inline call wait() { return {"zero_wait", 15, 0}; }
inline call report() { return {"zero_report", 16, 0}; }
inline call finalize() { return {"zero_finalize", 17, 0}; }
inline call renewal() { return {"zero_step, zero_publish, zero_load (copies that are open)", 21, 0}; }
inline call adopt() { return {"zero_load (values everywhere)", 18, 0, true}; }
// With enable_sanity_checks only: local calls that then compare their arguments over the ranks.
inline call release(std::uint64_t digest) { return {"zero_release", 19, digest}; }
inline call rebind(std::uint64_t digest) { return {"zero_rebind", 20, digest}; }

constexpr call save{"zero_save", 40, 0, true}, load{"zero_load", 41, 0, true};
constexpr call should_stop{"zero_should_stop", 51, 0};

// A call whose arguments are wrong on this rank, before it could say which call it is.
inline call refused(const char* name) {
    const std::string_view wanted(name);
    bool over_model = false;
    for (const call& one : {step(0), finish(0), dot(0), save, load}) over_model |= wanted == one.name;
    return {name, 50, 0, over_model};
}

}  // namespace zero::calls
