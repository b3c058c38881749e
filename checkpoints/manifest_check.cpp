// Do the numbers of a manifest hang together? Pure arithmetic; run before anything is read or allocated by them.
#include <algorithm>
#include <map>
#include <set>

#include "crc32c.hpp"
#include "manifest.hpp"

namespace zero::checkpoint {
namespace {

struct span_of_bytes {
    std::int64_t first = 0, bytes = 0;
};

void check_apart(std::vector<span_of_bytes> spans, std::int64_t most, const std::string& file,
                 const std::string& where) {
    std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::int64_t end = 0;
    for (const span_of_bytes& part : spans) {
        if (part.bytes == 0) continue;
        if (part.first < end) damaged("{} is damaged: two arrays overlap in {}", where, file);
        if (part.bytes > most || part.first > most - part.bytes)
            damaged("{} is damaged: an array reaches beyond the end of {}", where, file);
        end = part.first + part.bytes;
    }
}

void check_files(const manifest& what, const std::string& where) {
    std::vector<std::vector<span_of_bytes>> spans(what.files.size()), tables(what.files.size());
    std::set<std::string> names;
    for (std::size_t k = 0; k < what.files.size(); ++k) {
        const file_entry& file = what.files[k];
        const bool plain = file.name.starts_with("part-") && file.name.find('/') == std::string::npos &&
                           file.name.find('\0') == std::string::npos;
        if (!plain || !names.insert(file.name).second)
            damaged("{} is damaged: \"{}\" is no name of a part", where, file.name);
        if (file.blocks > file.bytes / 4) damaged("{} is damaged: more checksums than bytes in {}", where, file.name);
        spans[k].push_back({file.identity, identity_bytes});
        spans[k].push_back({file.integrity, 4 * file.blocks});
    }
    for (const extent& part : what.extents) {
        if (static_cast<std::size_t>(part.file) >= what.files.size())
            damaged("{} is damaged: an array is in file {}", where, part.file);
        const file_entry& file = what.files[static_cast<std::size_t>(part.file)];
        if (part.count > file.bytes / size_of(part.type) || part.first > INT64_MAX - part.count)
            damaged("{} is damaged: an array is longer than its file {}", where, file.name);
        spans[static_cast<std::size_t>(part.file)].push_back({part.offset, part.bytes()});
        tables[static_cast<std::size_t>(part.file)].push_back({part.block, blocks_of(part.bytes())});
    }
    for (std::size_t k = 0; k < what.files.size(); ++k) {
        check_apart(spans[k], what.files[k].bytes, what.files[k].name, where);
        check_apart(tables[k], what.files[k].blocks, what.files[k].name, where);
    }
}

void check_cover(const tensor_entry& tensor, const vector_entry& vector, const std::string& where) {
    std::int64_t end = 0;
    for (const piece& part : vector.pieces) {
        if (part.first != end || part.count > tensor.count - end)
            damaged("{} is damaged: the pieces of \"{}\" of tensor \"{}\" do not cover it once", where, vector.state,
                    tensor.name);
        end += part.count;
    }
    if (end != tensor.count)
        damaged("{} is damaged: \"{}\" of tensor \"{}\" is incomplete", where, vector.state, tensor.name);
}

// Every element of every extent belongs to one piece or one attached array.
class usage {
public:
    usage(const manifest& what, const std::string& where) : what_(what), where_(where), used_(what.extents.size()) {}
    void add(int number, std::int64_t offset, std::int64_t count, dtype type) {
        if (static_cast<std::size_t>(number) >= used_.size())
            damaged("{} is damaged: it speaks of array {}", where_, number);
        if (what_.extents[static_cast<std::size_t>(number)].type != type)
            damaged("{} is damaged: array {} has another dtype", where_, number);
        used_[static_cast<std::size_t>(number)].push_back({offset, count});
    }
    void check() {
        for (std::size_t k = 0; k < used_.size(); ++k) {
            std::int64_t sum = 0;
            check_apart(used_[k], what_.extents[k].count, what_.extents[k].dataset, where_);
            for (const span_of_bytes& part : used_[k]) sum += part.bytes;
            if (sum != what_.extents[k].count)
                damaged("{} is damaged: a part of array {} belongs to nothing", where_, k);
        }
    }

private:
    const manifest& what_;
    const std::string& where_;
    std::vector<std::vector<span_of_bytes>> used_;
};

void check_tensors(const manifest& what, usage& used, const std::string& where) {
    std::set<std::pair<int, std::string>> names;
    for (const tensor_entry& tensor : what.tensors) {
        if (tensor.model >= what.head.model_ranks || !names.insert({tensor.model, tensor.name}).second)
            damaged("{} is damaged: tensor \"{}\" stands twice or belongs to nobody", where, tensor.name);
        if (tensor.vectors.empty() || tensor.vectors.front().state != "value")
            damaged("{} is damaged: tensor \"{}\" has no values", where, tensor.name);
        std::set<std::string> states;
        for (const vector_entry& vector : tensor.vectors) {
            if (!states.insert(vector.state).second)
                damaged("{} is damaged: \"{}\" of tensor \"{}\" stands twice", where, vector.state, tensor.name);
            check_cover(tensor, vector, where);
            for (const piece& part : vector.pieces) used.add(part.extent, part.offset, part.count, vector.type);
        }
    }
}

void check_attachments(const manifest& what, usage& used, const std::string& where) {
    std::set<std::tuple<int, int, std::string>> names;
    std::map<std::pair<int, std::string>, bool> kinds;
    for (const attachment_entry& one : what.attachments) {
        const bool known =
            one.model < what.head.model_ranks && one.rank < what.head.ranks && (one.per_rank || one.rank == 0);
        const bool same = kinds.emplace(std::pair(one.model, one.name), one.per_rank).first->second == one.per_rank;
        if (!known || !same || !names.insert({one.model, one.rank, one.name}).second)
            damaged("{} is damaged: the attached array \"{}\" stands twice or belongs to nobody", where, one.name);
        if ((one.extent < 0) != (one.count == 0))
            damaged("{} is damaged: the attached array \"{}\" has no place", where, one.name);
        if (one.extent >= 0) used.add(one.extent, 0, one.count, one.type);
    }
}

}  // namespace

std::int64_t blocks_of(std::int64_t bytes) noexcept {
    return bytes / crc32c::block_bytes + (bytes % crc32c::block_bytes != 0 ? 1 : 0);
}

std::int64_t product(const std::vector<std::int64_t>& dims, const std::string& where) {
    if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
    std::int64_t result = 1;
    for (const std::int64_t dim : dims)
        if (dim < 0 || __builtin_mul_overflow(result, dim, &result)) damaged("{} is damaged: impossible dims", where);
    return result;
}

void check(const manifest& what, const std::string& where) {
    if (what.head.step != what.run.step) damaged("{} is damaged: it names two steps", where);
    check_files(what, where);
    usage used(what, where);
    check_tensors(what, used, where);
    check_attachments(what, used, where);
    used.check();
}

}  // namespace zero::checkpoint
