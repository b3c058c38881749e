/* The header alone, as a C99 program includes it, and its version. */
#include "zero/zero.h"

#include "zero/version.h"

int main(void) {
    int major = -1, minor = -1, patch = -1;
    if (zero_version(&major, &minor, &patch) != ZERO_OK) return 1;
    if (zero_version(NULL, NULL, NULL) != ZERO_OK) return 2;
    return major == ZERO_VERSION_MAJOR && minor == ZERO_VERSION_MINOR && patch == ZERO_VERSION_PATCH ? 0 : 3;
}
