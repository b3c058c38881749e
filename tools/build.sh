#!/bin/bash
# Configures and builds one preset: tools/build.sh <preset> [-D... for CMake] [-- <targets>]
# ZERO_BUILD_FOLDER names another folder than build/<preset>; ZERO_JOBS the number of compile jobs (default: all cores).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
preset=$1
shift
folder=${ZERO_BUILD_FOLDER:-$root/build/$preset}
definitions=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    definitions+=("$1")
    shift
done
[ $# -eq 0 ] || shift
targets=(${@:+--target "$@"})

if command -v ccache >/dev/null; then
    export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}  # what it needs for precompiled headers
    definitions+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cd "$root"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake --preset "$preset" -B "$folder" "${definitions[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
cmake --build "$folder" -j "${ZERO_JOBS:-$(nproc)}" "${targets[@]}"
