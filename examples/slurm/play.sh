#!/bin/bash
# Plays job.slurm or job.pbs without Slurm or PBS: stand-ins of their commands are put into PATH, signals and the end of the
# time come, a node dies. Afterwards the result must have the bits of a run that nothing has stopped, and every step that was
# made twice must have been the same step. usage: play.sh slurm|pbs RESUME MPIEXEC [FLAGS ...]    in an empty folder
set -u
system=$1 program=$2
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
steps=200
fail() { echo "play: FAILED: $*" >&2; exit 1; }

mkdir -p bin job whole
"$@" -n 2 "$program" whole/checkpoints whole/result $steps > whole/trace || fail "the run without a stop"
[ "$(wc -l < whole/trace)" = $steps ] || fail "not $steps steps in whole/trace"

# --- the stand-ins ---
number=play-$$ # of the job, in the environment of all of its processes
stand_in() { { echo '#!/bin/bash'; cat; } > "bin/$1"; chmod +x "bin/$1"; }
stand_in srun <<< "exec $* -n \"\$SLURM_NTASKS\" \"\$@\""
stand_in mpiexec <<< "exec $* \"\$@\""
stand_in scontrol <<< "[ \"\$1 \$2\" = \"requeue $number\" ] && touch again"
stand_in qsub <<< "[ \"\$1\" = job.pbs ] && touch again"
export PATH=$PWD/bin:$PATH
export RESUME_PROGRAM=$program RESUME_STEPS=$steps RESUME_PAUSE=0.02
cp "$here/job.$system" job/
cd job || exit 1

# The processes of the job, or those of one name, by their environment.
processes() {
    local environment
    for environment in $(grep -lsaz "^PLAY_JOB=$number\$" /proc/[0-9]*/environ); do
        environment=${environment%/environ}
        [ $# = 0 ] || [ "$(cat "$environment/comm" 2> /dev/null)" = "$1" ] && echo "${environment#/proc/}"
    done
}
lines() { cat trace 2> /dev/null | wc -l; }

# A start of the job; $1 is what happens: nothing; signal N or dead N after N more steps; end: its time is over in a second.
start() {
    local what=$1 after=${2:-0} seconds=36000 already
    already=$(lines)
    [ "$what" = end ] && seconds=62 # it stops a minute before
    rm -f again
    if [ "$system" = slurm ]; then
        PLAY_JOB=$number SLURM_JOB_ID=$number SLURM_NTASKS=$(sed -n 's/^#SBATCH --ntasks=//p' job.slurm) \
            SLURM_JOB_END_TIME=$(($(date +%s) + seconds)) bash job.slurm >> trace 2>> log &
    else
        sed -i "s/^wall_seconds=[0-9]*/wall_seconds=$seconds/" job.pbs
        PLAY_JOB=$number PBS_O_WORKDIR=$PWD PBS_NP=2 bash job.pbs >> trace 2>> log &
    fi
    local job=$!
    if [ "$what" = signal ] || [ "$what" = dead ]; then
        while [ "$(lines)" -lt $((already + after)) ]; do
            kill -0 $job 2> /dev/null || fail "the job ended before it was stopped: $(tail -n 3 log)"
            sleep 0.05
        done
        if [ "$what" = dead ]; then
            kill -KILL $(processes)
        else # to the ranks, as "#SBATCH --signal" without "B:" has it
            kill -"$(sed -n 's/^#SBATCH --signal=\([A-Z0-9]*\)@.*/\1/p' job.slurm)" $(processes resume)
        fi
    fi
    wait $job
    local status=$?
    echo "$what: status $status after $(($(lines) - already)) more lines"
    case $what in
        nothing) [ $status = 0 ] && [ ! -e again ] || fail "the last start" ;;
        dead) [ $status != 0 ] && [ ! -e again ] && [ ! -e result ] || fail "the dead node" ;;
        *) [ $status = 0 ] && [ -e again ] && [ ! -e result ] || fail "$what: it did not save and ask for another start" ;;
    esac
}

if [ "$system" = slurm ]; then
    grep -q '^#SBATCH --requeue' job.slurm || fail "Slurm would not start it again after a dead node"
    start signal 30
fi
start end
start dead 35
start nothing

cmp result ../whole/result || fail "the result has other bits"
grep '^step' trace | sort -u -k 2n,2 -k 3 > steps_made
cmp steps_made ../whole/trace || fail "a step was not the one that it would have been"
[ "$(grep -c '^step' trace)" -gt $steps ] || fail "the dead node cost no step: nothing was tried"
grep "from step" log
echo "play: the same bits as without a stop"
