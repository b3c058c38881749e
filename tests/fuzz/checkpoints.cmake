# The manifest and the parts of a checkpoint under random bytes: the corpus once with any compiler (fast); with clang,
# libFuzzer for 20 s each (long). corpus_manifest and corpus_part come from a small real checkpoint.
foreach(target manifest part)
    zero_test(NAME ${target}_replay SOURCES ${target}_fuzzer.cpp replay_main.cpp NO_MAIN
        ARGS ${CMAKE_CURRENT_SOURCE_DIR}/corpus_${target})
    if(NOT ZERO_FUZZER_COMPILER OR ZERO_SANITIZE)
        continue()
    endif()
    set(checkpoints ${PROJECT_SOURCE_DIR}/checkpoints)
    set(fuzzed_sources ${CMAKE_CURRENT_SOURCE_DIR}/${target}_fuzzer.cpp ${checkpoints}/manifest_read.cpp
        ${checkpoints}/manifest_check.cpp ${checkpoints}/manifest_write.cpp ${checkpoints}/crc32c.cpp
        ${checkpoints}/files.cpp ${checkpoints}/frame.cpp ${checkpoints}/reader.cpp ${PROJECT_SOURCE_DIR}/src/core/error.cpp)
    file(GLOB fuzzed_headers CONFIGURE_DEPENDS ${checkpoints}/*.hpp)
    set(fuzzer ${CMAKE_CURRENT_BINARY_DIR}/${target}_fuzzer)
    set(fuzzed_includes "$<TARGET_PROPERTY:zero_private_headers,INTERFACE_INCLUDE_DIRECTORIES>")
    # Element conversion comes from the library as it is built; everything that reads foreign bytes is instrumented.
    add_custom_command(OUTPUT ${fuzzer}
        COMMAND ${ZERO_FUZZER_COMPILER} -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined
            -fno-sanitize-recover=undefined -DFMT_HEADER_ONLY -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}
            "$<$<BOOL:${fuzzed_includes}>:-isystem$<JOIN:${fuzzed_includes},;-isystem>>"
            ${fuzzed_sources} $<TARGET_FILE:zero_static> -o ${fuzzer}
        DEPENDS ${fuzzed_sources} ${fuzzed_headers} zero_static VERBATIM COMMAND_EXPAND_LISTS)
    add_custom_target(build_${target}_fuzzer DEPENDS ${fuzzer})
    add_test(NAME ${target}_fuzzer_build
        COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target build_${target}_fuzzer)
    set_tests_properties(${target}_fuzzer_build PROPERTIES LABELS long TIMEOUT 600 FIXTURES_SETUP ${target}_fuzzer)
    add_test(NAME ${target}_fuzzer COMMAND ${ZERO_TEST_SUPPORT}/in_private_folder.sh
        ${fuzzer} -max_total_time=20 -timeout=5 -rss_limit_mb=1024 -malloc_limit_mb=256 -max_len=16384
        . ${CMAKE_CURRENT_SOURCE_DIR}/corpus_${target})
    set_tests_properties(${target}_fuzzer PROPERTIES LABELS long TIMEOUT 120 FIXTURES_REQUIRED ${target}_fuzzer)
endforeach()
