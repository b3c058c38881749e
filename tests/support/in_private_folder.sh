#!/bin/bash
# Runs a command in a new temporary folder, which is also its TMPDIR, and removes the folder afterwards.
# ZERO_TEST_PRELOAD names the yield shim (yield_shim.c); it is preloaded into the command only.
set -u
folder=$(mktemp -d "${TMPDIR:-/tmp}/zero_test.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export TMPDIR=$folder
if [ -n "${ZERO_TEST_PRELOAD:-}" ]; then
    LD_PRELOAD="$ZERO_TEST_PRELOAD" "$@"
else
    "$@"
fi
