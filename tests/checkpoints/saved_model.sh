#!/bin/bash
# What the tests of readers read: makes the folder OUT anew, saves into OUT/checkpoints, and writes down what was saved.
# usage: saved_model.sh OUT MPIEXEC [FLAGS ...] -n 3 saved_model
set -eu
out=$1
shift
rm -rf "$out"
mkdir -p "$out"
"$@" save "$out/checkpoints" "$out"
cat "$out"/attached-[0-9] >> "$out/expected"
