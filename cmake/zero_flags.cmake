# Warnings, sanitizers and the flags of the numeric kernels.
set(ZERO_WARNINGS -Wall -Wextra -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND ZERO_WARNINGS -Wno-restrict)  # gcc 12 sees overlaps in std::string that are not there (GCC bug 105651)
endif()
if(ZERO_WERROR)
    list(APPEND ZERO_WARNINGS -Werror)
endif()

# For the numeric kernels. Values do not depend on them: no reassociation, no contraction, only the right to vectorise sqrt
# and select.
set(ZERO_KERNEL_FLAGS -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off)

# zero_kernel_flags(<path>): flags of <path>_baseline.cpp, <path>_avx2.cpp and <path>_avx512.cpp, for src/<folder>/flags.cmake.
# Always optimised (a debug build would take minutes otherwise), never with -ffast-math: the bits must not depend on the
# instruction set. Machines other than x86-64 get the baseline alone. -Wno-psabi: registers are passed to always-inlined
# functions only.
function(zero_kernel_flags path)
    set(baseline)
    set(avx2)
    set(avx512)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
        set(avx2 -mavx2 -mfma -mf16c)
        set(avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512)
    endif()
    foreach(set baseline avx2 avx512)
        set_source_files_properties(${path}_${set}.cpp PROPERTIES
            COMPILE_OPTIONS "${ZERO_KERNEL_FLAGS};-Wno-psabi;-Wno-unknown-pragmas;${${set}}")
    endforeach()
endfunction()

if(ZERO_SANITIZE)
    add_compile_options(-fsanitize=${ZERO_SANITIZE} -fno-omit-frame-pointer -g1)  # -g1: line numbers; -g compiles twice as long
    add_link_options(-fsanitize=${ZERO_SANITIZE})
    if(ZERO_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
endif()
