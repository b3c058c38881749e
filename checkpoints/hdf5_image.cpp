// An HDF5 file driver that keeps a new file in memory, page by page. HDF5's own "core" driver would hold the space of
// all data too, and its "sec2" driver would write past our checks (and not report a full disk).
#include <algorithm>
#include <cstring>

#include "hdf5.hpp"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

namespace zero::hdf5 {
namespace {

constexpr haddr_t most_address = static_cast<haddr_t>(INT64_MAX) - 1;

struct open_file {
    H5FD_t base;  // first: HDF5 fills it
    image* pages;
    haddr_t end_of_space;
};

struct access {  // what the access list carries to `open`
    image* pages;
};

image& pages_of(const H5FD_t* file) {
    return *reinterpret_cast<const open_file*>(file)->pages;
}

H5FD_t* open(const char*, unsigned, hid_t properties, haddr_t) {
    const auto* given = static_cast<const access*>(H5Pget_driver_info(properties));
    if (given == nullptr) return nullptr;
    auto* made = new (std::nothrow) open_file{};
    if (made == nullptr) return nullptr;
    made->pages = given->pages;
    return &made->base;
}

herr_t close(H5FD_t* file) {
    delete reinterpret_cast<open_file*>(file);
    return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

haddr_t end_of_space(const H5FD_t* file, H5FD_mem_t) {
    return reinterpret_cast<const open_file*>(file)->end_of_space;
}

herr_t set_end_of_space(H5FD_t* file, H5FD_mem_t, haddr_t address) {
    reinterpret_cast<open_file*>(file)->end_of_space = address;
    return 0;
}

haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t) {
    return static_cast<haddr_t>(pages_of(file).end());
}

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, void* to) {
    pages_of(file).read(static_cast<std::int64_t>(address), static_cast<char*>(to), static_cast<std::int64_t>(bytes));
    return 0;
}

herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, const void* from) {
    try {
        pages_of(file).write(static_cast<std::int64_t>(address), static_cast<const char*>(from),
                             static_cast<std::int64_t>(bytes));
        return 0;
    } catch (...) {  // out of memory: HDF5 is C
        return -1;
    }
}

herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
    pages_of(file).end(static_cast<std::int64_t>(reinterpret_cast<open_file*>(file)->end_of_space));
    return 0;
}

H5FD_class_t driver() {
    H5FD_class_t made{};
#if H5_VERSION_GE(1, 13, 2)
    made.version = H5FD_CLASS_VERSION;
    made.value = static_cast<H5FD_class_value_t>(600);  // of the range for private use
#endif
    made.name = "zero_image";
    made.maxaddr = most_address;
    made.fc_degree = H5F_CLOSE_STRONG;
    made.fapl_size = sizeof(access);
    made.open = open;
    made.close = close;
    made.query = query;
    made.get_eoa = end_of_space;
    made.set_eoa = set_end_of_space;
    made.get_eof = end_of_file;
    made.read = read;
    made.write = write;
    made.truncate = truncate;
    const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(map), std::end(map), std::begin(made.fl_map));
    return made;
}

list access_list(hid_t driver_id, image& pages) {
    list made(H5Pcreate(H5P_FILE_ACCESS), "create an access list");
    const access given{&pages};
    ask(H5Pset_driver(made.get(), driver_id, &given), "set the driver");
    // Old formats have no checksums over HDF5's own bytes: a flipped bit there was read as good data.
    ask(H5Pset_libver_bounds(made.get(), H5F_LIBVER_V18, H5F_LIBVER_V110), "bound the format");
    ask(H5Pset_alignment(made.get(), static_cast<hsize_t>(image::page_bytes), static_cast<hsize_t>(image::page_bytes)),
        "set the alignment");
    ask(H5Pset_fclose_degree(made.get(), H5F_CLOSE_STRONG), "set the close degree");
    return made;
}

}  // namespace

image::image() {
    const H5FD_class_t description = driver();
    driver_ = ask(H5FDregister(&description), "register a driver");
    try {
        const list access = access_list(driver_, *this);
        const list creation(H5Pcreate(H5P_FILE_CREATE), "create a creation list");
        ask(H5Pset_link_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED),
            "keep the order of links");
        file_ = hdf5::file(H5Fcreate("image", H5F_ACC_TRUNC, creation.get(), access.get()), "create a file");
    } catch (...) {
        H5FDunregister(driver_);
        throw;
    }
}

image::~image() {
    file_ = hdf5::file();
    if (driver_ >= 0) H5FDunregister(driver_);
}

void image::finish() {
    file_.close("close a file");
}

void image::write(std::int64_t offset, const char* from, std::int64_t bytes) {
    end_ = std::max(end_, offset + bytes);
    while (bytes > 0) {
        std::string& page = pages_[offset / page_bytes];
        page.resize(static_cast<std::size_t>(page_bytes));
        const std::int64_t at = offset % page_bytes, now = std::min(bytes, page_bytes - at);
        std::memcpy(page.data() + at, from, static_cast<std::size_t>(now));
        offset += now;
        from += now;
        bytes -= now;
    }
}

void image::read(std::int64_t offset, char* to, std::int64_t bytes) const {
    while (bytes > 0) {
        const std::int64_t at = offset % page_bytes, now = std::min(bytes, page_bytes - at);
        const auto page = pages_.find(offset / page_bytes);
        if (page == pages_.end())
            std::memset(to, 0, static_cast<std::size_t>(now));
        else
            std::memcpy(to, page->second.data() + at, static_cast<std::size_t>(now));
        offset += now;
        to += now;
        bytes -= now;
    }
}

std::vector<image::run> image::take_runs() {
    std::vector<run> runs;
    for (auto& [number, page] : pages_) {
        const std::int64_t offset = number * page_bytes;
        page.resize(static_cast<std::size_t>(std::min(page_bytes, end_ - offset)));
        const bool follows =
            !runs.empty() && runs.back().offset + static_cast<std::int64_t>(runs.back().bytes.size()) == offset;
        if (follows)
            runs.back().bytes += page;
        else
            runs.push_back({offset, std::move(page)});
    }
    pages_.clear();
    return runs;
}

}  // namespace zero::hdf5
