// Ranks whose tensors lie in device memory: directly inside a node where the devices reach each other (direct.hpp), through host
// memory between nodes, and everywhere else too (staged.hpp). Sums are formed on the owner's device in the one order of
// communicator.hpp. What is small or lies in host memory goes over the ranks as they were.
#pragma once
#include <memory>
#include <string>

#include "comm/communicator.hpp"
#include "compute/processor.hpp"

namespace zero::comm {

// `reason` becomes why the ranks of a node talk through host memory, where they do. Collective. `work` outlives it.
std::unique_ptr<communicator> over_devices(std::unique_ptr<communicator> host, compute::processor& work, std::string& reason);

}  // namespace zero::comm
