// HDF5 with manners: handles that close themselves, failures as zero::error with HDF5's own words, nothing printed, and
// files that are made in memory. HDF5 never touches the disk here: it lays files out, files.hpp writes them.
// Not here: what stands in the files (part.cpp, index.cpp).
#pragma once
#include <hdf5.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "tensor/dtype.hpp"

namespace zero::hdf5 {

// HDF5 ends the process when it finds another release than it was compiled for; so this is asked first.
void check_version(unsigned major, unsigned minor, unsigned release);

// HDF5 is one per process and not thread-safe as Debian builds it: a session has it alone, with printing off.
class session {
public:
    session();
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

private:
    std::unique_lock<std::mutex> alone_;
    H5E_auto2_t print_ = nullptr;
    void* print_data_ = nullptr;
};

[[noreturn]] void failed(const char* what);  // throws with the text of HDF5's error stack

template <typename Answer>
Answer ask(Answer answer, const char* what) {
    if (answer < 0) failed(what);
    return answer;
}

template <herr_t (*Close)(hid_t)>
class handle {
public:
    handle() = default;
    handle(hid_t id, const char* what) : id_(ask(id, what)) {}
    ~handle() {
        if (id_ >= 0) Close(id_);
    }
    handle(handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
    handle& operator=(handle&& other) noexcept {
        std::swap(id_, other.id_);
        return *this;
    }
    handle(const handle&) = delete;
    handle& operator=(const handle&) = delete;
    hid_t get() const noexcept { return id_; }
    void close(const char* what) { ask(Close(std::exchange(id_, -1)), what); }

private:
    hid_t id_ = -1;
};
using file = handle<H5Fclose>;
using group = handle<H5Gclose>;
using dataset = handle<H5Dclose>;
using space = handle<H5Sclose>;
using type = handle<H5Tclose>;
using attribute = handle<H5Aclose>;
using list = handle<H5Pclose>;

// Types as they stand in files: little-endian; bf16 and fp16 as custom floats; complex as {r, i}, as h5py has it.
type file_type(dtype which);
std::vector<unsigned char> fill_value(dtype which);  // NaN, or the least integer: no value that looks like data

list link_list();  // makes groups on the way; names are UTF-8

space make_space(std::span<const std::int64_t> dims);  // scalar for no dims

// Gives objects attributes; the types behind them are made once.
class attributes {
public:
    attributes();
    void put(hid_t object, const char* name, const std::string& text) const;
    void put(hid_t object, const char* name, std::int64_t number) const;
    void put(hid_t object, const char* name, double number) const;

private:
    void put(hid_t object, const char* name, hid_t stored, const void* value) const;
    type text_;
    space scalar_;
};

// A new file in memory. Only what HDF5 writes takes memory, not the space that it lays out for data.
class image {
public:
    static constexpr std::int64_t page_bytes = 4096;
    struct run {
        std::int64_t offset = 0;
        std::string bytes;
    };

    image();
    ~image();
    image(const image&) = delete;
    image& operator=(const image&) = delete;

    hid_t file() const noexcept { return file_.get(); }
    void finish();                 // closes the file; then:
    std::vector<run> take_runs();  // what HDF5 wrote, by offset, whole pages
    std::int64_t bytes() const noexcept { return end_; }

    // For the driver.
    void write(std::int64_t offset, const char* from, std::int64_t bytes);
    void read(std::int64_t offset, char* to, std::int64_t bytes) const;
    std::int64_t end() const noexcept { return end_; }
    void end(std::int64_t bytes) noexcept { end_ = bytes; }

private:
    std::map<std::int64_t, std::string> pages_;  // by number
    std::int64_t end_ = 0;
    hid_t driver_ = -1;
    hdf5::file file_;
};

}  // namespace zero::hdf5
