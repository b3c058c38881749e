// The mask decides, the topology only orders it. See places.hpp.
#include "core/places.hpp"

#include <sched.h>

#include <algorithm>

namespace zero {

namespace {

bool contains(const cpu_list& cpus, int cpu) { return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end(); }

}  // namespace

std::vector<cpu_list> own_cores() {
    cpu_set_t mask;
    if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return {};
    std::vector<cpu_list> mine;
    for (const auto& core : cores_of_machine()) {
        cpu_list inside;
        for (const int cpu : core) {
            if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(static_cast<unsigned>(cpu), &mask)) continue;
            inside.push_back(cpu);
            CPU_CLR(static_cast<unsigned>(cpu), &mask);
        }
        if (!inside.empty()) mine.push_back(inside);
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)  // what the topology does not know
        if (CPU_ISSET(static_cast<unsigned>(cpu), &mask)) mine.push_back({cpu});
    const int here = ::sched_getcpu();
    const auto first = std::find_if(mine.begin(), mine.end(), [here](const cpu_list& core) { return contains(core, here); });
    if (first != mine.end()) std::rotate(mine.begin(), first, mine.end());
    return mine;
}

void stay_on(const cpu_list& cpus) noexcept {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (const int cpu : cpus) CPU_SET(static_cast<unsigned>(cpu), &mask);
    (void)::sched_setaffinity(0, sizeof mask, &mask);
}

}  // namespace zero
