// Is the process that made a staging folder still there? Asked of /proc, so that a process number used again by
// another process does not count, nor one of another host or container.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "directory.hpp"

namespace zero::checkpoint {
namespace {

constexpr std::int64_t silence = 3600;  // seconds without a sign of life on a machine that we cannot ask

std::string first_line(const std::string& path) {
    std::ifstream from(path);
    std::string line;
    std::getline(from, line);
    return line;
}

// Field 22 of /proc/<pid>/stat, counted behind the name in parentheses, which may hold blanks.
std::string start_of(pid_t process) {
    const std::string line = first_line(formatted("/proc/{}/stat", process));
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) return "";
    std::istringstream fields(line.substr(name_end + 1));
    std::string field;
    for (int k = 3; k <= 22; ++k) fields >> field;
    return field;
}

std::string machine() {
    std::array<char, 256> host{}, space{};
    ::gethostname(host.data(), host.size() - 1);
    if (::readlink("/proc/self/ns/pid", space.data(), space.size() - 1) < 0) space[0] = '\0';
    return formatted("{} {} {}", host.data(), first_line("/proc/sys/kernel/random/boot_id"), space.data());
}

}  // namespace

std::string owner_text() {
    return formatted("{}\n{} {}\n", machine(), ::getpid(), start_of(::getpid()));
}

bool owner_is_gone(const std::string& text, std::int64_t last_sign, std::int64_t now) {
    std::istringstream lines(text);
    std::string where, start;
    long process = 0;
    std::getline(lines, where);
    const bool known = lines >> process && process > 0 && process <= INT32_MAX;
    // Without a process in it the owner is perhaps about to write it.
    if (!known || where != machine()) return now - last_sign > silence;
    lines >> start;
    if (::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) return true;
    return start_of(static_cast<pid_t>(process)) != start;
}

}  // namespace zero::checkpoint
