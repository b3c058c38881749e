// Streams of a rank, their way to the other ranks, and the plan over all of them.
#include "plan.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "message.hpp"
#include "paths.hpp"

namespace zero::checkpoint {
namespace {

std::string kind_of(const tensor_state& tensor, const vector_state& vector) {
    if (vector.state != "value") return vector.state;
    return vector.type == tensor.type ? "parameter" : "master";
}

// "/data/group-0-bf16/exp_avg": unique per (group, dtype of the tensor, kind, dtype of the vector).
class names {
public:
    explicit names(const contents& state) {
        std::vector<std::string> kinds{"parameter", "master"};
        std::vector<std::string> states;
        for (const tensor_state& tensor : state.tensors)
            for (const vector_state& vector : tensor.vectors)
                if (vector.state != "value" && states_.emplace(vector.state, "").second) states.push_back(vector.state);
        for (const std::string& state_name : states) kinds.push_back(without_folders(state_name));
        const std::vector<std::string> paths = dataset_paths(kinds);
        values_ = {paths[0], paths[1]};
        for (std::size_t k = 0; k < states.size(); ++k) states_[states[k]] = paths[k + 2];
    }
    std::string dataset(const tensor_state& tensor, const vector_state& vector) const {
        const bool value = vector.state == "value";
        const std::string& kind =
            value ? values_[kind_of(tensor, vector) == "master" ? 1 : 0] : states_.at(vector.state);
        return formatted("/data/group-{}-{}/{}", tensor.group, name(tensor.type), kind);
    }

private:
    std::vector<std::string> values_;
    std::map<std::string, std::string> states_;
};

void add_tensors(const contents& state, std::vector<stream>& streams) {
    const names named(state);
    std::map<std::string, std::size_t> number;
    for (std::size_t t = 0; t < state.tensors.size(); ++t)
        for (std::size_t v = 0; v < state.tensors[t].vectors.size(); ++v) {
            const vector_state& vector = state.tensors[t].vectors[v];
            if (vector.count == 0) continue;
            const std::string dataset = named.dataset(state.tensors[t], vector);
            const auto [found, fresh] = number.emplace(dataset, streams.size());
            if (fresh) streams.push_back({dataset, vector.type, 0, {}});
            stream& to = streams[found->second];
            require(to.type == vector.type, code::internal, "{} holds two dtypes", dataset);
            to.pieces.push_back({static_cast<int>(t), static_cast<int>(v), vector.first, vector.count, vector.data});
            to.count += vector.count;
        }
}

void add_attachments(const contents& state, const crew& ranks, std::vector<stream>& streams) {
    std::vector<std::string> names;
    for (const attached_state& one : state.attachments) names.push_back(one.name);
    const std::vector<std::string> paths = dataset_paths(names);
    for (std::size_t k = 0; k < state.attachments.size(); ++k) {
        const attached_state& one = state.attachments[k];
        if (one.count == 0 || (!one.per_rank && ranks.data_rank() != 0)) continue;
        const std::string folder = one.per_rank ? formatted("per_rank/rank-{:05}", ranks.data_rank()) : "replicated";
        streams.push_back({formatted("/attached/{}/{}", folder, paths[k]),
                           one.type,
                           one.count,
                           {{-1, static_cast<int>(k), 0, one.count, one.data}}});
    }
}

tensor_entry entry_of(const tensor_state& tensor, int model) {
    tensor_entry made;
    made.name = tensor.name;
    made.type = tensor.type;
    made.dims = tensor.dims;
    made.count = tensor.count;
    made.group = tensor.group;
    made.model = model;
    made.frozen = tensor.frozen;
    for (const vector_state& vector : tensor.vectors) made.vectors.push_back({vector.state, vector.type, {}});
    return made;
}

void put_dims(packer& to, const std::vector<std::int64_t>& dims) {
    to.put(static_cast<std::int64_t>(dims.size()));
    for (const std::int64_t dim : dims) to.put(dim);
}

std::vector<std::int64_t> take_dims(unpacker& from) {
    std::vector<std::int64_t> dims(from.length());
    for (std::int64_t& dim : dims) dim = from.integer();
    return dims;
}

int take_int(unpacker& from) {
    return static_cast<int>(from.integer());
}
dtype take_type(unpacker& from) {
    return static_cast<dtype>(from.integer());
}
std::int64_t number(dtype type) {
    return static_cast<std::int64_t>(type);
}

// Gives the pieces of one rank's streams to the tensors, as extents of its file.
class joiner {
public:
    joiner(plan& to, int file) : to_(to), file_(file) {}

