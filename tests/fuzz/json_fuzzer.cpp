// libFuzzer target: any bytes as a configuration either give settings or a zero::error with a sentence; what was read
// is read again from its own JSON with the same result. Nothing else may happen: no crash, no other exception.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/settings.hpp"
#include "core/error.hpp"

namespace {

// A fault that the fuzzer must see.
void demand(bool condition) {
    if (!condition) std::abort();
}

void read_again(const zero::config::options& first) {
    zero::config::options again;
    again.read(first.as_json(), false);
    demand(again.as_json() == first.as_json());
}

void one_key(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return;
    zero::config::options made;
    try {
        made.set(text.substr(0, equals), text.substr(equals + 1));
    } catch (const zero::error& refused) {
        demand(*refused.what() != '\0');
        demand(made.as_json() == "{}");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    const std::string text(reinterpret_cast<const char*>(bytes), count);
    one_key(text);
    const bool is_json =
        text.find_first_not_of(" \t\r\n") != std::string::npos && text[text.find_first_not_of(" \t\r\n")] == '{';
    try {
        zero::config::options made;
        if (is_json) {
            made.read(text, false);
            read_again(made);
            zero::config::resolve(made, 3, 1000);
            zero::config::resolve_group(made, 0);
        }
        made.add_group(text, 1);
        zero::config::resolve_group(made, 1);
    } catch (const zero::error& refused) {
        demand(*refused.what() != '\0');
    }
    return 0;
}
