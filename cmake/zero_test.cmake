# zero_test(NAME <name> SOURCES <files> [RANKS 1 2 3 4] [FAST_RANKS 3] [LABELS fast|more|long] [TIMEOUT 90] [LIBS ...]
#           [ARGS ...] [ENVIRONMENT A=b ...] [NO_MAIN])
# Builds the executable <name> and registers one test per rank count, <name>.n<P>, or one serial test <name> without RANKS.
# .cpp sources get a Catch2 main (over MPI when RANKS is given) unless NO_MAIN. Each test runs in a folder of its own that
# is removed afterwards.
# Labels: fast is the loop of a developer, about a minute; more takes seconds each, or runs a fast program once more on other
# ranks or with other settings; long are the sweeps. FAST_RANKS: of a fast test, those of RANKS that are fast; the others are more.
find_package(Catch2 2 QUIET)
if(NOT Catch2_FOUND)
    message(FATAL_ERROR "ZERO_TESTS=ON, but Catch2 2 was not found. Install it (Debian: catch2) or configure with "
                        "-DZERO_TESTS=OFF.")
endif()
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_FOUND)
    message(FATAL_ERROR "ZERO_TESTS=ON, but Python 3 was not found. Install it (Debian: python3).")
endif()
set(ZERO_TEST_SUPPORT ${PROJECT_SOURCE_DIR}/tests/support)

add_library(zero_test_settings INTERFACE)
target_include_directories(zero_test_settings INTERFACE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests ${PROJECT_BINARY_DIR}/generated)
target_link_libraries(zero_test_settings INTERFACE zero_static zero_private_headers Catch2::Catch2)
if(ZERO_HDF5)
    target_link_libraries(zero_test_settings INTERFACE zero::hdf5)
endif()
target_compile_options(zero_test_settings INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX,C>:${ZERO_WARNINGS}>"
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)  # Catch2 compiles three times faster, the library is what counts

