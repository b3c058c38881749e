// The race detector: see race.hpp. Clocks are fixed when an operation is enqueued, so what it finds does not depend on
// the order in which the queue happens to run.
#include "race.hpp"

#include <algorithm>
#include <cstdio>

namespace zero_emulation {
namespace {

// An operation is over for everybody once the host has seen its end: whatever is enqueued later comes after it.
void forget(machine& m, std::vector<access>& history) {
    std::erase_if(history, [&](const access& each) { return m.host.of(each.stream) >= each.number; });
}

bool overlap(const access& a, std::uintptr_t begin, std::uintptr_t end) {
    return a.begin < end && begin < a.end;
}

std::string side(const access& a) {
    return std::string(a.write ? "  written by " : "  read by ") + a.what + " (stream " + std::to_string(a.stream) +
           ", operation " + std::to_string(a.number) + ")\n" + to_text(a.where);
}

std::vector<access>& history_of(machine& m, std::uintptr_t begin) {
    static std::vector<access> elsewhere;  // pageable memory
    const auto owner = find(m, begin);
    return owner ? owner->history : elsewhere;
}

}  // namespace

std::shared_ptr<allocation> find(machine& m, std::uintptr_t address) {
    auto next = m.allocations.upper_bound(address);
    if (next == m.allocations.begin()) return nullptr;
    const auto& candidate = std::prev(next)->second;
    return address <= candidate->end() ? candidate : nullptr;
}

std::shared_ptr<allocation> find_grave(machine& m, std::uintptr_t address) {
    auto next = m.graves.upper_bound(address);
    if (next == m.graves.begin()) return nullptr;
    const auto& candidate = std::prev(next)->second;
    return address <= candidate->end() ? candidate : nullptr;
}

std::string describe(std::uintptr_t begin, std::uintptr_t end) {
    char text[80];
    std::snprintf(text, sizeof text, "%zu bytes at 0x%zx", static_cast<std::size_t>(end - begin),
                  static_cast<std::size_t>(begin));
    return text;
}

void touch(machine& m, const operation& what, std::size_t stream, std::uint64_t number, const vector_clock& clock) {
    for (const range& each : what.ranges) {
        if (each.bytes == 0) continue;
        const access mine{reinterpret_cast<std::uintptr_t>(each.data),
                          reinterpret_cast<std::uintptr_t>(each.data) + each.bytes,
                          each.how != use::read,
                          stream,
                          number,
                          what.what,
                          what.where};
        std::vector<access>& history = history_of(m, mine.begin);
        forget(m, history);
        for (const access& other : history) {
            if (!overlap(other, mine.begin, mine.end) || !(other.write || mine.write)) continue;
            if (clock.of(other.stream) >= other.number || (other.stream == stream && other.number <= number)) continue;
            problem(m, "race: nothing orders two accesses of " +
                           describe(std::max(mine.begin, other.begin), std::min(mine.end, other.end)) + "\n" +
                           side(other) + side(mine));
            break;
        }
        if (mine.write) {  // whoever is ordered after this write is ordered after those before it, too
            std::erase_if(history, [&](const access& other) {
                return mine.begin <= other.begin && other.end <= mine.end && clock.of(other.stream) >= other.number;
            });
        }
        history.push_back(mine);
    }
}

bool in_flight(machine& m, std::uintptr_t begin, std::size_t bytes, bool only_writes) {
    for (const access& each : history_of(m, begin)) {
        if (!overlap(each, begin, begin + bytes) || (only_writes && !each.write)) continue;
        if (m.host.of(each.stream) < each.number) return true;
    }
    return false;
}

void host_touches(machine& m, std::uintptr_t begin, std::size_t bytes, bool write, const char* how) {
    for (const access& each : history_of(m, begin)) {
        if (!overlap(each, begin, begin + bytes) || !(each.write || write)) continue;
        if (m.host.of(each.stream) >= each.number) continue;
        problem(m, std::string("race: ") + how + " " + describe(begin, begin + bytes) +
                       " and does not know that this is over:\n" + side(each) + "  the host:\n" + to_text(here()));
        return;
    }
}

}  // namespace zero_emulation
