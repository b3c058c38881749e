#!/bin/bash
# Circumstances in which memory cannot be shared, or not enough of it can be had: the library says so, or goes another way, and
# nobody is killed. What needs rights that this user lacks is skipped, visibly.
# usage: around.sh PROGRAM MPIEXEC [FLAGS ...] -n
set -u
program=$1
shift
start=("$@")
failed=0
export UCX_LOG_LEVEL=error

# title, pattern that the output must show, command ...
expect() {
    local title=$1 pattern=$2 result
    shift 2
    timeout -k 5 60 "$@" > out.log 2>&1
    result=$?
    if [ $result = 0 ] && grep -qE "$pattern" out.log; then echo "ok: $title"; return; fi
    echo "FAILED: $title (exit status $result)"
    cat out.log
    failed=$((failed + 1))
}

expect "children end or become other programs" "2 ranks share" "${start[@]}" 2 "$program" fork 8 2
ZERO_LIBZERO_OVERLAP_THREAD=on expect "children, with a helper thread" "2 ranks share" "${start[@]}" 2 "$program" fork 8 2
ZERO_LIBZERO_NODE_SIZE=2 expect "children, on two nodes" "2 ranks share" "${start[@]}" 4 "$program" fork 8 2
export UCX_TLS=^cma  # UCX does not find out by itself
expect "no process may read another's memory" "2 ranks share" "${start[@]}" 2 "$program" no_cma 8 2
ZERO_LIBZERO_NODE_SHARED=false expect "nor over MPI" "1 ranks share" "${start[@]}" 2 "$program" no_cma 8 1
unset UCX_TLS

if unshare -m mount -t tmpfs -o size=64m none /dev/shm 2> /dev/null; then
    expect "a /dev/shm of 64 MiB, as containers have" "2 ranks share" \
        unshare -m bash -c 'mount -t tmpfs -o size=64m none /dev/shm && "$@"' _ "${start[@]}" 2 "$program" train 200 2
else
    echo "skipped: this user may not mount a small /dev/shm"
fi
if unshare -p -f --mount-proc true 2> /dev/null; then  # what the ranks of different containers see of each other
    export ZERO_LOG_LEVEL=info UCX_TLS=tcp,self
    expect "every rank in a container of its own" "plain MPI: .*(container|proc)" "${start[@]}" 2 unshare -p -f --mount-proc "$program" train 8 1
    unset ZERO_LOG_LEVEL UCX_TLS
else
    echo "skipped: this user may not make namespaces"
fi
for groups in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    file=$([ $groups = /sys/fs/cgroup ] && echo memory.max || echo memory.limit_in_bytes)
    group=$groups/zero_test_$$
    if mkdir $group 2> /dev/null && echo 1000M > $group/$file 2> /dev/null; then
        inside='echo $$ > '$group'/cgroup.procs; shift; "$@"'
        # Each rank alone would find room for its part.
        expect "a limit on memory that the ranks of a node reach together" "ZERO_ERR_MEMORY" bash -c "$inside" _ _ "${start[@]}" 2 "$program" short 700 0
        expect "a limit that is far enough away" "2 ranks share" bash -c "$inside" _ _ "${start[@]}" 2 "$program" train 100 2
        limited=yes
    fi
    for ((turn = 0; turn < 20; ++turn)); do rmdir $group 2> /dev/null; [ -d $group ] || break; sleep 0.1; done
    [ -n "${limited:-}" ] && break
done
[ -n "${limited:-}" ] || echo "skipped: this user may not limit memory"
[ "$failed" = 0 ]
