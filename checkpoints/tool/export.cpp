// zero-ckpt export: whole tensors in the safetensors format. Values have their own names and, unless told otherwise, the
// dtype as registered; states are called states/<state>/<tensor> and keep the dtype in which they are stored.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "answer.hpp"
#include "content.hpp"
#include "new_file.hpp"
#include "progress.hpp"
#include "safetensors.hpp"
#include "tool.hpp"

namespace zero::tool {
namespace {

struct item {
    std::string name;
    const checkpoint::tensor_entry* tensor;
    const checkpoint::vector_entry* vector;
    dtype type;
    std::int64_t bytes() const { return tensor->count * size_of(type); }
};

dtype value_type(const std::string& wanted, const checkpoint::tensor_entry& tensor,
                 const checkpoint::vector_entry& vector) {
    if (wanted == "registered") return tensor.type;
    if (wanted == "stored") return vector.type;
    const std::optional<dtype> found = checkpoint::dtype_from(wanted);
    require(found && is_parameter_type(*found), code::argument,
            "--dtype {} is none of registered, stored, fp32, fp64, bf16, fp16", wanted);
    return *found;
}

std::vector<item> items_of(const content& from, const options& what) {
    std::vector<item> all;
    std::set<std::string> names{"__metadata__"};
    for (const auto& tensor : from.what().tensors)
        for (const auto& vector : tensor.vectors) {
            const bool value = vector.state == "value";
            if (!value && !what.states) continue;
            const std::string name = (value ? "" : safetensors::states_prefix + vector.state + "/") + from.shown_name(tensor);
            require(names.insert(name).second, code::unsupported,
                    "two tensors would be called \"{}\" in a safetensors file: export without --states", name);
            all.push_back({name, &tensor, &vector, value ? value_type(what.type, tensor, vector) : vector.type});
        }
    // Long elements first, so that each tensor lies at a multiple of its element.
    std::stable_sort(all.begin(), all.end(),
                     [](const item& a, const item& b) { return size_of(a.type) > size_of(b.type); });
    return all;
}

std::string header_of(const content& from, const std::vector<item>& all, bool states) {
    const checkpoint::manifest& what = from.what();
    nlohmann::ordered_json header;
    header["__metadata__"] = {{"format", "pt"},
                              {"libzero_uuid", what.head.uuid},
                              {"libzero_step", formatted("{}", what.run.step)}};
    if (states) header["__metadata__"][safetensors::states_key] = safetensors::states_prefix;
    std::int64_t at = 0;
    for (const item& one : all) {
        header[one.name] = {{"dtype", safetensors::name_of(one.type)},
                            {"shape", one.tensor->dims},
                            {"data_offsets", {at, at + one.bytes()}}};
        at += one.bytes();
    }
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    require(static_cast<std::int64_t>(text.size()) <= safetensors::most_header_bytes, code::unsupported,
            "the header has {} bytes, more than safetensors allows", text.size());
    return text;
}

}  // namespace

int export_safetensors(const options& what) {
    content from(what.path);
    const std::vector<item> all = items_of(from, what);
    const std::string header = header_of(from, all, what.states);
    std::int64_t bytes = 0;
    for (const item& one : all) bytes += one.bytes();
    const files::disk disk;
    new_file to(disk, what.file);
    progress bar(bytes);
    static_assert(std::endian::native == std::endian::little, "the format is little-endian");
    const std::uint64_t length = header.size();
    to.reserve(8 + static_cast<std::int64_t>(length) + bytes);
    to.write(&length, 8, 0);
    to.write(header.data(), static_cast<std::int64_t>(length), 8);
    std::int64_t at = 8 + static_cast<std::int64_t>(length);
    for (const item& one : all)
        from.each_chunk(*one.vector, one.tensor->count, one.type,
                        [&](std::int64_t, std::int64_t count, const std::byte* data) {
                            to.write(data, count * size_of(one.type), at);
                            at += count * size_of(one.type);
                            bar.add(count * size_of(one.type));
                        });
    to.finish();
    if (what.json)
        print_json({{"folder", from.folder()}, {"file", what.file}, {"arrays", all.size()}, {"bytes", bytes}});
    return fine;
}

}  // namespace zero::tool
