# Included by src/CMakeLists.txt. The loops: vector_kernels.inc.
zero_kernel_flags(${CMAKE_CURRENT_LIST_DIR}/vector_kernels)
