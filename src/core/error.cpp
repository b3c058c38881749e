// Names and meanings of the codes, from the one table in error.hpp.
// Not here: texts of single failures; they are written where they happen.
#include "core/error.hpp"

namespace zero {

const char* name(code which) noexcept {
    switch (which) {
#define ZERO_ROW(identifier, number, text, meaning) \
    case code::identifier:                          \
        return text;
        ZERO_ERROR_TABLE(ZERO_ROW)
#undef ZERO_ROW
    }
    return "ZERO_ERR_UNKNOWN";  // any int may have been cast to a code at the C boundary
}

const char* meaning(code which) noexcept {
    switch (which) {
#define ZERO_ROW(identifier, number, name, text) \
    case code::identifier:                       \
        return text;
        ZERO_ERROR_TABLE(ZERO_ROW)
#undef ZERO_ROW
    }
    return "not a code of this library";
}

}  // namespace zero
