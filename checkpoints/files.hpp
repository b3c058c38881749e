// The thin layer through which every file-system call of a checkpoint goes. A hook sees each call before it is made and
// may refuse it with an errno, cut it short, or end the process there: so tests can fail or kill the n-th call for
// every n. Not here: what the files mean.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace zero::files {

enum class action { create, open, read, write, reserve, sync, close, status, list, make_directory, rename, remove };
const char* name(action what) noexcept;

struct request {
    action what;
    const std::string& path;
    std::int64_t offset = 0, bytes = 0;
    std::int64_t number = 0;  // of this call, from 0, over the whole life of the disk
};
struct verdict {
    int error = 0;           // not 0: the call is not made, it "failed" with this errno
    std::int64_t most = -1;  // not negative: a read or write transfers at most so many bytes
};
using hook = std::function<verdict(const request&)>;

// A failed call: path, what was tried, errno and its text.
class failure : public error {
public:
    failure(action what, const std::string& path, int number);
    int number() const noexcept { return number_; }

private:
    int number_;
};

struct status {
    bool exists = false, directory = false;
    std::int64_t bytes = 0, modified = 0;  // modified: seconds since 1970 by the file system's clock
};

class disk;

// One request of a longer read or write.
struct step {
    int descriptor = -1;
    void* data = nullptr;
    std::int64_t bytes = 0, offset = 0;
};

class file {
public:
    file() = default;
    ~file();
    file(file&& other) noexcept;
    file& operator=(file&& other) noexcept;
    file(const file&) = delete;
    file& operator=(const file&) = delete;

    explicit operator bool() const noexcept { return descriptor_ >= 0; }
    const std::string& path() const noexcept { return path_; }
    std::int64_t bytes() const;
    // Several threads may read and write at once. Reads until all is there or the file ends; the number of bytes had.
    std::int64_t read(void* data, std::int64_t bytes, std::int64_t offset) const;
    void write(const void* data, std::int64_t bytes, std::int64_t offset);  // all or throws
    // The same step by step, for those who hand the requests to the kernel themselves (transfers.cpp): the next one (the
    // hook is asked), and what an answer to it (a number of bytes, or minus errno) means: bytes moved, 0: the file that
    // is read ends, -1: the step, as it is now, is to be made again.
    step next(action what, void* data, std::int64_t bytes, std::int64_t offset) const;
    std::int64_t outcome(action what, step& of, std::int64_t answer) const;
    // From now on what is long goes around the system's cache (O_DIRECT), where the file system can and the memory
    // starts as far behind a multiple of `direct_unit` as the place in the file does; all else goes the usual way.
    void go_direct();
    static constexpr std::int64_t direct_unit = 4096;
    static bool lies_right(const void* data, std::int64_t offset) noexcept {
        return (reinterpret_cast<std::uintptr_t>(data) - static_cast<std::uintptr_t>(offset)) % direct_unit == 0;
    }
    static std::byte* aligned(std::byte* data, std::int64_t offset) noexcept;  // the first such start from `data` on
    void reserve(std::int64_t bytes);  // space, where the file system can: a full disk shows before the first byte
    void sync();                       // a failure is final for this file
    void close();                      // with its return code checked; the destructor does not check

private:
    friend class disk;
    file(const disk& owner, std::string path, int descriptor)
        : owner_(&owner), path_(std::move(path)), descriptor_(descriptor) {}
    step route_of(void* data, std::int64_t bytes, std::int64_t offset) const noexcept;
    std::int64_t all(action what, void* data, std::int64_t bytes, std::int64_t offset) const;
    void drop() noexcept;

    const disk* owner_ = nullptr;
    std::string path_;
    int descriptor_ = -1, direct_ = -1;
};

class disk {
public:
    explicit disk(hook watch = {}) : watch_(std::move(watch)), calls_(std::make_unique<std::atomic<std::int64_t>>(0)) {}

    file create(const std::string& path) const;  // exclusive: fails when it exists
    file open(const std::string& path, bool writable = false) const;
    status look(const std::string& path) const;
    std::vector<std::string> list(const std::string& directory) const;  // names, sorted
    void make_directory(const std::string& path) const;                 // exclusive
    void make_directories(const std::string& path) const;               // with parents; existing ones are fine
    void rename(const std::string& from, const std::string& to) const;  // replaces a file
    void rename_exclusive(const std::string& from, const std::string& to) const;  // EEXIST when `to` is there
    void remove(const std::string& path) const;                                   // a file or an empty directory
    void remove_tree(const std::string& path) const;                              // absent is fine
    void sync_directory(const std::string& path) const;

    std::string read_text(const std::string& path, std::int64_t most) const;  // at most so many bytes
    void write_text(const std::string& path, const std::string& text, bool lasting = true) const;  // create, write, sync, close

    verdict ask(action what, const std::string& path, std::int64_t offset = 0, std::int64_t bytes = 0) const;
    void ask_or_throw(action what, const std::string& path) const;

private:
    hook watch_;
    std::unique_ptr<std::atomic<std::int64_t>> calls_;  // several threads may write one part
};

std::string join(const std::string& directory, const std::string& name);
std::string parent_of(const std::string& path);  // "." where it names no folder

}  // namespace zero::files
