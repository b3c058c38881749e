# Flags of the kernels (kernels_host.inc), included by src/CMakeLists.txt: one file per instruction set, always optimised (a
# debug build would take minutes otherwise), never with -ffast-math: the bits must not depend on the instruction set.
# Machines other than x86-64 get the baseline alone. -Wno-psabi: registers are passed to always-inlined functions only.
set(zero_baseline)
set(zero_avx2)
set(zero_avx512)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(zero_avx2 -mavx2 -mfma -mf16c)
    set(zero_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512)
endif()
foreach(set baseline avx2 avx512)
    set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/kernels_host_${set}.cpp PROPERTIES
        COMPILE_OPTIONS "${ZERO_KERNEL_FLAGS};-Wno-psabi;-Wno-unknown-pragmas;${zero_${set}}")
endforeach()
