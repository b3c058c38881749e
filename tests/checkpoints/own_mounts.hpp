// Work in a process that has its own view of the file systems, so that a small, full or read-only one can be mounted and
// goes away with it.
#pragma once
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>

namespace zero::test {

// What `work` returns; nothing where this process may not mount. It runs in a child: no Catch2 in it.
inline std::optional<std::string> with_own_mounts(const std::function<std::string()>& work) {
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0) return "no pipe";
    const pid_t child = ::fork();
    if (child == 0) {
        std::string answer = "-";
        if (::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) {
            try {
                answer = "+" + work();
            } catch (const std::exception& problem) {
                answer = std::string("+thrown: ") + problem.what();
            }
        }
        const bool told = ::write(ends[1], answer.data(), answer.size()) == static_cast<ssize_t>(answer.size());
        ::_exit(told ? 0 : 1);
    }
    ::close(ends[1]);
    std::string answer;
    char part[4096];
    for (ssize_t had = 0; (had = ::read(ends[0], part, sizeof part)) > 0;) answer.append(part, static_cast<std::size_t>(had));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (answer == "-") return std::nullopt;
    return answer.empty() ? "the child died" : answer.substr(1);
}

inline bool mount_memory(const std::string& place, const std::string& size) {
    return ::mount("tmpfs", place.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
}

inline bool make_read_only(const std::string& place) {
    return ::mount(place.c_str(), place.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
           ::mount(nullptr, place.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0;
}

inline std::int64_t free_bytes(const std::string& place) {
    struct statvfs found {};
    return ::statvfs(place.c_str(), &found) == 0 ? static_cast<std::int64_t>(found.f_bfree * found.f_frsize) : -1;
}

}  // namespace zero::test
