// The index: one virtual dataset per vector of a tensor, mapped box by box on the runs of the parts.
#include "index.hpp"

#include <set>

#include "boxes.hpp"
#include "hdf5.hpp"
#include "hdf5_tensor.hpp"
#include "paths.hpp"
#include "vector_paths.hpp"

namespace zero::checkpoint {
namespace {

class builder {
public:
    builder(const manifest& what, const scalars& values) : what_(what), values_(values) {
        for (const extent& part : what.extents) {
            std::int64_t& count = dataset_counts_[{part.file, part.dataset}];
            count = std::max(count, part.first + part.count);
        }
    }

    index_file build() {
        put_run();
        for (int model = 0; model < what_.head.model_ranks; ++model) {
            put_tensors(model);
            put_attachments(model);
        }
        image_.finish();
        index_file result;
        result.bytes = image_.bytes();
        for (auto& run : image_.take_runs()) result.runs.push_back({run.offset, std::move(run.bytes)});
        return result;
    }

private:
    void make_group(const std::string& path) {
        const hdf5::group made(H5Gcreate2(image_.file(), path.c_str(), links_.get(), H5P_DEFAULT, H5P_DEFAULT),
                               "create a group");
    }

    void put_run() {
        const hdf5::group run(H5Gcreate2(image_.file(), "/run", links_.get(), H5P_DEFAULT, H5P_DEFAULT),
                              "create a group");
        const hid_t id = run.get();
        attributes_.put(id, "format_version", format_version);
        attributes_.put(id, "uuid", what_.head.uuid);
        attributes_.put(id, "time", what_.head.time);
        attributes_.put(id, "step", what_.run.step);
        attributes_.put(id, "skipped_steps", what_.run.skipped);
        attributes_.put(id, "lr", what_.run.lr);
        attributes_.put(id, "loss_scale", what_.run.scale);
        attributes_.put(id, "loss_scale_hysteresis", what_.run.hysteresis);
        attributes_.put(id, "loss_scale_iteration", what_.run.iteration);
        attributes_.put(id, "loss_scale_last_overflow", what_.run.last_overflow);
        attributes_.put(id, "stage", static_cast<std::int64_t>(what_.head.stage));
        attributes_.put(id, "ranks", static_cast<std::int64_t>(what_.head.ranks));
        attributes_.put(id, "model_ranks", static_cast<std::int64_t>(what_.head.model_ranks));
        attributes_.put(id, "nodes", static_cast<std::int64_t>(what_.run.nodes));
        attributes_.put(id, "optimizer", what_.run.optimizer);
        attributes_.put(id, "schedule", what_.run.schedule);
        attributes_.put(id, "config", what_.run.config);
        attributes_.put(
            id, "note",
            std::string("Whole tensors, mapped on the part files beside this one. A missing part reads as NaN "
                        "(integers: their least value) without an error: run zero-ckpt verify on this folder first."));
    }

    void put_tensors(int model) {
        make_group(root_of(what_, model) + "parameters");
        make_group(root_of(what_, model) + "states");
        for (const placed_vector& one : vectors_of(what_, model)) put_vector(one.path, *one.tensor, *one.vector);
    }

    void put_vector(const std::string& path, const tensor_entry& tensor, const vector_entry& vector) {
        const hdf5::dataset made = create(path, tensor.dims, tensor.count, vector.type, vector.pieces);
        if (tensor.dims.empty()) {
            const piece& only = vector.pieces.front();
            const hdf5::type stored = hdf5::file_type(vector.type);
            const auto value = values_.find({only.extent, only.offset});
            require(value != values_.end(), code::internal, "the value of {} did not come", path);
            hdf5::ask(H5Dwrite(made.get(), stored.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, value->second.data()),
                      "write a scalar");
        }
        describe(attributes_, made.get(), tensor, vector, what_.head.uuid);
    }

    void put_attachments(int model) {
        std::vector<std::string> names;
        std::set<std::string> known;
        for (const attachment_entry& one : what_.attachments)
            if (one.model == model && known.insert(one.name).second) names.push_back(one.name);
        if (names.empty()) return;
        make_group(root_of(what_, model) + "attached");
        const std::vector<std::string> paths = dataset_paths(names);
        std::map<std::string, std::string> path_of;
        for (std::size_t k = 0; k < names.size(); ++k) path_of[names[k]] = paths[k];
        for (const attachment_entry& one : what_.attachments) {
            if (one.model != model) continue;
            const std::string folder = one.per_rank ? formatted("per_rank/rank-{:05}/", one.rank) : "replicated/";
            put_attachment(root_of(what_, model) + "attached/" + folder + path_of[one.name], one);
        }
    }

