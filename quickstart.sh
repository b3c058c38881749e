#!/bin/bash
# From a fresh checkout to the main job: installs what is missing (Debian, root), builds, trains a text model in C over 4 ranks
# in stages 0 to 3, and recovers a conductivity field in Fortran. No arguments. Everything it writes is under build/quickstart.
set -euo pipefail
root=$(cd "$(dirname "$0")" && pwd)
cd "$root"
started=$SECONDS

step() { printf '\n=== %s  (%d s so far)\n' "$1" $((SECONDS - started)); }

step "packages"
tools/packages.sh build
packages_done=$SECONDS

step "build"
tools/build.sh release -DZERO_TESTS=OFF -DZERO_BENCHMARKS=OFF
build_done=$SECONDS

folder=$root/build/release
shim=$folder/yield_shim/libzero_yield_shim.so
export ZERO_BUILD_FOLDER=$folder
export ZERO_PRELOAD=$shim  # gives up the core after a fruitless poll of MPICH; see tests/support/yield_shim.c
export ZERO_OUTPUT=$root/build/quickstart
mkdir -p "$ZERO_OUTPUT"

step "a byte-level text model in C, 4 ranks, stages 0 to 3, saved on 4 ranks and restored on 2"
examples/c/run_text_model.sh
text_done=$SECONDS

step "heat conduction inversion in Fortran, stages 2 and 3, killed half way and continued"
examples/fortran90/run_inversion.sh
inversion_done=$SECONDS

printf '\n=== done. Seconds: packages %d, build %d, text model %d, inversion %d\n' $((packages_done - started)) \
    $((build_done - packages_done)) $((text_done - build_done)) $((inversion_done - text_done))
echo "Results are in build/quickstart. Next: README.md, examples/, ./test.sh"
