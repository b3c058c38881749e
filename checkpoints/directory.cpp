// Tags, candidates, staging and retention of directory.hpp. Whether an owner lives is owner.cpp.
#include "directory.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <functional>
#include <tuple>

namespace zero::checkpoint {
namespace {

constexpr std::int64_t most_head_bytes = 8192;
constexpr std::string_view staging_prefix = ".staging-", trash_prefix = ".trash-", owner_suffix = ".owner";

std::string owner_path(const std::string& directory, const std::string& uuid) {
    return staging_path(directory, uuid) + std::string(owner_suffix);
}

// Errors that tell about one folder ("lost+found", something else of this name), not about the disk.
bool of_this_folder(int number) {
    return number == EACCES || number == EPERM || number == EISDIR || number == ENOTDIR || number == ELOOP;
}

// Nothing: the folder holds no checkpoint, or another job has just removed it.
std::optional<candidate> look_at(const files::disk& disk, const std::string& directory, const std::string& tag) {
    const std::string path = files::join(files::join(directory, tag), manifest_name);
    candidate found{tag, std::nullopt, ""};
    try {
        if (!disk.look(path).exists) return std::nullopt;
        found.head = head_from_text(disk.read_text(path, most_head_bytes), path);
    } catch (const files::failure& problem) {
        if (problem.number() == ENOENT) return std::nullopt;
        found.problem = problem.what();
        found.disk_failed = !of_this_folder(problem.number());
    } catch (const error& problem) {
        found.problem = problem.what();
    }
    return found;
}

// What another job takes away at the same time is gone either way.
void unless_gone(const std::function<void()>& call) {
    try {
        call();
    } catch (const files::failure& problem) {
        if (problem.number() != ENOENT) throw;
    }
}

bool newer(const candidate& a, const candidate& b) {
    if (a.head.has_value() != b.head.has_value()) return !a.head.has_value();
    if (!a.head) return a.tag > b.tag;
    // Two jobs that saved at the same time may have given the same number.
    return std::tie(a.head->sequence, a.head->time, a.tag) > std::tie(b.head->sequence, b.head->time, b.tag);
}

// Newest sign of life of a writer: anything in its folder that changed.
std::int64_t last_change(const files::disk& disk, const std::string& path) {
    const files::status found = disk.look(path);
    std::int64_t newest = found.modified;
    if (found.directory)
        for (const std::string& name : disk.list(path))
            newest = std::max(newest, disk.look(files::join(path, name)).modified);
    return newest;
}

void discard(const files::disk& disk, const std::string& directory, const std::string& path) {
    disk.remove_tree(move_to_trash(disk, directory, path));
}

// A staging folder, or its owner's file, of a writer that is gone.
void remove_if_stale(const files::disk& disk, const std::string& directory, const std::string& name, std::int64_t now) {
    const std::string path = files::join(directory, name);
    const bool is_owner = name.ends_with(owner_suffix);
    const std::string folder = is_owner ? path.substr(0, path.size() - owner_suffix.size()) : path;
    const std::string owner = folder + std::string(owner_suffix);
    // The owner's file comes before the folder and goes after it: a folder without one has no owner.
    const files::status owned = disk.look(owner);
    const std::int64_t sign = disk.look(folder).exists ? last_change(disk, folder) : owned.modified;
    if (owned.exists && !owner_is_gone(disk.read_text(owner, most_head_bytes), sign, now)) return;
    if (disk.look(folder).exists) discard(disk, directory, folder);
    disk.remove_tree(owner);
}

}  // namespace

std::string move_to_trash(const files::disk& disk, const std::string& directory, const std::string& path) {
    const std::string trash = trash_path(directory, new_uuid());
    disk.rename(path, trash);
    return trash;
}

void check_tag(const std::string& tag) {
    const bool right = !tag.empty() && tag.size() <= 255 && tag.front() != '.' && tag != latest_name &&
                       tag.find('/') == std::string::npos && tag.find('\0') == std::string::npos;
    require(
        right, code::argument,
        "the tag \"{}\" cannot name a checkpoint: give 1 to 255 bytes without '/', not starting with '.', not LATEST",
        tag);
}

std::string default_tag(std::int64_t step) {
    return formatted("step-{:012}", step);
}

std::string new_uuid() {
    std::array<unsigned char, 16> bits{};
    for (std::size_t done = 0; done < bits.size();) {
        const ssize_t had = ::getrandom(bits.data() + done, bits.size() - done, 0);
        if (had > 0)
            done += static_cast<std::size_t>(had);
        else if (errno != EINTR)
            fail(code::io, "the system gives no random numbers (getrandom, errno {})", errno);
    }
    bits[6] = static_cast<unsigned char>((bits[6] & 0x0fU) | 0x40U);  // version 4
    bits[8] = static_cast<unsigned char>((bits[8] & 0x3fU) | 0x80U);
    std::string text;
    for (std::size_t k = 0; k < bits.size(); ++k) {
        if (k == 4 || k == 6 || k == 8 || k == 10) text += '-';
        text += formatted("{:02x}", bits[k]);
    }
    return text;
}

std::string time_text() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text.data();
}

