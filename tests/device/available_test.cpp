// The forecast of memory, read from made-up /proc and /sys trees.
#include "device/available.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "support/temporary_folder.hpp"

using zero::available_memory;

namespace {

class machine {
public:
    void file(const std::string& name, const std::string& text) {
        const std::filesystem::path path = folder_.path() / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    std::int64_t available() const { return available_memory(folder_.path().string()); }

private:
    zero::test::temporary_folder folder_;
};

constexpr std::int64_t kilobyte = 1024;

}  // namespace

TEST_CASE("nothing known is no limit") {
    CHECK(machine().available() == INT64_MAX);
}

TEST_CASE("the machine: available memory and free swap") {
    machine one;
    one.file("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:  5000 kB\nSwapFree:  70 kB\n");
    CHECK(one.available() == 5070 * kilobyte);
}

TEST_CASE("control groups, version 2: the tightest of all levels counts") {
    machine one;
    one.file("proc/meminfo", "MemAvailable:  5000 kB\n");
    one.file("proc/self/cgroup", "0::/job/step\n");
    one.file("sys/fs/cgroup/job/step/memory.max", "max\n");
    one.file("sys/fs/cgroup/job/step/memory.current", "100\n");
    CHECK(one.available() == 5000 * kilobyte);
    one.file("sys/fs/cgroup/job/memory.max", "4000\n");
    one.file("sys/fs/cgroup/job/memory.current", "1500\n");
    one.file("sys/fs/cgroup/job/memory.stat", "anon 900\ninactive_file 600\n");
    CHECK(one.available() == 4000 - (1500 - 600));
    one.file("sys/fs/cgroup/memory.max", "300\n");
    one.file("sys/fs/cgroup/memory.current", "200\n");
    CHECK(one.available() == 100);
    one.file("sys/fs/cgroup/memory.current", "400\n");
    CHECK(one.available() == 0);
}

TEST_CASE("control groups, version 1") {
    machine one;
    one.file("proc/self/cgroup", "5:cpu:/x\n4:memory:/slurm/job\n0::/\n");
    one.file("sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "5000\n");
    one.file("sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "2000\n");
    one.file("sys/fs/cgroup/memory/slurm/job/memory.stat", "inactive_file 7\ntotal_inactive_file 500\n");
    CHECK(one.available() == 3500);
}

TEST_CASE("inside a container, where the named group is not visible, the mount is the group") {
    machine one;
    one.file("proc/self/cgroup", "4:memory:/host/path/not/here\n");
    one.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n");
    one.file("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n");
    CHECK(one.available() == 3000);
}

TEST_CASE("this machine has something left") {
    CHECK(available_memory() > 1 << 20);
}
