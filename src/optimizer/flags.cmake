# Included by src/CMakeLists.txt. The loops: kernels_host.inc.
zero_kernel_flags(${CMAKE_CURRENT_LIST_DIR}/kernels_host)
