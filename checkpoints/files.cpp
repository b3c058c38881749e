// POSIX calls behind files.hpp: interrupted calls go on, short ones are continued, every return code is looked at.
#include "files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace zero::files {
namespace {

constexpr std::int64_t largest_request = std::int64_t{1} << 30;  // Linux moves at most 2 GiB per call
constexpr int new_directory = 0777, new_file = 0666;             // the caller's umask decides

struct wording {
    const char *name, *verb;
};

wording wording_of(action what) noexcept {
    switch (what) {
        case action::create:
            return {"create", "create"};
        case action::open:
            return {"open", "open"};
        case action::read:
            return {"read", "read"};
        case action::write:
            return {"write", "write to"};
        case action::reserve:
            return {"reserve", "reserve space for"};
        case action::sync:
            return {"sync", "flush to disk"};
        case action::close:
            return {"close", "close"};
        case action::status:
            return {"status", "look at"};
        case action::list:
            return {"list", "list"};
        case action::make_directory:
            return {"make_directory", "make the directory"};
        case action::rename:
            return {"rename", "rename to"};
        case action::remove:
            return {"remove", "remove"};
    }
    return {"unknown", "use"};
}

std::string sentence(action what, const std::string& path, int number) {
    return formatted("cannot {} {}: {} (errno {})", wording_of(what).verb, path,
                     std::generic_category().message(number), number);
}

// The calls that may be interrupted before they have done anything are made again.
template <typename Call>
int uninterrupted(Call call) {
    for (;;) {
        const int answer = call();
        if (answer != -1 || errno != EINTR) return answer;
    }
}

}  // namespace

std::string parent_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

const char* name(action what) noexcept {
    return wording_of(what).name;
}

failure::failure(action what, const std::string& path, int number)
    : error(code::io, sentence(what, path, number)), number_(number) {}

// --- file ---

void file::drop() noexcept {
    if (direct_ >= 0) ::close(std::exchange(direct_, -1));
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

file::~file() {
    drop();
}

file::file(file&& other) noexcept
    : owner_(other.owner_),
      path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      direct_(std::exchange(other.direct_, -1)) {}

file& file::operator=(file&& other) noexcept {
    if (this == &other) return *this;
    drop();
    owner_ = other.owner_;
    path_ = std::move(other.path_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    direct_ = std::exchange(other.direct_, -1);
    return *this;
}

void file::go_direct() {
    if (owner_->ask(action::open, path_).error != 0) return;
    const int mode = ::fcntl(descriptor_, F_GETFL) & O_ACCMODE;
    // By its number: the path may be relative. Refused (EINVAL on tmpfs, no /proc): the usual way then.
    const std::string same = formatted("/proc/self/fd/{}", descriptor_);
    direct_ = uninterrupted([&] { return ::open(same.c_str(), mode | O_DIRECT | O_CLOEXEC); });
}

std::byte* file::aligned(std::byte* data, std::int64_t offset) noexcept {
    const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data) % direct_unit);
    return data + (offset % direct_unit - past + direct_unit) % direct_unit;
}

// The way of the next bytes: from one multiple of the unit to another directly, what is before and behind by the cache.
step file::route_of(void* data, std::int64_t bytes, std::int64_t offset) const noexcept {
    const std::int64_t behind = offset % direct_unit;
    if (direct_ < 0 || bytes < direct_unit || !lies_right(data, offset)) return {descriptor_, data, bytes, offset};
    if (behind != 0) return {descriptor_, data, direct_unit - behind, offset};
    return {direct_, data, bytes - bytes % direct_unit, offset};
}

std::int64_t file::bytes() const {
    owner_->ask_or_throw(action::status, path_);
    struct stat found {};
    if (::fstat(descriptor_, &found) != 0) throw failure(action::status, path_, errno);
    return found.st_size;
}

