// Where the helpers of a rank run: the cores that the launcher gave to the caller, and never another one. Not here: the threads
// (crew.hpp), and the caller, whose place is not the library's affair.
#pragma once
#include <vector>

namespace zero {

using cpu_list = std::vector<int>;  // numbers of the operating system

// The cores of this thread's mask, each with its hardware threads inside the mask: near ones in a row, the one that this thread
// runs on first. Empty where the system does not say.
std::vector<cpu_list> own_cores();

// From now on this thread runs on these, which must be in its mask. What the system refuses changes nothing.
void stay_on(const cpu_list& cpus) noexcept;

// The CPUs of each core of the machine, in the order of its topology: hwloc.cpp, or no_hwloc.cpp, which knows none.
std::vector<cpu_list> cores_of_machine();

}  // namespace zero
