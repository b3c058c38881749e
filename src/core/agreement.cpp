// How ranks agree (agreement.hpp): one all-reduce by maximum in the good case; texts travel only when something is
// wrong. Over a grid of ranks the data communicator agrees first, then the model communicator: after the first step
// every rank of the failing group knows, and each of them tells its own model communicator, so the whole grid throws
// the same.
#include "core/agreement.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace zero {

namespace {

struct verdict {
    code which = code::ok;
    std::string text;
    located where = located::nowhere;  // what an earlier agreement of the same call has written into the text
};

// What one rank says in the all-reduce. All ranks send the same number of values, whatever they call.
struct words {
    static constexpr std::size_t failing = 0, number = 1, digest = 3, votes = 7, count = votes + agreement::max_votes;
    std::array<std::int64_t, count> value{};

    // Maximum and, through the sign, minimum: they are equal only if all ranks said the same.
    void say(std::size_t at, std::int64_t what) {
        value[at] = what;
        value[at + 1] = -what;
    }
    bool unanimous(std::size_t at) const { return value[at] == -value[at + 1]; }
};

std::optional<verdict> run(const std::function<void()>& local) {
    try {
        if (local) local();
        return std::nullopt;
    } catch (const error& e) {
        return verdict{e.which(), e.what(), e.where()};
    } catch (const std::bad_alloc&) {
        return verdict{code::memory, "no memory is left on this rank", {}};
    } catch (const std::exception& e) {
        return verdict{code::internal, e.what(), {}};
    } catch (...) {
        return verdict{code::internal, "an unknown exception", {}};
    }
}

// The verdict of `root`, on every rank of the communicator.
verdict spread(comm::communicator& over, const verdict& mine, int root) {
    const std::string packed = over.broadcast(
        formatted("{} {} {}", static_cast<int>(mine.which), static_cast<int>(mine.where), mine.text), root);
    const std::size_t first = packed.find(' '), second = packed.find(' ', first + 1);
    return {static_cast<code>(std::stoi(packed.substr(0, first))), packed.substr(second + 1),
            static_cast<located>(std::stoi(packed.substr(first + 1)))};
}

// "rank 0", "ranks 1, 2, 3"; long lists end in "...".
std::string list_ranks(const std::vector<int>& ranks, const char* word) {
    constexpr std::size_t shown = 8;
    std::string text = formatted("{}{}", word, ranks.size() == 1 ? "" : "s");
    for (std::size_t i = 0; i < ranks.size() && i < shown; ++i)
        text += formatted("{}{}", i == 0 ? " " : ", ", ranks[i]);
    return ranks.size() > shown ? text + ", ..." : text;
}

// Who says what: "zero_save on rank 0, zero_step on ranks 1, 2". Complete on rank 0 only.
std::string camps(comm::communicator& over, const std::string& mine, const char* word, const char* between) {
    const std::vector<std::string> all = over.gather(mine, 0);
    std::map<std::string, std::vector<int>> by_text;
    for (std::size_t rank = 0; rank < all.size(); ++rank) by_text[all[rank]].push_back(static_cast<int>(rank));
    std::string text;
    for (const auto& [said, ranks] : by_text) {
        text += formatted("{}{}{}{}", text.empty() ? "" : ", ", said, between, list_ranks(ranks, word));
    }
    return text;
}

// One round over one communicator. `mine`: this rank's own failure. Collective; every rank gets the same verdict but
// for `origin`, which is the rank that failed, or -1 when all know it at first hand.
struct round {
    comm::communicator& over;
    const call& what;
    const char* word;  // "rank", "model rank"
    bool compare_digests;
    int origin = -1;

    std::optional<verdict> operator()(const std::optional<verdict>& mine, std::span<std::int64_t> votes) {
        words said;
        said.value[words::failing] = mine ? over.size() - over.rank() : 0;  // the lowest failing rank wins
        said.say(words::number, what.number);
        said.say(words::digest, static_cast<std::int64_t>(what.digest & 0xffffffffU));
        said.say(words::digest + 2, static_cast<std::int64_t>(what.digest >> 32));
        for (std::size_t i = 0; i < agreement::max_votes; ++i) {
            said.value[words::votes + i] = i < votes.size() ? votes[i] : std::numeric_limits<std::int64_t>::min();
        }
        over.all_reduce(said.value, comm::combine::maximum);
        if (said.value[words::failing] > 0) {
            origin = over.size() - static_cast<int>(said.value[words::failing]);
            return spread(over, mine.value_or(verdict{}), origin);
        }
        if (!said.unanimous(words::number)) return spread(over, different_calls(), 0);
        if (compare_digests && !(said.unanimous(words::digest) && said.unanimous(words::digest + 2))) {
            return spread(over, different_arguments(), 0);
        }
        for (std::size_t i = 0; i < votes.size(); ++i) votes[i] = said.value[words::votes + i];
        return std::nullopt;
    }

    verdict different_calls() {
        return {code::mismatch,
                formatted("different collective calls met: {}; every rank must make the same calls in the "
                          "same order",
                          camps(over, what.name, word, " on ")), {}};
    }
    verdict different_arguments() {
        return {code::mismatch,
                formatted("{}: the arguments or the state behind them differ between ranks ({}), such as an option that "
                          "was set on some ranks only; they must be equal on all ranks",
                          what.name, camps(over, formatted("{:016x}", what.digest), word, " on ")), {}};
    }
};

// Everywhere but on the failing rank itself, the text says whose it is: once, though some ranks bring it to a later
// agreement of the same call.
verdict attributed(verdict one, located level, int origin, bool own) {
    if (own || one.where >= level) return one;
    if (origin >= 0) one.text = formatted("{} {}: {}", level == located::rank ? "rank" : "model rank", origin, one.text);
    one.where = level;
    return one;
}

[[noreturn]] void fail_as(const verdict& one) { throw error(one.which, one.text, one.where); }

}  // namespace

void agreement::enter(const call& what, const std::function<void()>& local, std::span<std::int64_t> votes) {
    meet(what, [&] {
        if (first_) first_();
        if (local) local();
    }, votes);
}

void agreement::meet(const call& what, const std::function<void()>& local, std::span<std::int64_t> votes) {
    const std::optional<verdict> mine = run([&] {
        require(votes.size() <= max_votes, code::internal, "{}: {} votes, at most {}", what.name, votes.size(),
                max_votes);
        if (local) local();
    });
    const std::span<std::int64_t> counted = votes.first(std::min<std::size_t>(votes.size(), max_votes));

    round data{ranks_, what, "rank", true};
    const std::optional<verdict> here = data(mine, counted);
    if (model_ == nullptr || !what.over_model) {
        if (!here) return;
        ++failures_;
        fail_as(attributed(*here, located::rank, data.origin, data.origin == ranks_.rank()));
    }

    // The other groups hear the text with the rank in it, whoever of this group tells them.
    std::optional<verdict> told = here;
    if (told) told = attributed(*here, located::rank, data.origin, false);
    round model{*model_, what, "model rank", false};
    const std::optional<verdict> anywhere = model(told, counted);
    if (!anywhere) return;
    ++failures_;
    const bool own_group = model.origin == model_->rank();
    if (own_group && data.origin == ranks_.rank()) fail_as(*here);
    fail_as(attributed(*anywhere, located::model_rank, model.origin, own_group));
}

std::uint64_t digest(const void* data, std::size_t bytes, std::uint64_t seed) noexcept {
    return XXH3_64bits_withSeed(data, bytes, seed);
}

}  // namespace zero
