// What changes from step to step in a context. See engine.hpp.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "engine/calls.hpp"
#include "engine/engine.hpp"
#include "stage/stage.hpp"

namespace zero {

struct engine::run {
    // idle: nothing handed over since the last boundary. open: inside an accumulation window. finished: the window's
    // gradient is complete (zero_finish at a boundary) and waits for step or publish.
    enum class phase { idle, open, finished };

    phase now = phase::idle;
    bool micro_step_ended = false;      // zero_finish ended a micro-step inside the window; zero_step has nothing to add
    bool gradient_readable = false;     // "gradient" holds the last reduced gradient
    std::int64_t step = 0, skipped = 0, micro_step = 0;
    double grad_norm = 0;
    bool overflow = false;              // of the last update that was tried
    bool finite = true;                 // of the finished gradient
    optimizer::loss_scale scale;
    std::vector<config::group_settings> groups;
    std::set<std::string> written;      // vectors whose own slices the caller got by zero_slice since finish
    std::vector<char> received;         // per tensor: whole values came to this rank since the last update
    std::vector<int> holders;           // per tensor that is whole: open gathers
    std::uint64_t options_digest = 0;
    std::int64_t window_digest = 0;     // of the buckets that travel in this window
    std::size_t judged_groups = 0;      // of these it is known whether the squares of their gradients vanish
    double seconds_reducing = 0, seconds_updating = 0;
};

// Digest of a collective call's arguments.
inline std::uint64_t digest_of(std::initializer_list<std::int64_t> numbers, const std::string& text = {}) {
    std::uint64_t all = digest(text);
    for (std::int64_t n : numbers) all = digest(&n, sizeof n, all);
    return all;
}

}  // namespace zero
