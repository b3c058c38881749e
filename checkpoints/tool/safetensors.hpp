// zero-ckpt: what export and import know of the safetensors format.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.hpp"

namespace zero::tool::safetensors {

constexpr std::int64_t most_header_bytes = 100'000'000;  // as the format's own readers have it
constexpr const char* states_key = "libzero_states";     // in __metadata__: states are there, under this prefix
constexpr const char* states_prefix = "states/";

constexpr const char* name_of(dtype type) noexcept {
    switch (type) {
        case dtype::f32: return "F32";
        case dtype::f64: return "F64";
        case dtype::bf16: return "BF16";
        case dtype::f16: return "F16";
        default: return "";
    }
}

constexpr std::optional<dtype> type_of(std::string_view text) noexcept {
    for (const dtype one : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16})
        if (text == name_of(one)) return one;
    return std::nullopt;
}

}  // namespace zero::tool::safetensors
