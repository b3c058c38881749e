# yield_shim/libzero_yield_shim.so in the build folder: preloaded by tests, examples' scripts and quickstart.sh, because
# MPICH polls through whole scheduler slices when there are more ranks than cores. Not installed, not part of the library.
if(ZERO_TESTS OR ZERO_EXAMPLES OR ZERO_BENCHMARKS)
    string(COMPARE NOTEQUAL "${ZERO_SANITIZE}" "" zero_sanitized)
    add_library(zero_yield_shim SHARED ${PROJECT_SOURCE_DIR}/tests/support/yield_shim.c
        $<$<BOOL:${zero_sanitized}>:${PROJECT_SOURCE_DIR}/tests/support/keep_modules.c>)
    target_link_libraries(zero_yield_shim PRIVATE ${CMAKE_DL_LIBS})
    set_target_properties(zero_yield_shim PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/yield_shim)
endif()
