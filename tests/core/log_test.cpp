// Who hears which lines: the caller's function, stderr under ZERO_LOG_LEVEL, or nobody.
#include "core/log.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

using zero::log_level;
using lines = std::vector<std::pair<log_level, std::string>>;

namespace {

// ZERO_LOG_LEVEL for one scope; null: not set.
class environment {
public:
    explicit environment(const char* level) {
        if (level == nullptr) {
            unsetenv("ZERO_LOG_LEVEL");
        } else {
            setenv("ZERO_LOG_LEVEL", level, 1);
        }
    }
    ~environment() { unsetenv("ZERO_LOG_LEVEL"); }
};

// What `action` writes to stderr.
template <typename Action>
std::string stderr_of(Action action) {
    const zero::test::temporary_folder folder;
    const std::string file = folder / "stderr";
    std::fflush(stderr);
    const int kept = dup(STDERR_FILENO);
    std::FILE* target = std::fopen(file.c_str(), "w");
    dup2(fileno(target), STDERR_FILENO);
    action();
    std::fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    std::fclose(target);
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_all(zero::log& log) {
    log.write(log_level::error, "e");
    log.warning("w{}", 1);
    log.info("i{}", 2);
    log.write(log_level::debug, "d");
}

zero::log::sink into(lines& heard) {
    return [&heard](log_level level, const std::string& text) { heard.emplace_back(level, text); };
}

}  // namespace

TEST_CASE("nothing is written by default") {
    const environment unset(nullptr);
    CHECK(stderr_of([] {
              zero::log log(0);
              CHECK_FALSE(log.listens(log_level::error));
              write_all(log);
              log.level(log_level::debug);  // how much, not where to
              write_all(log);
          }) == "");
}

TEST_CASE("ZERO_LOG_LEVEL sends lines with the rank to stderr") {
    const auto written = [](const char* level) {
        const environment set(level);
        return stderr_of([] {
            zero::log log(3);
            write_all(log);
        });
    };
    const std::string e = "zero rank 3 error: e\n", w = "zero rank 3 warning: w1\n", i = "zero rank 3 info: i2\n",
                      d = "zero rank 3 debug: d\n";
    CHECK(written("error") == e);
    CHECK(written("0") == e);
    CHECK(written("warning") == e + w);
    CHECK(written("1") == e + w);
    CHECK(written("info") == e + w + i);
    CHECK(written("2") == e + w + i);
    CHECK(written("debug") == e + w + i + d);
    CHECK(written("3") == e + w + i + d);
    CHECK(written("") == "");
}

TEST_CASE("an unknown ZERO_LOG_LEVEL is named and taken as info") {
    for (const char* level : {"loud", "4", "-1", "22"}) {
        const environment set(level);
        const std::string written = stderr_of([] {
            zero::log log(0);
            CHECK(log.listens(log_level::info));
            CHECK_FALSE(log.listens(log_level::debug));
        });
        CHECK(written.find(std::string("ZERO_LOG_LEVEL is '") + level + "'") != std::string::npos);
    }
}

TEST_CASE("the caller's function hears instead of stderr, until it is taken back") {
    const environment set("debug");
    lines heard;
    const std::string written = stderr_of([&] {
        zero::log log(0);
        log.redirect(into(heard));
        write_all(log);
        log.redirect({});
        log.write(log_level::error, "back");
    });
    CHECK(heard ==
          lines{{log_level::error, "e"}, {log_level::warning, "w1"}, {log_level::info, "i2"}, {log_level::debug, "d"}});
    CHECK(written == "zero rank 0 error: back\n");
}

TEST_CASE("the caller's function hears up to info, or what level() says") {
    const environment unset(nullptr);
    lines heard;
    zero::log log(0);
    log.redirect(into(heard));
    write_all(log);
    CHECK(heard.size() == 3);
    heard.clear();
    log.level(log_level::warning);
    write_all(log);
    CHECK(heard == lines{{log_level::error, "e"}, {log_level::warning, "w1"}});
}

TEST_CASE("once says the same text once, and only counts what somebody heard") {
    const environment unset(nullptr);
    lines heard;
    zero::log log(0);
    log.once(log_level::info, "a");  // nobody listens
    log.redirect(into(heard));
    for (int i = 0; i < 3; ++i) {
        log.once(log_level::info, "a");
        log.once(log_level::warning, "b");
    }
    CHECK(heard == lines{{log_level::info, "a"}, {log_level::warning, "b"}});
}
