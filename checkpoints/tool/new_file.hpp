// zero-ckpt: a file that appears under its name when it is whole and on disk; what is there already is never replaced.
#pragma once
#include <string>

#include "checkpoints/directory.hpp"
#include "checkpoints/files.hpp"

namespace zero::tool {

class new_file {
public:
    new_file(const files::disk& disk, const std::string& path) : disk_(disk), path_(path) {
        require(!path.empty(), code::argument, "the file to write has no name");
        require(!disk.look(path).exists, code::argument, "{} is there already: remove it, or give another name", path);
        partial_ = path + ".partial-" + checkpoint::new_uuid().substr(0, 8);
        to_ = disk.create(partial_);
    }
    ~new_file() {
        if (done_) return;
        try {
            to_ = files::file();
            disk_.remove_tree(partial_);
        } catch (const error&) {  // the error that led here is the one to tell
        }
    }
    new_file(const new_file&) = delete;
    new_file& operator=(const new_file&) = delete;

    void write(const void* data, std::int64_t bytes, std::int64_t offset) { to_.write(data, bytes, offset); }
    void reserve(std::int64_t bytes) { to_.reserve(bytes); }
    // At least so long, where the file system cannot reserve.
    void length(std::int64_t bytes) {
        if (to_.bytes() < bytes) to_.write("", 1, bytes - 1);
    }
    void finish() {
        to_.sync();
        to_.close();
        disk_.rename_exclusive(partial_, path_);
        done_ = true;
        disk_.sync_directory(files::parent_of(path_));
    }

private:
    const files::disk& disk_;
    std::string path_, partial_;
    files::file to_;
    bool done_ = false;
};

}  // namespace zero::tool
