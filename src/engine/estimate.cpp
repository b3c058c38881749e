// zero_estimate: the planner's arithmetic over an imagined model of one dtype. No MPI, no allocation.
#include <algorithm>

#include "core/error.hpp"
#include "device/devices.hpp"
#include "engine/engine.hpp"
#include "stage/stage.hpp"

namespace zero {

estimate estimate_memory(const std::string& config, dtype type, int ranks, int nodes, std::int64_t elements, std::int64_t largest) {
    require(is_parameter_type(type), code::argument, "zero_estimate: dtype {} is no parameter type", static_cast<int>(type));
    require(ranks >= 1 && nodes >= 1 && nodes <= ranks, code::argument, "zero_estimate: {} ranks on {} nodes", ranks, nodes);
    require(elements >= 0 && largest >= 0, code::argument, "zero_estimate: elements and largest may not be negative");
    config::options options;
    options.read(config);
    const std::int64_t size = std::clamp<std::int64_t>(largest == 0 ? elements : largest, 1, std::max<std::int64_t>(1, elements));
    constexpr std::int64_t most_tensors = 1 << 20;
    require(elements / size <= most_tensors, code::argument, "zero_estimate: {} elements in tensors of at most {} are more than {} tensors: give the largest tensor's size",
            elements, size, most_tensors);
    const auto how = config::resolve(options, ranks, size);
    std::vector<partition::item> items;
    for (std::int64_t left = elements; left > 0; left -= size) items.push_back({std::min(size, left), type, 0, true, true});
    partition::topology where;
    where.ranks = ranks;
    where.nodes = ranks % nodes == 0 ? nodes : 1;
    const partition::layout space(items, stage::layout_rules(how, where));
    partition::plan_rules rules;
    rules.stage = how.stage;
    // Whether ranks can share memory shows when they run. The estimate counts on it where the configuration says so itself.
    const bool on_device = how.device == "cuda" || (how.device == "auto" && choose_device("auto").number >= 0);
    rules.node_memory = !on_device && options.has("libzero.node_shared") && how.node_shared && where.nodes == nodes;
    rules.states_offloaded = on_device && how.offload_optimizer ? how.offload_ratio : 0;
    rules.slices_offloaded = on_device && how.offload_param;
    rules.running_sums = stage::keeps_running_sums(how);
    rules.optimizer_states = static_cast<int>(stage::optimizer_states(how).size());
    const auto all = partition::plan(space, rules);
    estimate bytes;
    (on_device ? bytes.device : bytes.host) = all.model_states();
    if (on_device) bytes.host = partition::forecast::model_states(all.offloaded);
    return bytes;
}

}  // namespace zero
