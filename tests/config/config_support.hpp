// What the tests of the configuration share: an environment variable that goes away again, and "throws this code and
// names these words".
#pragma once
#include <catch2/catch.hpp>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "config/options.hpp"
#include "core/error.hpp"

namespace zero::testing {

class environment_variable {
public:
    environment_variable(std::string name, const std::string& text) : name_(std::move(name)) {
        setenv(name_.c_str(), text.c_str(), 1);
    }
    ~environment_variable() { unsetenv(name_.c_str()); }
    environment_variable(const environment_variable&) = delete;
    environment_variable& operator=(const environment_variable&) = delete;

private:
    std::string name_;
};

// The sentence of the zero::error that `action` throws, which must carry `wanted` and every word.
template <typename Action>
std::string refused(code wanted, std::initializer_list<std::string> words, Action&& action) {
    try {
        action();
    } catch (const error& thrown) {
        INFO(thrown.what());
        CHECK(thrown.which() == wanted);
        for (const std::string& word : words) {
            INFO("wanted in the sentence: " << word);
            CHECK(std::string(thrown.what()).find(word) != std::string::npos);
        }
        return thrown.what();
    }
    FAIL_CHECK("nothing was thrown");
    return "";
}

inline config::options read(const std::string& text) {
    config::options made;
    made.read(text, false);
    return made;
}

inline bool said(const std::vector<std::string>& lines, const std::string& word) {
    for (const std::string& line : lines) {
        if (line.find(word) != std::string::npos) return true;
    }
    return false;
}

}  // namespace zero::testing
