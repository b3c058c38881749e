// For programs around MPI's life, where Catch2 cannot run: a code of the C ABI that is not the expected one is said, and
// counted for the exit status.
#pragma once
#include <cstdio>

#include "zero/zero.h"

inline int failures = 0;

inline void expect(int expected, int code, const char* what) {
    if (code == expected) return;
    std::fprintf(stderr, "%s: %d (%s) instead of %d: %s\n", what, code, zero_error_name(code), expected,
                 zero_last_error());
    ++failures;
}
