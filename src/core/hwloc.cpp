// The cores of the machine as hwloc sees them. Not here: which of them are ours (places.cpp).
#include <hwloc.h>

#include "core/places.hpp"

namespace zero {

namespace {

class machine {
public:
    machine() {
        if (::hwloc_topology_init(&all_) != 0) {
            all_ = nullptr;
        } else if (::hwloc_topology_load(all_) != 0) {
            ::hwloc_topology_destroy(all_);
            all_ = nullptr;
        }
    }
    ~machine() {
        if (all_ != nullptr) ::hwloc_topology_destroy(all_);
    }
    machine(const machine&) = delete;
    machine& operator=(const machine&) = delete;

    hwloc_obj_t next_core(hwloc_obj_t after) const {
        return all_ == nullptr ? nullptr : ::hwloc_get_next_obj_by_type(all_, HWLOC_OBJ_CORE, after);
    }

private:
    hwloc_topology_t all_ = nullptr;
};

}  // namespace

std::vector<cpu_list> cores_of_machine() {
    const machine here;
    std::vector<cpu_list> cores;
    for (hwloc_obj_t core = here.next_core(nullptr); core != nullptr; core = here.next_core(core)) {
        cores.emplace_back();
        for (int cpu = ::hwloc_bitmap_first(core->cpuset); cpu >= 0; cpu = ::hwloc_bitmap_next(core->cpuset, cpu))
            cores.back().push_back(cpu);
    }
    return cores;
}

}  // namespace zero
