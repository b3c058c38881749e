// zero-ckpt merge: plain HDF5, each tensor whole in a contiguous dataset of its own under the paths of index.h5. HDF5 lays
// the file out in memory; the data are streamed to its offsets. Attached arrays are not in it.
#include <fmt/format.h>

#include "answer.hpp"
#include "checkpoints/hdf5.hpp"
#include "checkpoints/hdf5_tensor.hpp"
#include "checkpoints/vector_paths.hpp"
#include "content.hpp"
#include "new_file.hpp"
#include "progress.hpp"
#include "tool.hpp"

namespace zero::tool {
namespace {

struct placed {
    const checkpoint::tensor_entry* tensor;
    const checkpoint::vector_entry* vector;
    std::int64_t offset;
};

class layout {
public:
    layout(const content& from, bool states) : from_(from) {
        hdf5::ask(H5Pset_layout(creation_.get(), H5D_CONTIGUOUS), "set the layout");
        hdf5::ask(H5Pset_alloc_time(creation_.get(), H5D_ALLOC_TIME_EARLY), "set the time of allocation");
        hdf5::ask(H5Pset_fill_time(creation_.get(), H5D_FILL_TIME_NEVER), "set the time of filling");
        hdf5::ask(H5Pset_obj_track_times(creation_.get(), false), "leave times out");
        put_run();
        for (int model = 0; model < from.what().head.model_ranks; ++model)
            for (const checkpoint::placed_vector& one : checkpoint::vectors_of(from.what(), model))
                if (states || one.vector->state == "value") put(one.path, *one.tensor, *one.vector);
        image_.finish();
    }
    hdf5::image& image() noexcept { return image_; }
    const std::vector<placed>& tensors() const noexcept { return tensors_; }
    std::int64_t count() const noexcept { return count_; }  // those without elements too

private:
    void put_run() {
        const checkpoint::manifest& what = from_.what();
        const hdf5::group run(H5Gcreate2(image_.file(), "/run", links_.get(), H5P_DEFAULT, H5P_DEFAULT),
                              "create a group");
        attributes_.put(run.get(), "uuid", what.head.uuid);
        attributes_.put(run.get(), "time", what.head.time);
        attributes_.put(run.get(), "step", what.run.step);
        attributes_.put(run.get(), "ranks", static_cast<std::int64_t>(what.head.ranks));
        attributes_.put(run.get(), "optimizer", what.run.optimizer);
        attributes_.put(run.get(), "config", what.run.config);
        attributes_.put(run.get(), "note",
                        std::string("A copy of the tensors of a libzero checkpoint, made by zero-ckpt merge. It has no "
                                    "checksums that zero-ckpt verify could compare."));
    }

    void put(const std::string& path, const checkpoint::tensor_entry& tensor, const checkpoint::vector_entry& vector) {
        const hdf5::type stored = hdf5::file_type(vector.type);
        const hdf5::space space = hdf5::make_space(tensor.dims);
        const hdf5::dataset made(H5Dcreate2(image_.file(), path.c_str(), stored.get(), space.get(), links_.get(),
                                            creation_.get(), H5P_DEFAULT),
                                 "create a dataset");
        ++count_;
        checkpoint::describe(attributes_, made.get(), tensor, vector, from_.what().head.uuid);
        if (tensor.count == 0) return;
        const haddr_t offset = H5Dget_offset(made.get());
        if (offset == HADDR_UNDEF) hdf5::failed("tell the offset of a dataset");
        tensors_.push_back({&tensor, &vector, static_cast<std::int64_t>(offset)});
    }

    const content& from_;
    const hdf5::session session_;
    hdf5::image image_;
    hdf5::list creation_{H5Pcreate(H5P_DATASET_CREATE), "create a creation list"};
    hdf5::list links_ = hdf5::link_list();
    hdf5::attributes attributes_;
    std::vector<placed> tensors_;
    std::int64_t count_ = 0;
};

}  // namespace

int merge(const options& what) {
    content from(what.path);
    layout laid(from, what.states);
    const files::disk disk;
    new_file to(disk, what.file);
    to.reserve(laid.image().bytes());
    for (const hdf5::image::run& run : laid.image().take_runs())
        to.write(run.bytes.data(), static_cast<std::int64_t>(run.bytes.size()), run.offset);
    std::int64_t bytes = 0;
    for (const placed& one : laid.tensors()) bytes += one.tensor->count * size_of(one.vector->type);
    progress bar(bytes);
    for (const placed& one : laid.tensors()) {
        const std::int64_t size = size_of(one.vector->type);
        from.each_chunk(*one.vector, one.tensor->count, one.vector->type,
                        [&](std::int64_t first, std::int64_t count, const std::byte* data) {
                            to.write(data, count * size, one.offset + first * size);
                            bar.add(count * size);
                        });
    }
    to.length(laid.image().bytes());
    to.finish();
    if (what.json)
        print_json({{"folder", from.folder()}, {"file", what.file}, {"arrays", laid.count()}, {"bytes", bytes}});
    return fine;
}

}  // namespace zero::tool
