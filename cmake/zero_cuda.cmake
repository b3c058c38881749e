# Turns CUDA on when it is wanted, and says what to do when there is no toolkit. The runtime is linked statically and loads the
# driver when it is first asked, so the library starts where there is none.
include(CheckLanguage)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # and PTX of 9.0 for what comes later
endif()
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "ZERO_CUDA=ON, but no CUDA compiler was found. Install the CUDA toolkit (12.1 or later), name its nvcc "
                        "with -DCMAKE_CUDA_COMPILER=... or configure with -DZERO_CUDA=OFF.")
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 knows no C++20 of nvcc
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.1)
    message(FATAL_ERROR "ZERO_CUDA=ON needs CUDA 12.1 or later (kernels take more than 4096 bytes of arguments), not "
                        "${CMAKE_CUDA_COMPILER_VERSION}.")
endif()
find_package(CUDAToolkit REQUIRED)
find_package(NCCL)
if(NOT NCCL_FOUND)
    message(FATAL_ERROR "ZERO_CUDA=ON, but NCCL was not found. Install it (libnccl-dev) or name its folder with -DNCCL_ROOT=...")
endif()

# No contraction into fused multiply-add, IEEE division and roots: the bits of the host (the last two are nvcc's default).
set(ZERO_CUDA_FLAGS -fmad=false -prec-div=true -prec-sqrt=true -ftz=false -Xcompiler=-ffp-contract=off
    -Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow)
if(ZERO_WERROR)
    list(APPEND ZERO_CUDA_FLAGS "SHELL:-Werror all-warnings" -Xcompiler=-Werror)
endif()
