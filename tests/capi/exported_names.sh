#!/bin/sh
# Nothing leaves the shared library but the contract: zero_* and zerof_*.   exported_names.sh <libzero.so> <zero.h>
set -eu
names=$(nm -D --defined-only "$1" | awk '{print $3}' | sed 's/@.*//')
strangers=$(echo "$names" | grep -v -E '^(zero_|zerof_|ZERO_0$)' || true)
if [ -n "$strangers" ]; then
    echo "exported by mistake: $strangers"
    exit 1
fi
for name in $(grep -o -E '^ZERO_API .*' "$2" | grep -o -E 'zero_[a-z_]+\(' | tr -d '('); do
    echo "$names" | grep -q -x "$name" || { echo "not exported: $name"; exit 1; }
done
