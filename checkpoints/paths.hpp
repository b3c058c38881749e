// Names of tensors as paths of HDF5 datasets. A name may contain '/', which makes groups; "w" beside "w/b" would be a
// dataset and a group at once, so the former gets ".value" added (until it is free).
#pragma once
#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace zero::checkpoint {

// A state is a group that holds tensors: with '/' in its name it could lie inside another state's.
inline std::string without_folders(std::string name) {
    std::replace(name.begin(), name.end(), '/', '.');
    return name;
}

inline std::vector<std::string> dataset_paths(std::span<const std::string> names) {
    std::set<std::string> groups, taken;
    for (const std::string& name : names)
        for (std::size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
            groups.insert(name.substr(0, at));
    const std::set<std::string> all(names.begin(), names.end());
    std::vector<std::string> paths;
    for (const std::string& name : names) {
        std::string path = name;
        const auto in_use = [&] {
            return groups.contains(path) || taken.contains(path) || (path != name && all.contains(path));
        };
        while (in_use()) path += ".value";
        taken.insert(path);
        paths.push_back(std::move(path));
    }
    return paths;
}

}  // namespace zero::checkpoint
