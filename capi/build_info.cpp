// zero_build_info: what this library was built with. capi/build_info.cmake passes what only CMake knows; MPI answers
// for itself.
#include <string>

#include "capi/guard.hpp"
#include "tensor/vector.hpp"
#include "zero/version.h"
#include "zero/zero.h"

#ifndef ZERO_GIT_ID
#define ZERO_GIT_ID "unknown"
#endif
#ifndef ZERO_BUILD_COMPILERS
#define ZERO_BUILD_COMPILERS "C++ " __VERSION__
#endif
#ifndef ZERO_BUILD_OPTIONS
#define ZERO_BUILD_OPTIONS "unknown"
#endif
#ifndef ZERO_BUILD_HDF5
#define ZERO_BUILD_HDF5 "unknown"
#endif

namespace {

#define ZERO_TEXT_OF(number) #number
#define ZERO_TEXT(number) ZERO_TEXT_OF(number)
constexpr const char* version_text =
    ZERO_TEXT(ZERO_VERSION_MAJOR) "." ZERO_TEXT(ZERO_VERSION_MINOR) "." ZERO_TEXT(ZERO_VERSION_PATCH);

// The library that runs, not the headers of the build; allowed before MPI_Init. First line only: some append a page.
std::string mpi_text() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string line(text);
    line = line.substr(0, line.find('\n'));
    for (char& letter : line) {
        if (letter == '\t') letter = ' ';
    }
    return line;
}

std::string describe() {
    return std::string("libzero ") + version_text + "\ngit: " + ZERO_GIT_ID + "\ncompilers: " + ZERO_BUILD_COMPILERS +
           "\nMPI: " + mpi_text() + "\nHDF5: " + ZERO_BUILD_HDF5 +
           "\nCUDA: " + ZERO_BUILD_CUDA + "\nNCCL: " + ZERO_BUILD_NCCL + "\noptions: " + ZERO_BUILD_OPTIONS +
           "\ninstruction set: " + zero::vector::instruction_set() + "\n";
}

}  // namespace

const char* zero_build_info(void) {
    const char* text = "";
    zero::capi::guard([&] {
        static const std::string the_text = describe();
        text = the_text.c_str();
    });
    return text;
}
