// A communicator whose operations move on while the caller computes: a helper thread of this rank polls what is under way.
// Not here: what moving on means (the communicator underneath), and when a helper is worth its core (engine/).
#pragma once
#include <memory>

#include "comm/communicator.hpp"

namespace zero::comm {

// The same ranks and the same bits. No thread before start_helper().
std::unique_ptr<communicator> in_background(std::unique_ptr<communicator> foreground);

}  // namespace zero::comm
