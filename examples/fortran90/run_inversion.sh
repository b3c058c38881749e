#!/bin/bash
# Recovers a conductivity field on 4 ranks in stage 2 and in stage 3 of ZeRO, checks that the misfit falls tenfold or
# more and that both stages end with the same bits; then kills a run half way with SIGKILL, goes on from its newest
# checkpoint, and checks that it ends with the same bits again. Exit status 0: all of it holds.
#
#   run_inversion.sh [BUILD FOLDER]
# Environment, all optional:
#   ZERO_BUILD_FOLDER  build folder of libzero, where no argument names it (default: build/release of the checkout)
#   ZERO_PRELOAD       library to preload into the ranks (default: the build folder's yield shim; empty: none)
#   ZERO_OUTPUT        folder for results (default: inversion_output in the present folder)
#   MPIEXEC            how to start ranks (default: as the build folder's CMake found it, else mpiexec)
#   INVERSION_SIZE     cells along each side (512); INVERSION_STEPS updates (60), a multiple of 4
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${1:-${ZERO_BUILD_FOLDER:-$here/../../build/release}}
output=${ZERO_OUTPUT:-$PWD/inversion_output}/inversion
size=${INVERSION_SIZE:-512}
steps=${INVERSION_STEPS:-60}
started=

fail() { printf 'inversion: FAILED: %s\n' "$1" >&2; exit 1; }
# shellcheck source=examples/ranks.sh
. "$here/../ranks.sh"

# start LOG ARGUMENTS...: 4 ranks in the background; mpiexec's process id is in $started, everything printed in the log.
start() {
    local log=$1
    shift
    : > "$log"
    # MPIEXEC may hold options of its own, so it is split at blanks
    # shellcheck disable=SC2086
    LD_PRELOAD=$preload $MPIEXEC "${mpi_flags[@]}" -n 4 "$program" --size "$size" --steps "$steps" "$@" \
        > "$log" 2>&1 < /dev/null &
    started=$!
}

# descendants ID: every process below this one, from /proc, as a plain Debian has no pgrep.
descendants() {
    { cat /proc/[0-9]*/status 2> /dev/null || true; } | awk -v top="$1" '
        /^Pid:/ { id = $2 }
        /^PPid:/ { parent[id] = $2 }
        END {
            below[top] = 1
            do {
                found = 0
                for (id in parent) if (parent[id] in below && !(id in below)) { below[id] = 1; found = 1; print id }
            } while (found)
        }'
}

# SIGKILL for mpiexec and every rank, as when the machine goes down.
kill_started() {
    [ -n "$started" ] || return 0
    # shellcheck disable=SC2046
    kill -KILL "$started" $(descendants "$started") 2> /dev/null || true
    wait "$started" 2> /dev/null || true
    started=
}

running() { kill -0 "$started" 2> /dev/null; }

# Progress on the screen (every tenth update) until the ranks have ended. tail ends with them.
finish() {
    local log=$1 status=0
    tail -n +1 -f --pid="$started" -s 0.2 "$log" | sed -u -n -E '/^update/{/^update +([0-9]*0|1) of/p;b};p'
    wait "$started" || status=$?
    started=
    [ "$status" -eq 0 ] || fail "inversion ended with status $status, see $log"
}

bits_of() { sed -n 's/^final misfit .*bits //p' "$1"; }

check_tenfold() {
    local factor
    factor=$(sed -n 's/^the misfit fell by a factor of \([0-9.]*\) .*/\1/p' "$1")
    awk -v f="$factor" 'BEGIN { exit !(f >= 10) }' || fail "the misfit fell by a factor of '$factor', not by 10, see $1"
}

check_same() {
    local expected found
    expected=$(bits_of "$1")
    found=$(bits_of "$2")
    [ -n "$expected" ] || fail "no final misfit in $1"
    [ "$expected" = "$found" ] || fail "the final misfits differ: $expected in $1, $found in $2"
}

# Waits until the checkpoint of half the updates is there. Checkpoints appear complete, by a rename.
wait_for_half() {
    local half waited=0
    half=$(printf '%s/step-%012d' "$1" $((steps / 2)))
    until [ -d "$half" ]; do
        running || fail "the run to be killed ended by itself before it had saved $half, see $2"
        [ "$waited" -lt 60000 ] || fail "no checkpoint $half after 600 s"
        sleep 0.01
        waited=$((waited + 1))
    done
}

trap kill_started EXIT
find_program fortran90 inversion
find_mpiexec
[ $((steps % 4)) -eq 0 ] || fail "INVERSION_STEPS must be a multiple of 4, not $steps"
rm -rf "$output"
mkdir -p "$output"

for stage in 2 3; do
    say "stage $stage, 4 ranks: a plate of $size x $size cells, $steps updates"
    start "$output/log.$stage" --stage "$stage" --picture "$output/stage$stage.pgm"
    finish "$output/log.$stage"
    check_tenfold "$output/log.$stage"
done
check_same "$output/log.2" "$output/log.3"
cmp "$output/stage2.pgm" "$output/stage3.pgm" || fail "the pictures of stage 2 and stage 3 differ"
echo "Stage 2 and stage 3 end with the same misfit bit for bit."

say "stage 3, killed (SIGKILL) half way"
start "$output/log.killed" --stage 3 --save-every $((steps / 4)) --directory "$output/checkpoints" \
    --picture "$output/killed.pgm"
wait_for_half "$output/checkpoints" "$output/log.killed"
kill_started
[ -z "$(bits_of "$output/log.killed")" ] || fail "the run ended before it could be killed; take more INVERSION_STEPS"
echo "killed after update $(sed -n 's/^update *\([0-9]*\) of.*/\1/p' "$output/log.killed" | tail -n 1)"

say "stage 3, going on from the newest checkpoint"
start "$output/log.resumed" --stage 3 --resume --directory "$output/checkpoints" --picture "$output/resumed.pgm"
finish "$output/log.resumed"
from=$(sed -n 's/^goes on from the checkpoint of update //p' "$output/log.resumed")
[ "${from:-0}" -ge $((steps / 2)) ] || fail "the run went on from update '$from', not from $((steps / 2)) or later"
check_tenfold "$output/log.resumed"
check_same "$output/log.3" "$output/log.resumed"
cmp "$output/stage3.pgm" "$output/resumed.pgm" || fail "the picture of the resumed run differs"
echo "The run that was killed and went on ends with the same misfit bit for bit."
