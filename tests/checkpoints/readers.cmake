# Programs of others, and ours, on checkpoints that zero_save wrote on three ranks. The test checkpoints_saved_model writes
# them; a reader that is not installed is skipped, and CTest says so.
add_executable(checkpoints_saved_model saved_model.cpp)
target_link_libraries(checkpoints_saved_model PRIVATE zero)
target_compile_options(checkpoints_saved_model PRIVATE ${ZERO_WARNINGS})
set(saved ${CMAKE_CURRENT_BINARY_DIR}/saved)
set(mpiexec_words ${MPIEXEC_EXECUTABLE} ${ZERO_MPIEXEC_FLAGS} ${MPIEXEC_NUMPROC_FLAG})
zero_test_run(NAME checkpoints_saved_model PROCESSORS 3
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/saved_model.sh ${saved} ${mpiexec_words} 3 $<TARGET_FILE:checkpoints_saved_model>)
set_tests_properties(checkpoints_saved_model PROPERTIES FIXTURES_SETUP saved_model)

# zero_reader_test(<name> <command> ...): a test that reads what was saved.
function(zero_reader_test name)
    zero_test_run(NAME ${name} TIMEOUT 180 COMMAND ${ARGN})
    set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED saved_model SKIP_RETURN_CODE 77)
endfunction()

set(with ${ZERO_TEST_SUPPORT}/python_with.sh)
set(saved_index ${saved}/checkpoints/again/index.h5 ${saved}/expected)
zero_reader_test(checkpoints_reader_h5py ${with} "h5py numpy" python3-h5py
    ${CMAKE_CURRENT_SOURCE_DIR}/read_index.py ${saved_index} 2)
zero_reader_test(checkpoints_reader_netcdf ${with} "h5netcdf xarray numpy" "python3-h5netcdf python3-xarray"
    ${CMAKE_CURRENT_SOURCE_DIR}/read_netcdf.py ${saved_index})
foreach(tool h5dump h5ls)
    zero_reader_test(checkpoints_reader_${tool} ${CMAKE_CURRENT_SOURCE_DIR}/read_by_tools.sh ${tool} ${saved_index})
endforeach()

# HDF5 for Fortran, of the same installation as that for C.
find_path(ZERO_HDF5_FORTRAN_MODULES hdf5.mod PATH_SUFFIXES hdf5/serial PATHS /usr/include /usr/local/include)
find_library(ZERO_HDF5_FORTRAN_LIBRARY NAMES hdf5_serial_fortran hdf5_fortran)
if(ZERO_FORTRAN AND CMAKE_Fortran_COMPILER_ID STREQUAL "GNU" AND ZERO_HDF5_FORTRAN_MODULES AND ZERO_HDF5_FORTRAN_LIBRARY)
    add_executable(checkpoints_read_index read_index.f90)
    target_include_directories(checkpoints_read_index PRIVATE ${ZERO_HDF5_FORTRAN_MODULES})
    target_link_libraries(checkpoints_read_index PRIVATE ${ZERO_HDF5_FORTRAN_LIBRARY} zero::hdf5)
    zero_reader_test(checkpoints_reader_fortran $<TARGET_FILE:checkpoints_read_index> ${saved_index})
else()
    zero_reader_test(checkpoints_reader_fortran sh -c
        "echo 'SKIPPED: HDF5 has no Fortran module here that this Fortran compiler could read (Debian: libhdf5-dev)'\; exit 77")
endif()
