# Warnings, sanitizers and the flags of the numeric kernels.
set(ZERO_WARNINGS -Wall -Wextra -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND ZERO_WARNINGS -Wno-restrict)  # gcc 12 sees overlaps in std::string that are not there (GCC bug 105651)
endif()
if(ZERO_WERROR)
    list(APPEND ZERO_WARNINGS -Werror)
endif()

# For the numeric kernels, set by src/<folder>/flags.cmake on the files that need them. Values do not depend on them:
# no reassociation, no contraction, only the right to vectorise sqrt and select.
set(ZERO_KERNEL_FLAGS -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off)

if(ZERO_SANITIZE)
    add_compile_options(-fsanitize=${ZERO_SANITIZE} -fno-omit-frame-pointer -g1)  # -g1: line numbers; -g compiles twice as long
    add_link_options(-fsanitize=${ZERO_SANITIZE})
    if(ZERO_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
endif()
