#!/bin/bash
# Ranks are killed while others wait for them in a call of the library: these return an error within ten seconds, on one node and
# on several (libzero.node_size), and end by themselves.
# usage: killed_rank.sh sample|every PROGRAM MPIEXEC [FLAGS ...] -n
set -u
which=$1
program=$2
shift 2
start=("$@")
failed=0 done=0
# A launcher that sees a rank die ends all others, so each has a shell that outlives it. UCX ends a process whose read of another
# process's memory fails, so it goes without such reads.
export UCX_LOG_LEVEL=fatal UCX_TLS=^cma
outlive='"$@"; sleep 60'

# ranks, ranks of a node (0: all), helper thread, stage, victims, and when (killed_rank.cpp)
job() {
    local ranks=$1 survivors good launcher
    rm -f died over.*
    survivors=$((ranks - $(tr ',' '\n' <<< "$5" | wc -l)))
    ZERO_LIBZERO_NODE_SIZE=$2 ZERO_LIBZERO_OVERLAP_THREAD=$3 timeout -k 5 60 "${start[@]}" "$ranks" \
        bash -c "$outlive" _ "$program" "$4" "$5" "$6" > out.log 2>&1 &
    launcher=$!
    for ((turn = 0; turn < 500; ++turn)); do
        [ "$(find . -maxdepth 1 -name 'over.*' | wc -l)" = "$survivors" ] && break
        kill -0 $launcher 2> /dev/null || break
        sleep 0.1
    done
    kill $launcher 2> /dev/null
    wait $launcher 2> /dev/null
    good=$(grep -cE '^rank [0-9]+ [a-z_]+ ZERO_ERR_(MPI|STATE) [0-9]\.' out.log)
    done=$((done + 1))
    [ "$good" = "$survivors" ] && return
    echo "--- $1 ranks, $2 per node, helper $3, stage $4, killed $5, $6: $good of $survivors got an error in time"
    cat out.log
    failed=$((failed + 1))
}

if [ "$which" = sample ]; then
    job 3 0 off 1 0 m8     # the root of a broadcast
    job 4 2 on 3 3 2       # before a gather
    job 4 2 off 3 2 m14    # in the middle of a message, of which MPI itself tells
    job 4 2 off 1 2 m25    # between the nodes
    job 4 2 off 2 1 7      # between the last hand-over and the step
else
    for layout in "2 0" "3 0" "4 2" "6 2" "6 3"; do
        read -r ranks node <<< "$layout"
        for stage in 0 1 2 3; do
            for ((call = 1; call < 14; call += 3)); do job "$ranks" "$node" off $stage $((ranks - 1)) $call; done
            for ((message = 8; message < 120; message = message * 4 / 3)); do job "$ranks" "$node" off $stage $((message % ranks)) m$message; done
            for turn in 1 2 3 4; do job "$ranks" "$node" on $stage $((turn % ranks)) t$((RANDOM % 20000 + 1)); done
        done
    done
    job 4 0 off 1 2,3 9
    job 6 3 on 3 0,4 9
fi
echo "$done jobs with killed ranks, $failed of them failed"
[ "$failed" = 0 ]
