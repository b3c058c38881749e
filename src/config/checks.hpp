// What one key cannot know alone: words this build does not have, keys of another optimizer or schedule, required keys.
#pragma once
#include "config/options.hpp"

namespace zero::config {

void check_words(const options& from);   // code::unsupported; code::config for nvme without nvme_path
void check_owners(const options& from);  // code::config: momentum with Adam, total_num_steps missing ...

}  // namespace zero::config
