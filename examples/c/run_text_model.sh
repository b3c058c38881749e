#!/bin/bash
# Trains text_model on 4 ranks in each stage of ZeRO, checks that all stages give the same losses bit for bit and that
# the memory is what the formula says, saves on 4 ranks in stage 3, restores on 2 ranks in stage 1, checks that every
# parameter and moment has the same bits, trains on, and prints sampled text. Exit status 0: all of it holds.
#
#   run_text_model.sh [BUILD FOLDER]
# Environment, all optional:
#   ZERO_BUILD_FOLDER  build folder of libzero, where no argument names it (default: build/release of the checkout)
#   ZERO_PRELOAD       library to preload into the ranks (default: the build folder's yield shim; empty: none)
#   ZERO_OUTPUT        folder for results (default: text_model_output in the present folder)
#   MPIEXEC            how to start ranks (default: as the build folder's CMake found it, else mpiexec)
#   TEXT_MODEL_TEXT    text to learn
#   TEXT_MODEL_STEPS   updates per stage (150); TEXT_MODEL_LIMIT: the loss to reach in them (2.6)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${1:-${ZERO_BUILD_FOLDER:-$here/../../build/release}}
output=${ZERO_OUTPUT:-$PWD/text_model_output}/text_model
steps=${TEXT_MODEL_STEPS:-150}
limit=${TEXT_MODEL_LIMIT:-2.6}
text=${TEXT_MODEL_TEXT:-/usr/share/common-licenses/GPL-3}

fail() { printf 'text model: %s\n' "$1" >&2; exit 1; }
trap 'status=$?; if [ $status -ne 0 ]; then echo "text model: FAILED (status $status)" >&2; fi' EXIT
# shellcheck source=examples/ranks.sh
. "$here/../ranks.sh"

# run RANKS LOG ARGUMENTS...: progress on the screen, everything in the log; the memory table waits for the end.
run() {
    local ranks=$1 log=$2 status=0
    shift 2
    # MPIEXEC may hold options of its own, so it is split at blanks
    # shellcheck disable=SC2086
    LD_PRELOAD=$preload timeout 900 $MPIEXEC "${mpi_flags[@]}" -n "$ranks" "$program" --text "$text" "$@" 2>&1 |
        tee "$log" | sed -u '/^bytes per rank/,/agree$\|DIFFER$/d' || status=$?
    case $status in
        0) ;;
        3) fail "the ledger differs from the formula, see $log" ;;
        124) fail "no end after 900 s, see $log" ;;
        *) fail "text_model on $ranks ranks ended with status $status, see $log" ;;
    esac
}

loss_of() { awk "$1"' { loss = $2 } END { print loss }' "$2"; }

check_losses() {
    local stage first last
    for stage in 1 2 3; do
        cmp -s "$output/losses.0" "$output/losses.$stage" ||
            fail "stage $stage and stage 0 differ: diff $output/losses.0 $output/losses.$stage"
    done
    [ "$(wc -l < "$output/losses.0")" -eq "$steps" ] || fail "not $steps losses in $output/losses.0"
    first=$(loss_of 'NR == 1' "$output/losses.0")
    last=$(loss_of '' "$output/losses.0")
    awk -v a="$first" 'BEGIN { exit !(a > 5.4 && a < 5.7) }' || fail "the first loss is $first, not near ln 256 = 5.55"
    awk -v a="$last" -v b="$limit" 'BEGIN { exit !(a < b) }' || fail "the last loss is $last, not below $limit"
    echo "The $steps losses of all four stages are the same bit for bit: from $first to $last."
}

print_table() {
    local stage
    grep '^stage ' "$output/log.0"
    for stage in 0 1 2 3; do
        grep -E "^$stage .*agree\$" "$output/log.$stage" || fail "no table line in $output/log.$stage"
    done
    echo "saved: what stage 0 holds over what this stage holds. The rank that holds most; staging buffers and"
    echo "gathered copies, in bytes at the end of the run, come on top."
}

find_program c text_model
find_mpiexec
[ -r "$text" ] || fail "cannot read the text $text; name another by TEXT_MODEL_TEXT"
rm -rf "$output"
mkdir -p "$output"

for stage in 0 1 2 3; do
    say "stage $stage, 4 ranks"
    more=()
    if [ "$stage" = 3 ]; then more=(--save "$output/checkpoints" --verify "$output/saved"); fi
    run 4 "$output/log.$stage" --stage "$stage" --steps "$steps" --losses "$output/losses.$stage" --ledger "${more[@]}"
done

say "the four stages"
check_losses
say "bytes per rank, as the library counts them (as the formula of ZeRO says)"
print_table
echo "(ranks of one node share memory: parameters of stages 1 and 2 exist once and count by shares; with libzero.node_shared"
echo " false, and between nodes, each rank has them whole: then stages 1 and 2 save 1.60 and 2.29)"

say "restored on 2 ranks in stage 1, and trained on"
run 2 "$output/log.restored" --stage 1 --steps $((2 * steps)) --load "$output/checkpoints" --verify "$output/restored" \
    --losses "$output/losses.restored" --sample 400
[ "$(wc -l < "$output/saved")" -gt 100 ] || fail "too few digests in $output/saved"
diff "$output/saved" "$output/restored" > "$output/difference" ||
    fail "what was restored differs from what was saved: $output/difference"
echo "All $(grep -c ' value ' "$output/saved") parameters and their moments were restored with the same bits."
first=$(awk 'NR == 1 { print $1 }' "$output/losses.restored")
[ "$first" = $((steps + 1)) ] || fail "training went on at step $first, not at $((steps + 1))"
before=$(loss_of '' "$output/losses.3")
after=$(loss_of '' "$output/losses.restored")
awk -v a="$after" -v b="$before" 'BEGIN { exit !(a < b + 0.1) }' || fail "the loss went from $before to $after"
echo "Loss $before when saved, $after after $((2 * steps)) more steps."
