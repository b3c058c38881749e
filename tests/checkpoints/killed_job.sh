#!/bin/bash
# B36 (a): jobs of which one rank is killed at some call to the file system while it saves step 2. Another job, on another
# number of ranks, then finds step 1 or step 2, whole; and the next save takes away what was left.
# usage: killed_job.sh sample|every PROGRAM MPIEXEC [FLAGS ...] -n
#   sample: some calls of two ranks;  every: every call of each rank of two and of three.
set -u
which=$1
program=$2
shift 2
launch() { local ranks=$1; shift; timeout -k 5 60 "${start[@]}" "$ranks" "$program" "$@"; }
start=("$@")

sweeps=("2 kill 1 2" "2 kill 0 6" "2 behind 1 3" "2 behind 0 9")
if [ "$which" = every ]; then
    sweeps=({2,3}" "{kill,behind}" "{0,1}" 1" "3 "{kill,behind}" 2 1")
fi
old=0 new=0
for sweep in "${sweeps[@]}"; do
    read -r ranks how rank stride <<< "$sweep"
    rm -rf good
    launch "$ranks" good good || { echo "the good save failed"; exit 1; }
    for ((call = 0; ; call += stride)); do
        rm -rf trial && cp -r good trial
        launch "$ranks" "$how" trial "$rank" "$call" > killed.log 2>&1
        killed=$?
        step=$(launch $((5 - ranks)) look trial) || { echo "rank $rank, call $call: no whole state"; ls -laR trial; exit 1; }
        echo "$ranks ranks, $how, rank $rank, call $call: exit $killed, step $step"
        if [ "$killed" = 0 ]; then
            [ "$step" = 2 ] || { echo "a save that was not killed is not there"; exit 1; }
            break
        fi
        [ "$step" = 1 ] && old=$((old + 1)) || new=$((new + 1))
        if [ "$step" = 1 ]; then
            launch "$ranks" kill trial -1 -1 || { echo "rank $rank, call $call: the next save failed"; exit 1; }
            # An owner's file that is still empty may be another job's that just begins: it stays for an hour.
            left=$(find trial -maxdepth 1 -name '.*' ! -name . ! -empty)
            [ -z "$left" ] || { echo "rank $rank, call $call: left behind: $left"; exit 1; }
        fi
    done
done
echo "$old times the old state, $new times the new one"
[ "$old" -gt 5 ] && [ "$new" -gt 0 ]
