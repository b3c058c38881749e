// Numbers of the collective calls, as agreements compare them. 40 to 49: checkpoints, 50 to 59: stop requests.
#pragma once
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
inline call step(std::uint64_t digest) { return {"zero_step", 11, digest}; }
inline call finish(std::uint64_t digest) { return {"zero_finish", 12, digest}; }
inline call publish(std::uint64_t digest) { return {"zero_publish", 13, digest}; }
inline call dot(std::uint64_t digest) { return {"zero_dot", 14, digest}; }
inline call wait() { return {"zero_wait", 15, 0}; }
inline call report() { return {"zero_report", 16, 0}; }
inline call finalize() { return {"zero_finalize", 17, 0}; }
inline call adopt() { return {"zero_load (values everywhere)", 18, 0}; }
inline call sane(const char* name, int number, std::uint64_t digest) { return {name, number, digest}; }  // enable_sanity_checks

}  // namespace zero::calls