std::string staging_path(const std::string& directory, const std::string& uuid) {
    return files::join(directory, std::string(staging_prefix) + uuid);
}

std::string trash_path(const std::string& directory, const std::string& uuid) {
    return files::join(directory, std::string(trash_prefix) + uuid);
}

std::vector<candidate> candidates(const files::disk& disk, const std::string& directory) {
    std::vector<candidate> found;
    for (const std::string& name : disk.list(directory)) {
        if (name.front() == '.' || name == latest_name) continue;
        std::optional<candidate> one = look_at(disk, directory, name);
        if (one) found.push_back(std::move(*one));
    }
    std::sort(found.begin(), found.end(), newer);
    return found;
}

std::int64_t highest_sequence(const files::disk& disk, const std::string& directory) {
    std::int64_t highest = 0, unknown = 0;
    for (const candidate& one : candidates(disk, directory))
        if (one.head)
            highest = std::max(highest, one.head->sequence);
        else
            ++unknown;
    // The newest ones may be among those that cannot be read now: they have the numbers that follow.
    return highest + unknown;
}

void make_staging(const files::disk& disk, const std::string& directory, const std::string& uuid) {
    try {
        // Not synced: when the machine has crashed, its boot is another one, whatever is left of the file.
        disk.write_text(owner_path(directory, uuid), owner_text(), false);
        disk.make_directory(staging_path(directory, uuid));
    } catch (const error&) {
        forget_owner(disk, directory, uuid);
        throw;
    }
}

void remove_staging(const files::disk& disk, const std::string& directory, const std::string& uuid) {
    disk.remove_tree(staging_path(directory, uuid));
    forget_owner(disk, directory, uuid);
}

void forget_owner(const files::disk& disk, const std::string& directory, const std::string& uuid) {
    disk.remove_tree(owner_path(directory, uuid));
}

void remove_stale(const files::disk& disk, const std::string& directory, std::int64_t now) {
    for (const std::string& name : disk.list(directory))
        if (name.starts_with(trash_prefix))
            disk.remove_tree(files::join(directory, name));
        else if (name.starts_with(staging_prefix))
            unless_gone([&] { remove_if_stale(disk, directory, name, now); });
}

void retain(const files::disk& disk, const std::string& directory, const std::string& newest, std::int64_t keep_last,
            std::int64_t keep_every) {
    if (keep_last <= 0) return;
    std::int64_t kept = 0;
    for (const candidate& one : candidates(disk, directory)) {
        if (!one.head) continue;  // damaged ones are for people to look at
        const bool every = keep_every > 0 && one.head->step % keep_every == 0;
        if (kept++ < keep_last || every || one.tag == newest) continue;
        unless_gone([&] { discard(disk, directory, files::join(directory, one.tag)); });
    }
}

}  // namespace zero::checkpoint
