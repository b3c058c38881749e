// HDF5 lays the part out: contiguous datasets, allocated early and never filled, whose offsets we then write at.
#include "part.hpp"

#include "hdf5.hpp"

namespace zero::checkpoint {
namespace {

hdf5::list creation_list() {
    hdf5::list made(H5Pcreate(H5P_DATASET_CREATE), "create a creation list");
    hdf5::ask(H5Pset_layout(made.get(), H5D_CONTIGUOUS), "set the layout");
    hdf5::ask(H5Pset_alloc_time(made.get(), H5D_ALLOC_TIME_EARLY), "set the time of allocation");
    hdf5::ask(H5Pset_fill_time(made.get(), H5D_FILL_TIME_NEVER), "set the time of filling");
    hdf5::ask(H5Pset_obj_track_times(made.get(), false), "leave times out");
    return made;
}

hdf5::list link_list() {
    hdf5::list made(H5Pcreate(H5P_LINK_CREATE), "create a link list");
    hdf5::ask(H5Pset_create_intermediate_group(made.get(), 1), "create groups on the way");
    hdf5::ask(H5Pset_char_encoding(made.get(), H5T_CSET_UTF8), "set the characters of names");
    return made;
}

class part_file {
public:
    hdf5::dataset create(const std::string& path, hid_t type, std::int64_t count) {
        const hdf5::space space = hdf5::make_space({{count}});
        return {H5Dcreate2(image_.file(), path.c_str(), type, space.get(), links_.get(), creation_.get(), H5P_DEFAULT),
                "create a dataset"};
    }
    std::int64_t offset(const hdf5::dataset& of) {
        const haddr_t found = H5Dget_offset(of.get());
        if (found == HADDR_UNDEF) hdf5::failed("tell the offset of a dataset");
        return static_cast<std::int64_t>(found);
    }
    hdf5::image& image() noexcept { return image_; }
    const hdf5::attributes& attributes() const noexcept { return attributes_; }

private:
    hdf5::image image_;
    hdf5::list creation_ = creation_list(), links_ = link_list();
    hdf5::attributes attributes_;
};

}  // namespace

part_layout lay_out_part(std::span<const part_dataset> datasets, const std::string& uuid, const std::string& identity,
                         std::int64_t blocks) {
    const hdf5::session session;
    part_file part;
    part_layout result;
    part.attributes().put(part.image().file(), "uuid", uuid);
    part.attributes().put(part.image().file(), "note",
                          std::string("part of a libzero checkpoint: open index.h5 beside it for whole tensors; "
                                      "zero-ckpt verify --full checks every byte"));
    {
        const hdf5::type characters(H5Tcopy(H5T_STD_U8LE), "copy a type");
        const hdf5::dataset made =
            part.create("/identity", characters.get(), static_cast<std::int64_t>(identity.size()));
        hdf5::ask(H5Dwrite(made.get(), characters.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, identity.data()),
                  "write the identity");
        result.identity = part.offset(made);
    }
    {
        const hdf5::dataset made = part.create("/integrity", H5T_STD_U32LE, blocks);
        part.attributes().put(
            made.get(), "note",
            std::string("CRC-32C of each 1 MiB of each array of this file, in the order of MANIFEST.json"));
        if (blocks > 0) result.integrity = part.offset(made);
    }
    for (const part_dataset& dataset : datasets) {
        const hdf5::type stored = hdf5::file_type(dataset.type);
        result.offsets.push_back(part.offset(part.create(dataset.path, stored.get(), dataset.count)));
    }
    part.image().finish();
    result.bytes = part.image().bytes();
    for (auto& run : part.image().take_runs()) result.own.push_back({run.offset, std::move(run.bytes)});
    return result;
}

}  // namespace zero::checkpoint
