// The one place where fmt is compiled as a whole. Not here: the sentences; they are written where they are needed.
#include "core/text.hpp"

namespace zero {

std::string format_values(fmt::string_view format, fmt::format_args values) { return fmt::vformat(format, values); }

}  // namespace zero
