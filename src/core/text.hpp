// Text from a format and values. Not fmt::format itself: with header-only fmt every source would compile all of it again;
// here that happens once (text.cpp), which makes the library build several times faster.
#pragma once
#include <string>

#include <fmt/format.h>

namespace zero {

std::string format_values(fmt::string_view format, fmt::format_args values);

template <typename... Args>
std::string formatted(fmt::format_string<Args...> format, Args&&... args) {
    return format_values(format, fmt::make_format_args(args...));
}

}  // namespace zero
