// libFuzzer target: any bytes as MANIFEST.json either give a manifest whose numbers hang together, or code::checkpoint.
// The checksums are left out, so that the fuzzer reaches what is behind them.
#include "checkpoints/manifest.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void demand(bool condition) {
    if (!condition) std::abort();
}

template <typename Call>
void refused_or_fine(Call call) {
    try {
        call();
    } catch (const zero::error& problem) {
        demand(problem.which() == zero::code::checkpoint && *problem.what() != '\0');
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    using namespace zero::checkpoint;
    const std::string_view text(reinterpret_cast<const char*>(bytes), count);
    refused_or_fine([&] { head_from_text(text, "fuzz"); });
    refused_or_fine([&] { from_text(text, "fuzz"); });
    refused_or_fine([&] {
        const manifest read = from_json(text, "fuzz");
        const manifest again = from_text(to_text(read), "fuzz");
        demand(to_text(again) == to_text(read));
    });
    return 0;
}
