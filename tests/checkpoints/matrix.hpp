// What the matrices of ranks, stages, layouts, dtypes and places have in common.
#pragma once
#include "varied_model.hpp"

namespace zero::test {

inline const std::string clipped = R"(, "gradient_clipping": 1.5)";

// Layout 0: the nodes that MPI finds (here one); 1: two equal nodes, or a node for each rank where that does not go.
inline std::string json_of(int ranks, int stage, int layout, const std::string& optimizer, const std::string& more) {
    std::string json = json_for(stage, optimizer, more);
    const int node_size = layout == 0 ? 0 : ranks % 2 == 0 ? ranks / 2 : 1;
    const std::string key = "\"libzero\": {";
    return json.insert(json.find(key) + key.size(), "\"node_size\": " + std::to_string(node_size) + ", ");
}

inline void go_on(varied& model, int from, int to) {
    for (int number = from; number < to; ++number) model.step(number, false);
}

}  // namespace zero::test
