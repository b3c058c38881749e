# libzero_fortran, static and shared: the module zero_optimizer and the Fortran 77 entry points over the C library.
file(GLOB zero_fortran_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bindings/fortran/*.f90)
if(ZERO_FORTRAN AND zero_fortran_sources)
    set(ZERO_FORTRAN_MODULES ${PROJECT_BINARY_DIR}/fortran_modules)
    set(ZERO_FORTRAN_FOLDER ${CMAKE_INSTALL_INCLUDEDIR}/zero/fortran)
    file(MAKE_DIRECTORY ${ZERO_FORTRAN_MODULES})

    add_library(zero_fortran_objects OBJECT ${zero_fortran_sources})
    set_target_properties(zero_fortran_objects PROPERTIES
        POSITION_INDEPENDENT_CODE ON
        Fortran_MODULE_DIRECTORY ${ZERO_FORTRAN_MODULES})
    target_compile_options(zero_fortran_objects PRIVATE -Wall)
    target_link_libraries(zero_fortran_objects PRIVATE MPI::MPI_Fortran)

    add_library(zero_fortran SHARED $<TARGET_OBJECTS:zero_fortran_objects>)
    add_library(zero_fortran_static STATIC $<TARGET_OBJECTS:zero_fortran_objects>)
    add_library(zero::fortran ALIAS zero_fortran)
    add_library(zero::fortran_static ALIAS zero_fortran_static)
    target_link_libraries(zero_fortran PUBLIC zero)
    target_link_libraries(zero_fortran_static PUBLIC zero_static)
    set_target_properties(zero_fortran PROPERTIES
        INSTALL_RPATH "$ORIGIN"
        VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR}
        EXPORT_NAME fortran
        LINKER_LANGUAGE Fortran)
    set_target_properties(zero_fortran_static PROPERTIES
        OUTPUT_NAME zero_fortran
        EXPORT_NAME fortran_static
        LINKER_LANGUAGE Fortran)
    set(zero_fortran_map ${PROJECT_SOURCE_DIR}/cmake/zero_fortran.map)
    target_link_options(zero_fortran PRIVATE -Wl,--version-script=${zero_fortran_map})
    set_property(TARGET zero_fortran APPEND PROPERTY LINK_DEPENDS ${zero_fortran_map})
    foreach(library zero_fortran zero_fortran_static)
        add_dependencies(${library} zero_fortran_objects)
        target_link_libraries(${library} PUBLIC $<BUILD_INTERFACE:MPI::MPI_Fortran> $<INSTALL_INTERFACE:zero::mpi_fortran>)
        target_include_directories(${library} PUBLIC
            $<BUILD_INTERFACE:${ZERO_FORTRAN_MODULES}> $<INSTALL_INTERFACE:${ZERO_FORTRAN_FOLDER}>)
    endforeach()
endif()
