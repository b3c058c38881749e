#!/bin/bash
# h5dump and h5ls on the index of a checkpoint that zero_save wrote: every dataset is there with its extents, and h5dump's
# bytes are the saved ones. usage: read_by_tools.sh h5dump|h5ls INDEX EXPECTED   (EXPECTED: see saved_model.cpp)
set -u
tool=$1 index=$2 expected=$3
command -v "$tool" > /dev/null || { echo "SKIPPED: $tool was not found (Debian: hdf5-tools)"; exit 77; }
wrong=0 seen=0
problem() { echo "wrong: $*"; wrong=$((wrong + 1)); }

# What h5ls says about a path. It writes other characters as octal numbers and a blank as "\ ".
listed=$(h5ls -r "$index") || problem "h5ls fails"
listed=$(printf '%b' "$(sed -E 's/\\([0-7]{3})/\\0\1/g; s/\\ / /g' <<< "$listed")")
shape() { grep -F -- "$1 " <<< "$listed" | grep -F "Dataset {"; }

while read -r line; do
    seen=$((seen + 1))
    path=${line%%$'\t'*} raw=${line##*$'\t'} dims=${line%$'\t'*}
    dims=${dims##*$'\t'} dims=${dims%,}
    if [ "$tool" = h5ls ]; then
        # a tensor without extents is a scalar, an attached array without extents has one of 1
        [ -n "$dims" ] || { case $path in /attached/*) dims=1 ;; *) dims=SCALAR ;; esac; }
        grep -qF "Dataset {${dims//,/, }}" <<< "$(shape "$path")" || problem "$path: $(shape "$path")"
        continue
    fi
    h5dump -d "$path" -b FILE -o bytes "$index" > words 2>&1 || problem "$path: $(tail -n 3 words)"
    cmp -s bytes "$raw" || problem "$path: other bytes"
    rm -f bytes
done < "$expected"

if [ "$tool" = h5dump ]; then
    h5dump -A "$index" > words || problem "h5dump -A fails"
    for attribute in holds storage_order uuid dtype group config note; do
        grep -q "ATTRIBUTE \"$attribute\"" words || problem "no attribute $attribute"
    done
fi
echo "$tool read $seen datasets, $wrong wrong"
[ "$wrong" = 0 ] && [ "$seen" -gt 40 ]