    void put_attachment(const std::string& path, const attachment_entry& one) {
        std::vector<piece> pieces;
        if (one.extent >= 0) pieces.push_back({one.extent, 0, 0, one.count});
        const std::vector<std::int64_t> flat{1};
        const hdf5::dataset made = create(path, one.dims.empty() ? flat : one.dims, one.count, one.type, pieces);
        attributes_.put(made.get(), "name", one.name);
        attributes_.put(made.get(), "storage_order", std::string("row-major"));
        attributes_.put(made.get(), "uuid", what_.head.uuid);
    }

    hdf5::dataset create(const std::string& path, const std::vector<std::int64_t>& dims, std::int64_t count, dtype type,
                         const std::vector<piece>& pieces) {
        const auto& [stored, creation] = kind(type);
        const hdf5::space space = hdf5::make_space(dims);
        hdf5::ask(H5Pset_layout(creation.get(), H5D_CONTIGUOUS), "forget the mappings of the dataset before");
        if (!dims.empty() && count > 0)
            for (const piece& part : pieces) map(creation.get(), dims, space, part);
        return {H5Dcreate2(image_.file(), path.c_str(), stored.get(), space.get(), links_.get(), creation.get(),
                           H5P_DEFAULT),
                "create a dataset"};
    }

    // Made once for each dtype: a list for every dataset costs a quarter of the time.
    const std::pair<hdf5::type, hdf5::list>& kind(dtype type) {
        const auto [place, fresh] = kinds_.try_emplace(type);
        auto& [stored, creation] = place->second;
        if (!fresh) return place->second;
        stored = hdf5::file_type(type);
        creation = hdf5::list(H5Pcreate(H5P_DATASET_CREATE), "create a creation list");
        hdf5::ask(H5Pset_obj_track_times(creation.get(), false), "leave times out");
        hdf5::ask(H5Pset_fill_value(creation.get(), stored.get(), hdf5::fill_value(type).data()), "set the fill value");
        return place->second;
    }

    // HDF5 takes '%' in the name of a source for the start of a pattern ("%b"); "%%" is the letter itself.
    static std::string without_patterns(const std::string& name) {
        std::string escaped;
        for (const char letter : name) escaped.append(letter == '%' ? 2 : 1, letter);
        return escaped;
    }

    void map(hid_t creation, const std::vector<std::int64_t>& dims, const hdf5::space& whole, const piece& part) {
        const extent& from = what_.extents[static_cast<std::size_t>(part.extent)];
        const std::string& file = what_.files[static_cast<std::size_t>(from.file)].name;
        const std::string dataset = without_patterns(from.dataset);
        const hdf5::space source = hdf5::make_space({{dataset_counts_.at({from.file, from.dataset})}});
        std::int64_t at = from.first + part.offset;
        for (const box& piece_of : boxes(dims, part.first, part.count)) {
            const std::vector<hsize_t> start(piece_of.start.begin(), piece_of.start.end());
            const std::vector<hsize_t> extents(piece_of.extent.begin(), piece_of.extent.end());
            hsize_t count = 1;
            for (const hsize_t one : extents) count *= one;
            const hsize_t first = static_cast<hsize_t>(at);
            hdf5::ask(H5Sselect_hyperslab(whole.get(), H5S_SELECT_SET, start.data(), nullptr, extents.data(), nullptr),
                      "select");
            hdf5::ask(H5Sselect_hyperslab(source.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr), "select");
            hdf5::ask(H5Pset_virtual(creation, whole.get(), file.c_str(), dataset.c_str(), source.get()), "map a part");
            at += static_cast<std::int64_t>(count);
        }
        hdf5::ask(H5Sselect_all(whole.get()), "select");
    }

    const manifest& what_;
    const scalars& values_;
    std::map<std::pair<int, std::string>, std::int64_t> dataset_counts_;
    std::map<dtype, std::pair<hdf5::type, hdf5::list>> kinds_;
    hdf5::image image_;
    hdf5::attributes attributes_;
    hdf5::list links_ = hdf5::link_list();
};

}  // namespace

index_file build_index(const manifest& what, const scalars& values) {
    const hdf5::session session;
    builder work(what, values);
    return work.build();
}

}  // namespace zero::checkpoint
