#!/bin/sh
# Runs a command that must fail, with the sentence of the error and without coming past it.
if output=$("$@" 2>&1); then
    echo "it succeeded"
    exit 1
fi
echo "$output" | grep -q 'zero_step: ZERO_ERR_STATE: .*zero_commit' && ! echo "$output" | grep -q 'still alive' && exit 0
echo "$output"
exit 1