step file::next(action what, void* data, std::int64_t bytes, std::int64_t offset) const {
    step made = route_of(data, bytes, offset);
    made.bytes = std::min(made.bytes, largest_request);
    for (;;) {
        const verdict said = owner_->ask(what, path_, offset, made.bytes);
        if (said.error == EINTR) continue;
        if (said.error != 0) throw failure(what, path_, said.error);
        if (said.most >= 0) made.bytes = std::max<std::int64_t>(1, std::min(made.bytes, said.most));
        return made;
    }
}

std::int64_t file::outcome(action what, step& of, std::int64_t answer) const {
    if (answer > 0 || (answer == 0 && what == action::read)) return answer;
    if (answer == -EINTR || answer == -EAGAIN) return -1;
    if (answer == -EINVAL && of.descriptor == direct_) {  // the device wants larger units than ours
        of.descriptor = descriptor_;
        return -1;
    }
    throw failure(what, path_, answer == 0 ? EIO : static_cast<int>(-answer));
}

// Until all is moved or a file that is read ends.
std::int64_t file::all(action what, void* data, std::int64_t bytes, std::int64_t offset) const {
    std::int64_t done = 0;
    while (done < bytes) {
        step now = next(what, static_cast<std::byte*>(data) + done, bytes - done, offset + done);
        std::int64_t had = -1;
        while (had < 0) {
            const auto length = static_cast<std::size_t>(now.bytes);
            had = what == action::read ? ::pread(now.descriptor, now.data, length, now.offset)
                                       : ::pwrite(now.descriptor, now.data, length, now.offset);
            had = outcome(what, now, had < 0 ? -errno : had);
        }
        if (had == 0) break;
        done += had;
    }
    return done;
}

std::int64_t file::read(void* data, std::int64_t bytes, std::int64_t offset) const {
    return all(action::read, data, bytes, offset);
}

void file::write(const void* data, std::int64_t bytes, std::int64_t offset) {
    all(action::write, const_cast<void*>(data), bytes, offset);  // which only a read would change
}

void file::reserve(std::int64_t bytes) {
    if (bytes <= 0) return;
    for (;;) {
        const verdict said = owner_->ask(action::reserve, path_, 0, bytes);
        int number = said.error;
        if (number == 0 && ::fallocate(descriptor_, 0, 0, bytes) != 0) number = errno;
        if (number == EINTR) continue;
        // Not every file system can reserve; there a full disk shows at the write.
        if (number == 0 || number == EOPNOTSUPP || number == ENOSYS || number == EINVAL) return;
        throw failure(action::reserve, path_, number);
    }
}

void file::sync() {
    owner_->ask_or_throw(action::sync, path_);
    if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0) throw failure(action::sync, path_, errno);
}

void file::close() {
    if (descriptor_ < 0) return;
    const verdict said = owner_->ask(action::close, path_);
    if (direct_ >= 0) ::close(std::exchange(direct_, -1));
    // After close the descriptor is gone whatever it answers (Linux), EINTR included.
    const int answer = ::close(std::exchange(descriptor_, -1));
    const int number = said.error != 0 ? said.error : answer != 0 ? errno : 0;
    if (number != 0 && number != EINTR) throw failure(action::close, path_, number);
}

// --- disk ---

verdict disk::ask(action what, const std::string& path, std::int64_t offset, std::int64_t bytes) const {
    const std::int64_t number = (*calls_)++;
    return watch_ ? watch_({what, path, offset, bytes, number}) : verdict{};
}

void disk::ask_or_throw(action what, const std::string& path) const {
    for (;;) {
        const verdict said = ask(what, path);
        if (said.error == EINTR) continue;
        if (said.error != 0) throw failure(what, path, said.error);
        return;
    }
}

file disk::create(const std::string& path) const {
    ask_or_throw(action::create, path);
    const int descriptor =
        uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, new_file); });
    if (descriptor < 0) throw failure(action::create, path, errno);
    return {*this, path, descriptor};
}

file disk::open(const std::string& path, bool writable) const {
    ask_or_throw(action::open, path);
    const int descriptor =
        uninterrupted([&] { return ::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC); });
    if (descriptor < 0) throw failure(action::open, path, errno);
    return {*this, path, descriptor};
}

