// Which stored elements a rank needs: the overlaps of its own ranges with the stored pieces, grouped by file and
// sorted, so that each file is opened once and read forwards. Pure arithmetic.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "manifest.hpp"
#include "reader.hpp"
#include "state.hpp"

namespace zero::checkpoint {

using demand = std::map<int, std::vector<wanted>>;  // by extent; extents of one file follow each other in file order

// Elements first .. first+count-1 of the vector, into `to`.
void add_range(demand& all, const vector_entry& from, std::int64_t first, std::int64_t count, dtype type,
               std::byte* to);
void sort(demand& all);

// By name, for one model rank.
class catalogue {
public:
    catalogue(const manifest& what, int model);
    const tensor_entry* tensor(const std::string& name) const;
    const std::map<std::string, const tensor_entry*>& tensors() const noexcept { return tensors_; }

private:
    std::map<std::string, const tensor_entry*> tensors_;
};
const vector_entry* find_vector(const tensor_entry& in, const std::string& state);
const attachment_entry* find_attachment(const manifest& what, const std::string& name, int model, int rank);

}  // namespace zero::checkpoint