    void add(const contribution& from, std::size_t first_tensor, std::size_t first_attachment) {
        for (const stream& run : from.streams) {
            extent made;
            made.file = file_;
            made.dataset = run.dataset;
            made.type = run.type;
            made.first = dataset_count_[run.dataset];
            made.count = run.count;
            made.block = blocks_;
            dataset_count_[run.dataset] += run.count;
            blocks_ += blocks_of(made.bytes());
            const int number = static_cast<int>(to_.skeleton.extents.size());
            to_.skeleton.extents.push_back(made);
            add_pieces(run, number, first_tensor, first_attachment);
        }
    }
    std::int64_t blocks() const noexcept { return blocks_; }

private:
    void add_pieces(const stream& run, int number, std::size_t first_tensor, std::size_t first_attachment) {
        std::int64_t offset = 0;
        for (const stream_piece& part : run.pieces) {
            if (part.tensor < 0) {
                to_.skeleton.attachments[first_attachment + static_cast<std::size_t>(part.vector)].extent = number;
            } else {
                tensor_entry& tensor = to_.skeleton.tensors.at(first_tensor + static_cast<std::size_t>(part.tensor));
                vector_entry& vector = tensor.vectors.at(static_cast<std::size_t>(part.vector));
                vector.pieces.push_back({number, offset, part.first, part.count});
            }
            offset += part.count;
        }
    }