status disk::look(const std::string& path) const {
    ask_or_throw(action::status, path);
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) return {};
        throw failure(action::status, path, errno);
    }
    if (S_ISLNK(found.st_mode) && ::stat(path.c_str(), &found) != 0) return {};  // a link that leads nowhere
    return {true, S_ISDIR(found.st_mode), found.st_size, found.st_mtime};
}

std::vector<std::string> disk::list(const std::string& directory) const {
    ask_or_throw(action::list, directory);
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), &::closedir);
    if (open == nullptr) throw failure(action::list, directory, errno);
    std::vector<std::string> names;
    for (;;) {
        errno = 0;
        const dirent* entry = ::readdir(open.get());
        if (entry == nullptr) break;
        const std::string found = static_cast<const char*>(entry->d_name);
        if (found != "." && found != "..") names.push_back(found);
    }
    if (errno != 0) throw failure(action::list, directory, errno);
    std::sort(names.begin(), names.end());
    return names;
}

void disk::make_directory(const std::string& path) const {
    ask_or_throw(action::make_directory, path);
    if (::mkdir(path.c_str(), new_directory) != 0) throw failure(action::make_directory, path, errno);
}

void disk::make_directories(const std::string& path) const {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        if (!look(part).directory) {
            try {
                make_directory(part);
                sync_directory(parent_of(part));
            } catch (const failure& problem) {
                // Another process may have been faster.
                if (problem.number() != EEXIST || !look(part).directory) throw;
            }
        }
        if (end == std::string::npos) return;
    }
}

void disk::rename(const std::string& from, const std::string& to) const {
    ask_or_throw(action::rename, to);
    if (::rename(from.c_str(), to.c_str()) != 0) throw failure(action::rename, to, errno);
}

void disk::rename_exclusive(const std::string& from, const std::string& to) const {
    ask_or_throw(action::rename, to);
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
    const int number = errno;
    if (number != EINVAL && number != ENOSYS) throw failure(action::rename, to, number);
    // A file system without "no replace" (NFS): a directory that is not empty is never replaced by rename.
    if (look(to).exists) throw failure(action::rename, to, EEXIST);
    if (::rename(from.c_str(), to.c_str()) != 0) throw failure(action::rename, to, errno);
}

void disk::remove(const std::string& path) const {
    ask_or_throw(action::remove, path);
    if (std::remove(path.c_str()) != 0) throw failure(action::remove, path, errno);
}

void disk::remove_tree(const std::string& path) const {
    ask_or_throw(action::status, path);
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) {
        if (errno == ENOENT) return;
        throw failure(action::status, path, errno);
    }
    try {
        if (S_ISDIR(found.st_mode))
            for (const std::string& entry : list(path)) remove_tree(join(path, entry));
        remove(path);
    } catch (const failure& problem) {
        if (problem.number() != ENOENT) throw;  // another process was faster
    }
}

void disk::sync_directory(const std::string& path) const {
    ask_or_throw(action::sync, path);
    const int descriptor = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (descriptor < 0) throw failure(action::sync, path, errno);
    const int number = uninterrupted([&] { return ::fsync(descriptor); }) != 0 ? errno : 0;
    ::close(descriptor);
    // Some file systems cannot sync a directory and need not.
    if (number != 0 && number != EINVAL && number != ENOTSUP) throw failure(action::sync, path, number);
}

std::string disk::read_text(const std::string& path, std::int64_t most) const {
    const file from = open(path);
    std::string text(static_cast<std::size_t>(std::min(from.bytes(), most)), '\0');
    text.resize(static_cast<std::size_t>(from.read(text.data(), static_cast<std::int64_t>(text.size()), 0)));
    return text;
}

void disk::write_text(const std::string& path, const std::string& text, bool lasting) const {
    file to = create(path);
    to.write(text.data(), static_cast<std::int64_t>(text.size()), 0);
    if (lasting) to.sync();
    to.close();
}

std::string join(const std::string& directory, const std::string& name) {
    return directory.empty() ? name : directory.back() == '/' ? directory + name : directory + "/" + name;
}

}  // namespace zero::files
