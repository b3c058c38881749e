# What the scripts of the examples share: where a built program is, and how ranks are started. To be sourced, after `fail`
# (says a sentence and ends) is there and $build holds the build folder.

preload=${ZERO_PRELOAD-$build/yield_shim/libzero_yield_shim.so}
if [ -n "$preload" ] && [ ! -f "$preload" ]; then preload=; fi

say() { printf '\n--- %s\n' "$1"; }

# find_program FOLDER NAME: sets $program, from libzero's build (examples/FOLDER) or one of the example alone.
find_program() {
    local place
    for place in "$build/examples/$1/$2" "$build/$2"; do
        if [ -x "$place" ]; then program=$place; return; fi
    done
    fail "no program $2 in $build: build it first (cmake --build $build --target $2)"
}

# Sets $MPIEXEC, which may hold options of its own, and $mpi_flags.
find_mpiexec() {
    if [ -z "${MPIEXEC:-}" ] && [ -f "$build/CMakeCache.txt" ]; then
        MPIEXEC=$(sed -n 's/^MPIEXEC_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")
    fi
    MPIEXEC=${MPIEXEC:-mpiexec}
    command -v "${MPIEXEC%% *}" > /dev/null || fail "cannot start ranks: $MPIEXEC is not there; set MPIEXEC"
    case $("${MPIEXEC%% *}" --version 2>&1 || true) in
        *"Open MPI"* | *OpenRTE*) mpi_flags=(--oversubscribe --allow-run-as-root) ;;
        *) mpi_flags=() ;;
    esac
}
