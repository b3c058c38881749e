# What `cmake --install` puts down: libraries, headers, Fortran modules with their source, zero-ckpt, the CMake package
# `zero` and the pkg-config files `zero` and `zero_fortran`.
include(CMakePackageConfigHelpers)
set(zero_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/zero)

set(zero_installed_targets zero zero_static)
if(TARGET zero_fortran)
    list(APPEND zero_installed_targets zero_fortran zero_fortran_static)
endif()
install(TARGETS ${zero_installed_targets} EXPORT zero_targets)
if(TARGET zero_ckpt)
    install(TARGETS zero_ckpt)
    install(FILES ${PROJECT_SOURCE_DIR}/docs/man/zero-ckpt.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${PROJECT_SOURCE_DIR}/checkpoints/tool/completion.bash RENAME zero-ckpt
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/zero DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
if(TARGET zero_fortran)
    # The source lies beside the compiled module: another compiler, or -fdefault-integer-8, needs it.
    install(DIRECTORY ${ZERO_FORTRAN_MODULES}/ DESTINATION ${ZERO_FORTRAN_FOLDER} FILES_MATCHING PATTERN "*.mod")
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/fortran/ DESTINATION ${ZERO_FORTRAN_FOLDER}
        FILES_MATCHING PATTERN "*.f90" PATTERN "*.h")
endif()
if(ZERO_PYTHON)
    set(ZERO_PYTHON_FOLDER lib/python CACHE STRING "Where the Python package goes, below the prefix")
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/python/zero_checkpoint DESTINATION ${ZERO_PYTHON_FOLDER}
        FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# What a linker that is not C++'s needs for the static library.
set(ZERO_CXX_RUNTIME ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER ZERO_CXX_RUNTIME EXCLUDE REGEX "^(gcc|gcc_s|c)$")
list(REMOVE_DUPLICATES ZERO_CXX_RUNTIME)

# The CMake package.
install(EXPORT zero_targets NAMESPACE zero:: DESTINATION ${zero_package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/zero-config.cmake.in ${PROJECT_BINARY_DIR}/zero-config.cmake
    INSTALL_DESTINATION ${zero_package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zero-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/zero-config.cmake ${PROJECT_BINARY_DIR}/zero-config-version.cmake
    ${PROJECT_SOURCE_DIR}/cmake/zero_hdf5.cmake ${PROJECT_SOURCE_DIR}/cmake/zero_hwloc.cmake
    ${PROJECT_SOURCE_DIR}/cmake/FindNCCL.cmake DESTINATION ${zero_package_folder})

# The pkg-config files. Paths are relative to the file itself, so that an installed tree may move.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE zero_pc_libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE zero_pc_includedir)
cmake_path(SET zero_pc_up NORMALIZE "${zero_pc_libdir}/pkgconfig")
string(REGEX REPLACE "[^/]+" ".." zero_pc_up "${zero_pc_up}")

function(zero_pc_flags variable prefix)
    set(flags "")
    foreach(item ${ARGN})
        if(item MATCHES "^-")
            string(APPEND flags " ${item}")
        else()
            string(APPEND flags " ${prefix}${item}")
        endif()
    endforeach()
    string(STRIP "${flags}" flags)
    set(${variable} "${flags}" PARENT_SCOPE)
endfunction()
zero_pc_flags(ZERO_PC_MPI_CFLAGS "-I" ${MPI_C_INCLUDE_DIRS})
zero_pc_flags(ZERO_PC_MPI_LIBS "" ${MPI_C_LIBRARIES})
zero_pc_flags(ZERO_PC_MPI_FORTRAN_CFLAGS "-I" ${MPI_Fortran_INCLUDE_DIRS})
zero_pc_flags(ZERO_PC_MPI_FORTRAN_LIBS "" ${MPI_Fortran_LIBRARIES})
zero_pc_flags(ZERO_PC_RUNTIME "-l" ${ZERO_CXX_RUNTIME})
set(ZERO_PC_HDF5_REQUIRES "")
set(ZERO_PC_HDF5_LIBS "")
if(ZERO_HDF5_SERIAL_FOUND)
    set(ZERO_PC_HDF5_REQUIRES hdf5-serial)
elseif(ZERO_HDF5)
    zero_pc_flags(ZERO_PC_HDF5_LIBS "" ${HDF5_C_LIBRARIES})
endif()
set(ZERO_PC_HWLOC_LIBS "")
if(ZERO_HAS_HWLOC)
    zero_pc_flags(ZERO_PC_HWLOC_LIBS "" ${ZERO_HWLOC_LIBRARY})
endif()
set(ZERO_PC_CUDA_LIBS "")
if(ZERO_CUDA)
    zero_pc_flags(ZERO_PC_CUDA_LIBS "-l" ${CUDA_cudart_static_LIBRARY} ${NCCL_LIBRARY} -ldl -lrt)
    string(REPLACE "-l/" "/" ZERO_PC_CUDA_LIBS "${ZERO_PC_CUDA_LIBS}")
endif()
foreach(name zero zero_fortran)
    if(name STREQUAL "zero" OR TARGET zero_fortran)
        configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
        install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
    endif()
endforeach()
