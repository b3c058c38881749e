# Chooses the MPI before FindMPI looks. On Debian `mpicc` may point to either implementation, so compilers are named with
# their suffix: MPICH unless MPI_CXX_COMPILER or MPI_C_COMPILER says otherwise; the other languages and mpiexec follow it.
set(zero_mpi_named ${MPI_CXX_COMPILER})
if(NOT zero_mpi_named)
    set(zero_mpi_named ${MPI_C_COMPILER})
endif()
if(NOT zero_mpi_named)
    find_program(ZERO_MPICXX_MPICH mpicxx.mpich)
    mark_as_advanced(ZERO_MPICXX_MPICH)
    set(zero_mpi_named ${ZERO_MPICXX_MPICH})
endif()

if(zero_mpi_named MATCHES "\\.(mpich|openmpi)$")
    set(zero_mpi_suffix ${CMAKE_MATCH_1})
    foreach(pair CXX:mpicxx C:mpicc Fortran:mpifort)
        string(REPLACE ":" ";" pair ${pair})
        list(GET pair 0 language)
        list(GET pair 1 wrapper)
        if(NOT MPI_${language}_COMPILER)
            find_program(MPI_${language}_COMPILER ${wrapper}.${zero_mpi_suffix})
        endif()
    endforeach()
    if(NOT MPIEXEC_EXECUTABLE)
        find_program(MPIEXEC_EXECUTABLE mpiexec.${zero_mpi_suffix})
    endif()
endif()

set(zero_mpi_languages C)
if(ZERO_FORTRAN)
    list(APPEND zero_mpi_languages Fortran)
endif()
find_package(MPI COMPONENTS ${zero_mpi_languages})
if(NOT MPI_FOUND)
    message(FATAL_ERROR "No MPI was found. Install one (Debian: mpich, or libopenmpi-dev and openmpi-bin) or name its "
                        "compiler with -DMPI_CXX_COMPILER=...")
endif()

# "mpich", "openmpi" or "other": decides how tests start ranks.
set(ZERO_MPI_KIND other)
if(MPI_C_LIBRARY_VERSION_STRING MATCHES "MPICH" OR MPIEXEC_EXECUTABLE MATCHES "mpich" OR "${MPI_C_LIBRARIES}" MATCHES "mpich")
    set(ZERO_MPI_KIND mpich)
elseif("${MPIEXEC_EXECUTABLE};${MPI_C_LIBRARIES};${MPI_C_COMPILER}" MATCHES "open-?mpi")
    set(ZERO_MPI_KIND openmpi)
endif()

# Inside, MPI is always used through its C interface. Users see the target zero::mpi (cmake/zero-config.cmake.in binds it
# to whatever language their project has).
add_library(zero::mpi INTERFACE IMPORTED GLOBAL)
set_property(TARGET zero::mpi PROPERTY INTERFACE_LINK_LIBRARIES MPI::MPI_C)
