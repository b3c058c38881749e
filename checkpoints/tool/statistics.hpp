// zero-ckpt: least, largest and mean element of the vectors of a tensor.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zero::tool {

struct summary {
    double least = 0, most = 0, sum = 0;  // of finite elements
    std::int64_t finite = 0, not_finite = 0;
    void see(double value);
    double mean() const { return sum / static_cast<double>(finite); }
    std::string text() const;
};
using statistics = std::vector<std::pair<std::string, summary>>;  // by state

std::vector<statistics> statistics_of(const std::string& folder);  // one per tensor, in the manifest's order

}  // namespace zero::tool
