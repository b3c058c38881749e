#!/bin/sh
# What is compiled with AVX must share no function with the rest: a weak (merged) symbol in such an object could become
# the one copy that every machine runs. Usage: kernel_symbols.sh <static library>
set -eu
checked=0
members=$(ar t "$1" | grep -E 'kernels.*_avx(2|512)\.cpp' || true)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for member in $members; do
    ar p "$1" "$member" > "$folder/object.o"
    shared=$(nm -C "$folder/object.o" | grep -E '^[0-9a-f]+ [WVui] ' || true)
    if [ -n "$shared" ]; then
        echo "$member exports merged symbols:"
        echo "$shared"
        exit 1
    fi
    checked=$((checked + 1))
done
# four objects on every machine (without AVX they are all but empty)
[ "$checked" -eq 4 ] || { echo "expected 4 AVX objects in $1, found $checked"; exit 1; }
