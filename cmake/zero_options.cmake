# Every option of the build. One that cannot be honoured ends the configuration with a sentence; none is quietly ignored.
option(ZERO_HDF5 "Checkpoints through HDF5 (OFF: zero_save and zero_load answer ZERO_ERR_UNSUPPORTED)" ON)
option(ZERO_URING "Checkpoints keep several requests under way by io_uring, where the kernel lets them (OFF: by threads)" ON)
option(ZERO_FORTRAN "Fortran module zero_optimizer and the Fortran 77 entry points" ON)
option(ZERO_TESTS "Build the tests" ${ZERO_TOP_LEVEL})
option(ZERO_EXAMPLES "Build the examples" ${ZERO_TOP_LEVEL})
option(ZERO_BENCHMARKS "Build the benchmarks" ${ZERO_TOP_LEVEL})
option(ZERO_WERROR "Treat compiler warnings as errors" OFF)
set(ZERO_SANITIZE "" CACHE STRING "Sanitizers for everything: empty, address,undefined or thread")

# Planned; each becomes real together with the code behind it.
option(ZERO_CUDA "Device memory and kernels on NVIDIA GPUs (not built yet)" OFF)
option(ZERO_PYTHON "Python binding (not built yet)" OFF)

foreach(planned ZERO_CUDA ZERO_PYTHON)
    if(${planned})
        message(FATAL_ERROR "${planned}=ON: this version has no code for it yet. Configure with -D${planned}=OFF.")
    endif()
endforeach()
