// zero.h, "describing the model". Each function is its engine call behind guard().
#include <algorithm>
#include <limits>

#include "capi/context.hpp"
#include "tensor/registry.hpp"

namespace {

using namespace zero;
using namespace zero::capi;

std::int64_t count_of(std::span<const std::int64_t> dims, std::int64_t element_bytes) {
    std::int64_t count = 1;
    for (const std::int64_t extent : dims) {
        require(extent >= 0, code::argument, "dims {} has a negative extent", shape_text(dims));
        require(extent == 0 || count <= std::numeric_limits<std::int64_t>::max() / element_bytes / extent,
                code::argument, "dims {} are more than 2^63-1 bytes", shape_text(dims));
        count *= extent;
    }
    return count;
}

attachment attachment_of(const char* name, int type, int ndim, const std::int64_t* dims, void* data, int kind) {
    attachment what;
    what.name = text_of(name, "name");
    what.type = dtype_of(type, false);
    const auto extents = dims_of(ndim, dims);
    what.dims.assign(extents.begin(), extents.end());
    what.count = count_of(extents, size_of(what.type));
    require(kind == ZERO_REPLICATED || kind == ZERO_PER_RANK, code::argument,
            "kind {} is unknown; use ZERO_REPLICATED or ZERO_PER_RANK", kind);
    what.per_rank = kind == ZERO_PER_RANK;
    if (what.count > 0) need(data, "data");
    what.data = data;
    return what;
}

void write_pair(std::pair<std::int64_t, std::int64_t> from, std::int64_t* bytes, std::int64_t* peak) {
    if (bytes != nullptr) *bytes = from.first;
    if (peak != nullptr) *peak = from.second;
}

}  // namespace

int zero_group(zero_t z, const char* options_json, int* group) {
    return guard([&] {
        need(group, "group");
        *group = reader(z).add_group(optional_text(options_json, "options_json"));
    });
}

int zero_register(zero_t z, const char* name, int dtype, int ndim, const int64_t* dims, void* values, int group,
                  int* id) {
    return guard([&] {
        engine& body = reader(z);
        const int made =
            body.add_tensor(optional_text(name, "name"), dtype_of(dtype, true), dims_of(ndim, dims), values, group);
        if (id != nullptr) *id = made;
    });
}

int zero_find(zero_t z, const char* name, int* id) {
    return guard([&] {
        need(id, "id");
        const std::string wanted = text_of(name, "name");
        const int found = reader(z).tensors().find(wanted);
        require(found >= 0, code::argument, "no tensor is called '{}'", wanted);
        *id = found;
    });
}

int zero_tensor(zero_t z, int id, int* dtype, int* ndim, int64_t* dims) {
    return guard([&] {
        const tensor& which = reader(z).tensors().at(id);
        if (dtype != nullptr) *dtype = static_cast<int>(which.type);
        if (ndim != nullptr) *ndim = static_cast<int>(which.dims.size());
        if (dims != nullptr) std::copy(which.dims.begin(), which.dims.end(), dims);
    });
}

int zero_count(zero_t z, int* count) {
    return guard([&] {
        need(count, "count");
        *count = reader(z).tensors().count();
    });
}

int zero_attach(zero_t z, const char* name, int dtype, int ndim, const int64_t* dims, void* data, int kind) {
    return guard([&] { reader(z).attach(attachment_of(name, dtype, ndim, dims, data, kind)); });
}

int zero_place(zero_t z, int id, const int64_t* global_dims, const int64_t* offset, const int64_t*, const int64_t*) {
    return guard([&] {
        reader(z).tensors().at(id);
        need(global_dims, "global_dims");
        need(offset, "offset");
        fail(code::unsupported,
             "zero_place is not built yet: tensors of a domain decomposition are saved per model rank and load "
             "on the same decomposition only");
    });
}

int zero_state(zero_t z, const char* name) {
    return guard([&] { reader(z).add_state(text_of(name, "name")); });
}

int zero_forecast(zero_t z, int place, int64_t* bytes, int64_t* peak) {
    return guard([&] { write_pair(reader(z).forecast(place_of(place)), bytes, peak); });
}

int zero_memory(zero_t z, int place, int64_t* bytes, int64_t* peak) {
    return guard([&] { write_pair(reader(z).memory(place_of(place)), bytes, peak); });
}
