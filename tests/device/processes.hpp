// What tests with several processes share: one that is started, tells a number and is killed, and what a process holds open.
#pragma once
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

namespace device_test {

// Runs `action` in a child process; true when it returned true there.
template <typename Action>
bool in_child(const Action& action) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(action() ? 0 : 1);
    int status = -1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// A process that does what it is told and is killed at the end.
class child_process {
public:
    template <typename Action>
    explicit child_process(const Action& action) {
        if (::pipe(pipe_) != 0) return;
        id_ = ::fork();
        if (id_ != 0) return;
        speaking() = pipe_[1];
        action();
        ::_exit(0);
    }
    ~child_process() {
        kill();
        ::close(pipe_[0]);
        ::close(pipe_[1]);
    }
    child_process(const child_process&) = delete;
    child_process& operator=(const child_process&) = delete;

    pid_t id() const { return id_; }
    void kill() {
        if (id_ > 0) {
            ::kill(id_, SIGKILL);
            ::waitpid(id_, nullptr, 0);
        }
        id_ = -1;
    }
    pid_t told() const {
        pid_t number = -1;
        return ::read(pipe_[0], &number, sizeof number) == static_cast<ssize_t>(sizeof number) ? number : -1;
    }
    // In the child.
    static void tell(pid_t number) { (void)!::write(speaking(), &number, sizeof number); }
    static void sleep() { ::sleep(60); }  // an end for orphans

private:
    static int& speaking() {
        static int descriptor = -1;
        return descriptor;
    }
    pid_t id_ = -1;
    int pipe_[2] = {-1, -1};
};

inline int open_files() {
    int count = 0;
    DIR* const folder = ::opendir("/proc/self/fd");
    while (::readdir(folder) != nullptr) ++count;
    ::closedir(folder);
    return count;
}

inline std::int64_t mappings_of_node_memory() {
    std::ifstream in("/proc/self/maps");
    std::int64_t count = 0;
    for (std::string line; std::getline(in, line);) count += line.find("/memfd:libzero") != std::string::npos ? 1 : 0;
    return count;
}

constexpr bool under_sanitizer() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

}  // namespace device_test