# Catch2 is most of what a test compiles: once for all of them.
add_library(zero_test_precompiled OBJECT ${ZERO_TEST_SUPPORT}/precompiled.cpp)
target_link_libraries(zero_test_precompiled PRIVATE zero_test_settings)
target_precompile_headers(zero_test_precompiled PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:<catch2/catch.hpp$<ANGLE-R>>")

add_library(zero_test_catch OBJECT ${ZERO_TEST_SUPPORT}/catch_runner.cpp)
target_link_libraries(zero_test_catch PRIVATE Catch2::Catch2)
target_include_directories(zero_test_catch PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_compile_options(zero_test_catch PRIVATE -O0 -g0 -fno-sanitize=all)
foreach(main serial_main mpi_main)
    add_library(zero_test_${main} OBJECT ${ZERO_TEST_SUPPORT}/${main}.cpp)
    target_link_libraries(zero_test_${main} PRIVATE zero_test_settings)
endforeach()

set(ZERO_TEST_ENVIRONMENT
    "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=1:suppressions=${ZERO_TEST_SUPPORT}/address.supp"
    "LSAN_OPTIONS=suppressions=${ZERO_TEST_SUPPORT}/leak.supp:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
    # A test lets a process die while its threads run: no leak.
    "TSAN_OPTIONS=suppressions=${ZERO_TEST_SUPPORT}/thread.supp:halt_on_error=1:report_thread_leaks=0")
if(ZERO_SANITIZE MATCHES "thread")
    # UCX hooks madvise, which a thread calls after the sanitizer has already taken leave of it.
    list(APPEND ZERO_TEST_ENVIRONMENT UCX_MEM_MMAP_HOOK_MODE=none)
endif()

function(zero_test)
    cmake_parse_arguments(PARSE_ARGV 0 test "NO_MAIN" "NAME;TIMEOUT"
        "SOURCES;RANKS;FAST_RANKS;LABELS;LIBS;ARGS;ENVIRONMENT")
    if(test_UNPARSED_ARGUMENTS OR NOT test_NAME OR NOT test_SOURCES)
        message(FATAL_ERROR "zero_test needs NAME and SOURCES and knows no ${test_UNPARSED_ARGUMENTS}.")
    endif()
    if(NOT test_TIMEOUT)
        set(test_TIMEOUT 90)
    endif()
    if(NOT test_LABELS)
        set(test_LABELS fast)
    endif()

    add_executable(${test_NAME} ${test_SOURCES})
    target_link_libraries(${test_NAME} PRIVATE ${test_LIBS} zero_test_settings)
    if(ZERO_SANITIZE AND test_LABELS STREQUAL "long")
        set_target_properties(${test_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)  # sweeps with sanitizers: on demand
    endif()
    if("${test_SOURCES}" MATCHES "\\.cpp(;|$)" AND NOT test_NO_MAIN)
        if(NOT "${test_SOURCES}" MATCHES "\\.c(;|$)")
            target_precompile_headers(${test_NAME} REUSE_FROM zero_test_precompiled)
        endif()
        target_link_libraries(${test_NAME} PRIVATE zero_test_catch)
        if(test_RANKS)
            target_link_libraries(${test_NAME} PRIVATE zero_test_mpi_main)
        else()
            target_link_libraries(${test_NAME} PRIVATE zero_test_serial_main)
        endif()
    endif()
    zero_test_run(NAME ${test_NAME} COMMAND $<TARGET_FILE:${test_NAME}> ${test_ARGS} RANKS ${test_RANKS}
        FAST_RANKS ${test_FAST_RANKS} LABELS ${test_LABELS} TIMEOUT ${test_TIMEOUT} ENVIRONMENT ${test_ENVIRONMENT})
endfunction()

# The registering half of zero_test, also for programs built elsewhere. PROCESSORS: cores to count for a command that starts
# ranks by itself.
function(zero_test_run)
    cmake_parse_arguments(PARSE_ARGV 0 run "" "NAME;TIMEOUT;PROCESSORS" "COMMAND;RANKS;FAST_RANKS;LABELS;ENVIRONMENT")
    if(run_UNPARSED_ARGUMENTS OR NOT run_NAME OR NOT run_COMMAND)
        message(FATAL_ERROR "zero_test_run needs NAME and COMMAND and knows no ${run_UNPARSED_ARGUMENTS}.")
    endif()
    foreach(setting "TIMEOUT=90" "LABELS=fast" "PROCESSORS=1")
        string(REPLACE "=" ";" setting ${setting})
        list(GET setting 0 variable)
        if(NOT run_${variable})
            list(GET setting 1 run_${variable})
        endif()
    endforeach()
    if(ZERO_SANITIZE)
        math(EXPR run_TIMEOUT "4 * ${run_TIMEOUT}")
    endif()
    if(NOT run_RANKS)
        zero_test_register(${run_NAME} ${run_PROCESSORS} ${run_LABELS} "${run_COMMAND}")
    endif()
    foreach(ranks ${run_RANKS})
        set(label ${run_LABELS})
        if(run_FAST_RANKS AND NOT ranks IN_LIST run_FAST_RANKS)
            set(label more)
        endif()
        zero_test_register(${run_NAME}.n${ranks} ${ranks} ${label}
            "${MPIEXEC_EXECUTABLE};${ZERO_MPIEXEC_FLAGS};${MPIEXEC_NUMPROC_FLAG};${ranks};${run_COMMAND}")
    endforeach()
endfunction()

macro(zero_test_register name processors label command)
    add_test(NAME ${name} COMMAND ${ZERO_TEST_SUPPORT}/in_private_folder.sh ${command})
    set_tests_properties(${name} PROPERTIES
        LABELS ${label} TIMEOUT ${run_TIMEOUT} PROCESSORS ${processors}
        ENVIRONMENT "${ZERO_TEST_ENVIRONMENT};ZERO_TEST_PRELOAD=$<TARGET_FILE:zero_yield_shim>;${run_ENVIRONMENT}")
endmacro()

set(ZERO_MPIEXEC_FLAGS "")
if(ZERO_MPI_KIND STREQUAL "openmpi")
    set(ZERO_MPIEXEC_FLAGS --oversubscribe --allow-run-as-root)
endif()
