# Flags of the kernels (vector_kernels.inc), included by src/CMakeLists.txt: one file per instruction set, always optimised (a
# debug build would take minutes otherwise), never with -ffast-math: the bits must not depend on the instruction set.
# Machines other than x86-64 get the baseline alone. -Wno-psabi: registers are passed to always-inlined functions only.
set(zero_here ${CMAKE_CURRENT_LIST_DIR})
set(zero_avx2)
set(zero_avx512)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(zero_avx2 -mavx2 -mfma -mf16c)
    set(zero_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512)
endif()
set_source_files_properties(${zero_here}/vector_kernels_baseline.cpp PROPERTIES COMPILE_OPTIONS "${ZERO_KERNEL_FLAGS};-Wno-psabi")
set_source_files_properties(${zero_here}/vector_kernels_avx2.cpp PROPERTIES COMPILE_OPTIONS "${ZERO_KERNEL_FLAGS};-Wno-psabi;${zero_avx2}")
set_source_files_properties(${zero_here}/vector_kernels_avx512.cpp PROPERTIES COMPILE_OPTIONS "${ZERO_KERNEL_FLAGS};-Wno-psabi;${zero_avx512}")
