// How ranks agree: every collective call opens with one small all-reduce that carries "I failed", which call this is
// and a digest of its arguments. So a rank that fails makes all ranks throw the same code with the failing rank's text,
// and two different collectives never pair up.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "comm/communicator.hpp"
#include "core/error.hpp"

namespace zero {

// A collective call as the other ranks see it.
struct call {
    const char* name = "";       // "zero_step": a string of the public contract
    int number = 0;              // unique per name
    std::uint64_t digest = 0;    // of the arguments that must be equal on all ranks
    bool over_model = false;     // the ranks of the model communicator take part as well, where there is one
};

class agreement {
public:
    explicit agreement(comm::communicator& ranks) : ranks_(ranks) {}
    void also_over(comm::communicator* model) noexcept { model_ = model; }

    // Runs `local` (checks, allocations: no communication inside), then meets the other ranks. Throws on all ranks:
    // the local error of the lowest failing rank, or code::mismatch naming both calls, or naming `what` when digests differ.
    // `votes` (optional, in and out): numbers of which the maximum over ranks is returned in place; at most max_votes.
    static constexpr int max_votes = 8;
    void enter(const call& what, const std::function<void()>& local, std::span<std::int64_t> votes = {});
    // What every call does first, as a part of its checks.
    void begin_with(std::function<void()> first) { first_ = std::move(first); }

    // The same check in the middle of a call: did this step fail anywhere?
    void settle(const call& what, const std::function<void()>& local) { meet(what, local, {}); }

    std::int64_t failures() const noexcept { return failures_; }  // that were said to all ranks

private:
    void meet(const call& what, const std::function<void()>& local, std::span<std::int64_t> votes);

    comm::communicator& ranks_;
    comm::communicator* model_ = nullptr;
    std::function<void()> first_;
    std::int64_t failures_ = 0;
};

std::uint64_t digest(const void* data, std::size_t bytes, std::uint64_t seed = 0) noexcept;  // xxHash
inline std::uint64_t digest(const std::string& text, std::uint64_t seed = 0) noexcept { return digest(text.data(), text.size(), seed); }

}  // namespace zero
