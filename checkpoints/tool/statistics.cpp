// One pass over all data for statistics.hpp, with all checks of reading.
#include "statistics.hpp"

#include <algorithm>
#include <cmath>

#include "content.hpp"
#include "progress.hpp"

namespace zero::tool {

void summary::see(double value) {
    if (!std::isfinite(value)) {
        ++not_finite;
        return;
    }
    least = finite == 0 ? value : std::min(least, value);
    most = finite == 0 ? value : std::max(most, value);
    sum += value;
    ++finite;
}

std::string summary::text() const {
    const std::string numbers =
        finite == 0 ? "no number" : formatted("min {:.6g}, max {:.6g}, mean {:.6g}", least, most, mean());
    return not_finite == 0 ? numbers : formatted("{}, {} not finite", numbers, not_finite);
}

std::vector<statistics> statistics_of(const std::string& folder) {
    content from(folder);
    progress bar(from.what().head.bytes);
    std::vector<statistics> all;
    for (const auto& tensor : from.what().tensors) {
        statistics& found = all.emplace_back();
        for (const auto& vector : tensor.vectors) {
            summary& of = found.emplace_back(vector.state, summary{}).second;
            from.each_chunk(vector, tensor.count, dtype::f64,
                            [&](std::int64_t, std::int64_t count, const std::byte* data) {
                                const auto* values = reinterpret_cast<const double*>(data);
                                for (std::int64_t k = 0; k < count; ++k) of.see(values[k]);
                                bar.add(count * size_of(vector.type));
                            });
        }
    }
    return all;
}

}  // namespace zero::tool
