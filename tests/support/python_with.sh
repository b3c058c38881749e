#!/bin/bash
# Runs a Python script by an interpreter that has the modules it needs; without one the test is skipped (status 77), and
# says so. usage: python_with.sh "MODULE ..." "DEBIAN PACKAGES" SCRIPT ARGUMENTS ...
modules=$1 packages=$2
shift 2
for python in python3 /usr/bin/python3; do
    if "$python" -c "import ${modules// /, }" 2> /dev/null; then
        exec "$python" -B "$@"
    fi
done
echo "SKIPPED: no python3 has $modules (Debian: $packages)"
exit 77
