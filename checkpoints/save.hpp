// zero_save as the C ABI calls it. Collective over the ranks of the context, and of its model communicator.
#pragma once
#include <string>

namespace zero {
class engine;
}
namespace zero::files {
class disk;
}

namespace zero::checkpoint {

// `tag` empty: step-<12 digits>. Complete or absent: on failure the same zero::error on all ranks, and nothing is left.
// With checkpoint.async it is complete when the next call that joins it has returned (behind.hpp); the disk outlives that.
void save(engine& from, const std::string& directory, const std::string& tag);
void save(engine& from, const std::string& directory, const std::string& tag,
          const files::disk& disk);  // tests: a disk with hooks

}  // namespace zero::checkpoint
