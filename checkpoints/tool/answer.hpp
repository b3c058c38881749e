// zero-ckpt: how answers are written as JSON. Names of files may be no UTF-8: such bytes are replaced.
#pragma once
#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace zero::tool {

inline void print_json(const nlohmann::ordered_json& answer) {
    fmt::print("{}\n", answer.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace zero::tool
