// The one object behind the emulation, its settings from the environment, and how it says that something is wrong.
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.hpp"

namespace zero_emulation {
namespace {

std::int64_t from_environment(const char* name, std::int64_t otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr || *value == 0 ? otherwise : std::strtoll(value, nullptr, 10);
}

machine* make() {
    auto* m = new machine;  // for ever: its thread runs until the process ends
    m->random.seed(static_cast<std::uint64_t>(from_environment("ZERO_EMULATION_SEED", 1)));
    m->delay = static_cast<int>(from_environment("ZERO_EMULATION_DELAY", 300));
    m->devices = static_cast<int>(from_environment("ZERO_EMULATION_DEVICES", 4));
    m->node = static_cast<int>(from_environment("ZERO_EMULATION_NODE", 0));
    m->device_limit = from_environment("ZERO_EMULATION_MEMORY", std::int64_t{2} << 30);
    m->pinned_limit = from_environment("ZERO_EMULATION_PINNED", INT64_MAX);
    m->fail_cuda = from_environment("ZERO_EMULATION_FAIL_CUDA", 0);
    m->fail_nccl = from_environment("ZERO_EMULATION_FAIL_NCCL", 0);
    const char* driver_name = std::getenv("ZERO_EMULATION_DRIVER");
    if (driver_name != nullptr && std::strcmp(driver_name, "none") == 0) m->drivers = driver::none;
    if (driver_name != nullptr && std::strcmp(driver_name, "no_device") == 0) m->drivers = driver::no_device;
    return m;
}

// "program(+0x1234) [...]": the offset, where the loader knows no name, which is so in the program itself.
std::string offset_in_program(const std::string& symbol) {
    const auto open = symbol.find("(+"), close = symbol.find(')');
    return open == std::string::npos || close == std::string::npos ? "" : symbol.substr(open + 2, close - open - 2);
}

// What addr2line makes of them, a line each; empty where there is none.
std::vector<std::string> lines_of(const std::string& offsets) {
    std::vector<std::string> lines;
    FILE* pipe = ::popen(
        ("addr2line -Cfspe /proc/" + std::to_string(::getpid()) + "/exe" + offsets + " 2>/dev/null").c_str(), "r");
    char line[400];
    while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr) {
        line[std::strcspn(line, "\n")] = 0;
        lines.emplace_back(line);
    }
    if (pipe != nullptr) ::pclose(pipe);
    return lines;
}

bool worth_saying(const std::string& line) {
    for (const char* const each :
         {"zero_emulation::", "Catch::", "libc_start", "libc.so", "_start at", "zero::test::run_catch"}) {
        if (line.find(each) != std::string::npos) return false;
    }
    return true;
}

}  // namespace

machine& the_machine() {
    static machine* const one = make();
    return *one;
}

void vector_clock::set(std::size_t stream, std::uint64_t number) {
    if (at_.size() <= stream) at_.resize(stream + 1);
    at_[stream] = number;
}

void vector_clock::join(const vector_clock& other) {
    if (at_.size() < other.at_.size()) at_.resize(other.at_.size());
    for (std::size_t i = 0; i < other.at_.size(); ++i) at_[i] = std::max(at_[i], other.at_[i]);
}

const char* name_of(allocation::kind what) {
    switch (what) {
        case allocation::kind::device:
            return "device memory";
        case allocation::kind::pool:
            return "device memory of a pool";
        case allocation::kind::nccl:
            return "device memory of NCCL";
        case allocation::kind::managed:
            return "managed memory";
        case allocation::kind::pinned:
            return "pinned memory";
        case allocation::kind::registered:
            return "registered memory";
    }
    return "?";
}

void problem(machine& m, const std::string& text) {
    if (m.collectors > 0) {
        m.problems.push_back(text);
        return;
    }
    std::fprintf(stderr, "emulation of CUDA: %s\n", text.c_str());
    std::fflush(stderr);
    std::abort();
}

call_site here() {
    call_site where(12);
    const int found = ::backtrace(where.data(), static_cast<int>(where.size()));
    where.resize(static_cast<std::size_t>(std::max(found, 0)));
    if (!where.empty()) where.erase(where.begin());
    return where;
}

std::string to_text(const call_site& where) {
    char** const symbols = ::backtrace_symbols(where.data(), static_cast<int>(where.size()));
    if (symbols == nullptr) return "";
    std::string offsets, text;
    for (std::size_t i = 0; i < where.size(); ++i) {
        const std::string offset = offset_in_program(symbols[i]);
        if (!offset.empty()) offsets += " " + offset;
    }
    const std::vector<std::string> lines = lines_of(offsets);
    std::size_t next = 0;
    for (std::size_t i = 0; i < where.size(); ++i) {
        std::string line = symbols[i];
        if (!offset_in_program(line).empty() && next < lines.size()) line = lines[next++];
        if (worth_saying(line)) text += "    " + line + "\n";
    }
    std::free(symbols);
    return text;
}

}  // namespace zero_emulation
