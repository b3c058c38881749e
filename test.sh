#!/bin/bash
# Builds the release preset and runs the tests: ./test.sh [fast|all|long] [-D... for CMake]
#   all (default): everything but the long sweeps;  fast: only the quick ones, about a minute;  long: only the sweeps.
# Ends with CTest's own closing lines; the exit status is CTest's.
set -euo pipefail
root=$(cd "$(dirname "$0")" && pwd)
which=all
case "${1:-}" in
    fast | all | long)
        which=$1
        shift
        ;;
    "" | -D*) ;;
    *)
        echo "test.sh: unknown argument '$1'; known are: fast, all, long, -D..." >&2
        exit 2
        ;;
esac
case $which in
    fast) labels=(-L '^fast$') ;;
    all) labels=(-LE '^long$') ;;
    long) labels=(-L '^long$') ;;
esac

"$root/tools/packages.sh" build tests
folder=${ZERO_BUILD_FOLDER:-$root/build/release}
"$root/tools/build.sh" release -DZERO_TESTS=ON "$@"
ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$(nproc)" "${labels[@]}"
