// zero_load as the C ABI calls it. Collective over the ranks of the context, and of its model communicator.
#pragma once
#include <string>

namespace zero {
class engine;
}
namespace zero::files {
class disk;
}

namespace zero::checkpoint {

// `tag` empty: the newest commit that is whole; damaged ones before it are reported as warnings. All or nothing: on
// failure the same zero::error on all ranks, and the context is as it was.
void load(engine& into, const std::string& directory, const std::string& tag);
void load(engine& into, const std::string& directory, const std::string& tag,
          const files::disk& disk);  // tests: a disk with hooks

}  // namespace zero::checkpoint
