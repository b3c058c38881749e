#!/bin/bash
# Every call of CUDA or of NCCL that one rank makes in a life of a context fails in turn. Lives that fail keep communicators of MPI, of
# which MPICH has 2,048 in a process: so each stretch of lives is a job of its own.
# usage: device_faults.sh KIND(cuda2|cuda3|nccl2|nccl3: whose calls, and the stage) PROGRAM MPIEXEC [FLAGS ...] -n RANKS
set -eu
export ZERO_TEST_FAULT_KIND=$1 ZERO_TEST_FAULT_LIVES=60 ZERO_TEST_FAULT_FIRST=1
program=$2
shift 2
lives=0 errors=0 last=more
while [ "$last" = more ]; do
    rm -f stretch
    if ! "$@" "$program" "[faults]" > out.log 2>&1; then
        cat out.log
        echo "FAILED: calls from $ZERO_TEST_FAULT_FIRST on"
        exit 1
    fi
    read -r tried failed last < stretch
    lives=$((lives + tried)) errors=$((errors + failed))
    ZERO_TEST_FAULT_FIRST=$((ZERO_TEST_FAULT_FIRST + tried))
done
echo "$lives lives, $errors with an error"
[ "$errors" -gt 0 ]
