// Head, middle and tail in the slowest dimension; head and tail are ranges of an array with one dimension less.
#include "boxes.hpp"

#include <functional>
#include <numeric>

namespace zero::checkpoint {
namespace {

struct cutter {
    std::span<const std::int64_t> dims;
    std::vector<std::int64_t> strides;
    std::vector<box> found;

    void add(const std::vector<std::int64_t>& prefix, std::size_t dim, std::int64_t start, std::int64_t extent) {
        box made{prefix, std::vector<std::int64_t>(dim, 1)};
        made.start.push_back(start);
        made.extent.push_back(extent);
        for (std::size_t inner = dim + 1; inner < dims.size(); ++inner) {
            made.start.push_back(0);
            made.extent.push_back(dims[inner]);
        }
        found.push_back(std::move(made));
    }

    void descend(std::vector<std::int64_t> prefix, std::int64_t at, std::int64_t first, std::int64_t count) {
        prefix.push_back(at);
        cut(prefix, first, count);
    }

    void cut(const std::vector<std::int64_t>& prefix, std::int64_t first, std::int64_t count) {
        if (count == 0) return;
        const std::size_t dim = prefix.size();
        const std::int64_t stride = strides[dim];
        const std::int64_t end = first + count;
        std::int64_t low = first / stride;
        const std::int64_t high = end / stride;
        const std::int64_t head = first % stride, tail = end % stride;
        if (low == high) return descend(prefix, low, head, count);
        if (head != 0) descend(prefix, low++, head, stride - head);
        if (high > low) add(prefix, dim, low, high - low);
        if (tail != 0) descend(prefix, high, 0, tail);
    }
};

}  // namespace

std::vector<box> boxes(std::span<const std::int64_t> dims, std::int64_t first, std::int64_t count) {
    cutter work{dims, std::vector<std::int64_t>(dims.size(), 1), {}};
    for (std::size_t dim = dims.size() - 1; dim > 0; --dim) work.strides[dim - 1] = work.strides[dim] * dims[dim];
    work.cut({}, first, count);
    return std::move(work.found);
}

}  // namespace zero::checkpoint
