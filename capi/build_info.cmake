# Tells capi/build_info.cpp what only CMake knows. Nothing here depends on the folder of the build.
set(zero_git_id unknown)
if(DEFINED ZERO_GIT_ID)
    set(zero_git_id "${ZERO_GIT_ID}")
elseif(EXISTS ${PROJECT_SOURCE_DIR}/.git)
    find_package(Git QUIET)
    if(GIT_FOUND)
        execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
            OUTPUT_VARIABLE zero_git_answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE zero_git_result)
        if(zero_git_result EQUAL 0 AND zero_git_answer)
            set(zero_git_id "${zero_git_answer}")
        endif()
    endif()
endif()

set(zero_compilers "C++ ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
if(CMAKE_Fortran_COMPILER)
    string(APPEND zero_compilers ", Fortran ${CMAKE_Fortran_COMPILER_ID} ${CMAKE_Fortran_COMPILER_VERSION}")
endif()
set(zero_options_text "")
foreach(option HDF5 FORTRAN CUDA URING PYTHON)
    string(APPEND zero_options_text "${option}=$<IF:$<BOOL:${ZERO_${option}}>,ON,OFF> ")
endforeach()
set(zero_hdf5_text none)
if(ZERO_HDF5)
    set(zero_hdf5_text "${ZERO_HDF5_VERSION}")
endif()

set(zero_cuda_text none)
set(zero_nccl_text none)
if(ZERO_CUDA)
    set(zero_cuda_text ${CUDAToolkit_VERSION})
    set(zero_nccl_text ${NCCL_VERSION})
endif()

set_property(SOURCE ${PROJECT_SOURCE_DIR}/capi/build_info.cpp TARGET_DIRECTORY zero_objects APPEND PROPERTY COMPILE_DEFINITIONS
    "ZERO_GIT_ID=\"${zero_git_id}\""
    "ZERO_BUILD_COMPILERS=\"${zero_compilers}\""
    "ZERO_BUILD_HDF5=\"${zero_hdf5_text}\""
    "ZERO_BUILD_CUDA=\"${zero_cuda_text}\""
    "ZERO_BUILD_NCCL=\"${zero_nccl_text}\""
    "ZERO_BUILD_OPTIONS=\"${zero_options_text}$<CONFIG>\"")
