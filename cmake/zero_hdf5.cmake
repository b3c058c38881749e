# Makes the target zero::hdf5: the C interface of HDF5, the serial variant where several are installed (one file per
# writer needs no parallel HDF5). Sets ZERO_HDF5_VERSION. Also installed, for those who link the static library.
if(NOT TARGET zero::hdf5)
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(ZERO_HDF5_SERIAL QUIET IMPORTED_TARGET hdf5-serial)
    endif()
    add_library(zero::hdf5 INTERFACE IMPORTED GLOBAL)
    if(ZERO_HDF5_SERIAL_FOUND)
        set_property(TARGET zero::hdf5 PROPERTY INTERFACE_LINK_LIBRARIES PkgConfig::ZERO_HDF5_SERIAL)
        set(ZERO_HDF5_VERSION ${ZERO_HDF5_SERIAL_VERSION})
    else()
        set(HDF5_PREFER_PARALLEL OFF)
        find_package(HDF5 QUIET COMPONENTS C)
        if(NOT HDF5_FOUND)
            message(FATAL_ERROR "ZERO_HDF5=ON, but HDF5 was not found. Install it (Debian: libhdf5-dev) or configure "
                                "with -DZERO_HDF5=OFF (then zero_save and zero_load answer ZERO_ERR_UNSUPPORTED).")
        endif()
        set_target_properties(zero::hdf5 PROPERTIES
            INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${HDF5_C_INCLUDE_DIRS}"
            INTERFACE_INCLUDE_DIRECTORIES "${HDF5_C_INCLUDE_DIRS}"
            INTERFACE_COMPILE_DEFINITIONS "${HDF5_C_DEFINITIONS}"
            INTERFACE_LINK_LIBRARIES "${HDF5_C_LIBRARIES}")
        set(ZERO_HDF5_VERSION ${HDF5_VERSION})
    endif()
endif()
