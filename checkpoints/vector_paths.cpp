// Names of tensors and states become paths. See vector_paths.hpp.
#include "vector_paths.hpp"

#include <map>

#include "paths.hpp"

namespace zero::checkpoint {

std::string root_of(const manifest& what, int model) {
    return what.head.model_ranks > 1 ? formatted("/model-{}/", model) : "/";
}

std::vector<placed_vector> vectors_of(const manifest& what, int model) {
    std::vector<const tensor_entry*> tensors;
    std::vector<std::string> names, states;
    std::map<std::string, std::size_t> number;  // of a state
    for (const tensor_entry& tensor : what.tensors) {
        if (tensor.model != model) continue;
        tensors.push_back(&tensor);
        names.push_back(tensor.name);
        for (const vector_entry& vector : tensor.vectors)
            if (vector.state != "value" && number.emplace(vector.state, states.size()).second)
                states.push_back(without_folders(vector.state));
    }
    const std::vector<std::string> paths = dataset_paths(names), folders = dataset_paths(states);
    const std::string root = root_of(what, model);
    std::vector<placed_vector> all;
    for (std::size_t k = 0; k < tensors.size(); ++k)
        for (const vector_entry& vector : tensors[k]->vectors) {
            const std::string folder = vector.state == "value" ? "parameters/" : "states/" + folders[number[vector.state]] + "/";
            all.push_back({root + folder + paths[k], tensors[k], &vector});
        }
    return all;
}

}  // namespace zero::checkpoint
