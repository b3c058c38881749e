// What a dataset of a whole tensor says of it in its attributes, wherever it stands.
#pragma once
#include <string>

#include "hdf5.hpp"
#include "manifest.hpp"

namespace zero::checkpoint {

inline void describe(const hdf5::attributes& with, hid_t dataset, const tensor_entry& tensor, const vector_entry& vector,
                     const std::string& uuid) {
    with.put(dataset, "name", tensor.name);
    with.put(dataset, "dtype", std::string(name(tensor.type)));
    with.put(dataset, "group", static_cast<std::int64_t>(tensor.group));
    with.put(dataset, "storage_order", std::string("row-major"));
    with.put(dataset, "uuid", uuid);
    if (vector.state != "value") return;
    with.put(dataset, "holds", std::string(tensor.frozen ? "frozen value" : vector.type == tensor.type ? "value" : "master"));
}

}  // namespace zero::checkpoint
