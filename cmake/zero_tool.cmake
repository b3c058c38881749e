# The command zero-ckpt: looks at checkpoints and turns them into other files. It uses internals, so it links the static library.
file(GLOB zero_tool_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/checkpoints/tool/*.cpp)
if(ZERO_HDF5 AND zero_tool_sources)
    zero_header(CLI/CLI.hpp libcli11-dev)
    add_executable(zero_ckpt ${zero_tool_sources})
    set_target_properties(zero_ckpt PROPERTIES OUTPUT_NAME zero-ckpt)
    target_compile_options(zero_ckpt PRIVATE ${ZERO_WARNINGS})
    target_include_directories(zero_ckpt PRIVATE
        ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
    target_link_libraries(zero_ckpt PRIVATE zero_static zero_private_headers zero::hdf5)
endif()