    plan& to_;
    int file_;
    std::map<std::string, std::int64_t> dataset_count_;
    std::int64_t blocks_ = 0;
};

void sort_pieces(manifest& what) {
    for (tensor_entry& tensor : what.tensors)
        for (vector_entry& vector : tensor.vectors)
            std::sort(vector.pieces.begin(), vector.pieces.end(),
                      [](const piece& a, const piece& b) { return a.first < b.first; });
}

}  // namespace

contribution contribution_of(const contents& state, const crew& ranks) {
    contribution made;
    add_tensors(state, made.streams);
    add_attachments(state, ranks, made.streams);
    if (ranks.data_rank() == 0)
        for (const tensor_state& tensor : state.tensors) made.tensors.push_back(entry_of(tensor, ranks.model_rank()));
    // One entry per attachment on every rank, so that streams can name them by number; replicated ones of ranks other
    // than 0 are dropped by the plan.
    for (const attached_state& one : state.attachments)
        made.attachments.push_back(
            {one.name, one.type, one.dims, one.count, one.per_rank, ranks.model_rank(), ranks.data_rank(), -1});
    return made;
}

std::string pack(const contribution& what) {
    packer to;
    to.put(static_cast<std::int64_t>(what.streams.size()));
    for (const stream& run : what.streams) {
        to.put(run.dataset).put(number(run.type)).put(static_cast<std::int64_t>(run.pieces.size()));
        for (const stream_piece& part : run.pieces)
            to.put(std::int64_t{part.tensor}).put(std::int64_t{part.vector}).put(part.first).put(part.count);
    }
    to.put(static_cast<std::int64_t>(what.tensors.size()));
    for (const tensor_entry& tensor : what.tensors) {
        to.put(tensor.name)
            .put(number(tensor.type))
            .put(tensor.count)
            .put(std::int64_t{tensor.group})
            .put(std::int64_t{tensor.model});
        to.put(std::int64_t{tensor.frozen ? 1 : 0}).put(static_cast<std::int64_t>(tensor.vectors.size()));
        for (const vector_entry& vector : tensor.vectors) to.put(vector.state).put(number(vector.type));
        put_dims(to, tensor.dims);
    }
    to.put(static_cast<std::int64_t>(what.attachments.size()));
    for (const attachment_entry& one : what.attachments) {
        to.put(one.name).put(number(one.type)).put(one.count).put(std::int64_t{one.per_rank ? 1 : 0});
        to.put(std::int64_t{one.model}).put(std::int64_t{one.rank});
        put_dims(to, one.dims);
    }
    return to.take();
}

contribution unpack(const std::string& text) {
    unpacker from(text);
    contribution made;
    made.streams.resize(from.length());
    for (stream& run : made.streams) {
        run.dataset = from.text();
        run.type = take_type(from);
        run.pieces.resize(from.length());
        for (stream_piece& part : run.pieces) {
            part.tensor = take_int(from);
            part.vector = take_int(from);
            part.first = from.integer();
            part.count = from.integer();
            run.count += part.count;
        }
    }
    made.tensors.resize(from.length());
    for (tensor_entry& tensor : made.tensors) {
        tensor.name = from.text();
        tensor.type = take_type(from);
        tensor.count = from.integer();
        tensor.group = take_int(from);
        tensor.model = take_int(from);
        tensor.frozen = from.integer() != 0;
        tensor.vectors.resize(from.length());
        for (vector_entry& vector : tensor.vectors) {
            vector.state = from.text();
            vector.type = take_type(from);
        }
        tensor.dims = take_dims(from);
    }
    made.attachments.resize(from.length());
    for (attachment_entry& one : made.attachments) {
        one.name = from.text();
        one.type = take_type(from);
        one.count = from.integer();
        one.per_rank = from.integer() != 0;
        one.model = take_int(from);
        one.rank = take_int(from);
        one.dims = take_dims(from);
    }
    return made;
}

plan make_plan(std::span<const contribution> all, int data_size, int ranks_per_file, const std::string& uuid) {
    plan made;
    const int size = static_cast<int>(all.size());
    const int files_per_model = (data_size + ranks_per_file - 1) / ranks_per_file;
    made.skeleton.head.uuid = uuid;
    made.skeleton.head.ranks = data_size;
    made.skeleton.head.model_ranks = size / data_size;
    made.skeleton.files.resize(static_cast<std::size_t>(files_per_model * made.skeleton.head.model_ranks));
    std::size_t first_tensor = 0;
    std::vector<joiner> joiners;
    for (int file = 0; file < static_cast<int>(made.skeleton.files.size()); ++file) joiners.emplace_back(made, file);
    for (int rank = 0; rank < size; ++rank) {
        const contribution& from = all[static_cast<std::size_t>(rank)];
        const int data_rank = rank % data_size, file = rank / data_size * files_per_model + data_rank / ranks_per_file;
        if (data_rank == 0) {
            first_tensor = made.skeleton.tensors.size();
            made.skeleton.tensors.insert(made.skeleton.tensors.end(), from.tensors.begin(), from.tensors.end());
        }
        const std::size_t first_attachment = made.skeleton.attachments.size();
        made.skeleton.attachments.insert(made.skeleton.attachments.end(), from.attachments.begin(),
                                         from.attachments.end());
        made.file_of_rank.push_back(file);
        made.first_extent_of_rank.push_back(static_cast<int>(made.skeleton.extents.size()));
        joiners[static_cast<std::size_t>(file)].add(from, first_tensor, first_attachment);
    }
    made.first_extent_of_rank.push_back(static_cast<int>(made.skeleton.extents.size()));
    for (std::size_t file = 0; file < made.skeleton.files.size(); ++file) {
        made.skeleton.files[file].name =
            formatted("part-{}-{:05}-of-{:05}.h5", uuid.substr(0, 8), file, made.skeleton.files.size());
        made.skeleton.files[file].blocks = joiners[file].blocks();
    }
    std::erase_if(made.skeleton.attachments,
                  [](const attachment_entry& one) { return !one.per_rank && one.rank != 0; });
    for (const extent& part : made.skeleton.extents) made.skeleton.head.bytes += part.bytes();
    sort_pieces(made.skeleton);
    return made;
}

std::vector<part_dataset> datasets_of(const plan& what, int file) {
    std::vector<part_dataset> found;
    for (const extent& part : what.skeleton.extents) {
        if (part.file != file) continue;
        const auto same =
            std::find_if(found.begin(), found.end(), [&](const part_dataset& one) { return one.path == part.dataset; });
        if (same == found.end())
            found.push_back({part.dataset, part.type, part.count});
        else
            same->count += part.count;
    }
    return found;
}

}  // namespace zero::checkpoint
