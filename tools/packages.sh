#!/bin/bash
# Sees to the packages that this project needs: tools/packages.sh [build] [tests] [openmpi]   (no word: build)
# On Debian (and Ubuntu) as root it installs what is missing; elsewhere it says what to install. Nothing is asked.
set -euo pipefail

declare -A packages=(
    [build]="g++ gfortran cmake ninja-build pkg-config mpich libmpich-dev libhdf5-dev nlohmann-json3-dev libfmt-dev
             libcli11-dev libxxhash-dev libhwloc-dev"
    [tests]="catch2 python3 python3-numpy python3-h5py python3-h5netcdf python3-xarray hdf5-tools fypp git binutils"
    [openmpi]="libopenmpi-dev openmpi-bin"
)

# The same in words, for systems whose package names are not known here.
declare -A in_words=(
    [build]="C, C++20 and Fortran compilers, CMake 3.25 or later, Ninja, pkg-config, an MPI with its compilers (MPICH), \
HDF5 with headers, the headers of nlohmann-json 3, fmt 9, CLI11 and xxHash, \
and, if threads shall be spread by it, hwloc 2"
    [tests]="Catch2 version 2, Python 3 with NumPy, h5py, h5netcdf and xarray, HDF5's command line tools, fypp, git, binutils"
    [openmpi]="Open MPI with its compilers"
)

wanted=""
needed=""
for group in "${@:-build}"; do
    if [ -z "${packages[$group]+known}" ]; then
        echo "tools/packages.sh: unknown group '$group'; known are: build, tests, openmpi" >&2
        exit 2
    fi
    wanted+=" ${packages[$group]}"
    needed+="    ${in_words[$group]}"$'\n'
done

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    # Not Debian: what is there is not known, so it goes on, and the build itself names whatever it misses.
    echo "tools/packages.sh: this is not Debian, so nothing is installed. Needed are:" >&2
    printf '%s' "$needed" >&2
    echo "Debian calls these packages:" $wanted >&2
    exit 0
fi

missing=""
for package in $wanted; do
    installed "$package" || missing+=" $package"
done
if [ -z "$missing" ]; then
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    echo "tools/packages.sh: packages are missing and only root may install them. Run:" >&2
    echo "    sudo apt-get install --no-install-recommends$missing" >&2
    exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for attempt in 1 2 3; do
    if { apt-get update && apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
        exit 0
    fi
    sleep $((attempt * 5))
done
cat "$log" >&2
echo "tools/packages.sh: apt-get could not install$missing (its output is above)" >&2
exit 1
