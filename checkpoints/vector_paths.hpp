// Where whole tensors stand in HDF5 files that people read (index.h5, and what zero-ckpt merge writes): parameters/<name>,
// states/<state>/<name>, each model rank of a split model under its own folder. Not here: how parts are laid out (plan.hpp).
#pragma once
#include <string>
#include <vector>

#include "manifest.hpp"

namespace zero::checkpoint {

std::string root_of(const manifest& what, int model);  // "/" or "/model-<m>/"

struct placed_vector {
    std::string path;
    const tensor_entry* tensor;
    const vector_entry* vector;
};
std::vector<placed_vector> vectors_of(const manifest& what, int model);  // in the manifest's order

}  // namespace zero::checkpoint
