#!/bin/bash
# For a machine with a GPU: builds with CUDA (or takes the build folder it is given), runs the tests on the real device, the kernels under
# compute-sanitizer where that is installed, and the benchmarks gpu_*; writes report.txt and report.json. Under six minutes.
#   tests/device/check.sh [report folder, default build/device] [build folder, default build/cuda]
# Status: 0 all passed, 1 something failed, 77 no GPU.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
report=${1:-$root/build/device} folder=${2:-$root/build/cuda}
mkdir -p "$report"
text=$report/report.txt
: >"$text"
failed=""

say() { printf '%s\n' "$*" | tee -a "$text"; }
part() {
    local name=$1 from=$SECONDS
    shift
    say "=== $name"
    if "$@" >>"$text" 2>&1; then results+=("\"$name\": {\"passed\": true, \"seconds\": $((SECONDS - from))}")
    else
        failed+=" $name"
        results+=("\"$name\": {\"passed\": false, \"seconds\": $((SECONDS - from))}")
        tail -20 "$text"
    fi
}

results=()
if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >>"$text" 2>&1; then
    say "no GPU here (nvidia-smi -L)"
    exit 77
fi
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv >>"$text" 2>&1
if [ ! -x "$folder/tests/compute/compute_gpu_test" ]; then
    part build env ZERO_BUILD_FOLDER="$folder" "$root/tools/build.sh" release -DZERO_CUDA=ON -DZERO_TESTS=ON -DZERO_FORTRAN=OFF \
        -DZERO_EXAMPLES=OFF -- zero_yield_shim compute_gpu_test engine_gpu_test gpu_adam gpu_offload gpu_nccl
fi
part tests ctest --test-dir "$folder" --output-on-failure --no-tests=error -L '^gpu$'
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck initcheck; do
        part "$tool" timeout 100 compute-sanitizer --tool $tool --error-exitcode 1 "$folder/tests/compute/compute_gpu_test"
    done
fi
gpus=$(nvidia-smi -L | wc -l)
ranks=(mpiexec -n "$((gpus > 1 ? gpus : 2))")  # two share one: through host memory
measure() {
    local name=$1
    shift
    part "$name" timeout 60 "$@"
    timeout 60 "$@" --json >"$report/$name.json" 2>>"$text"
}
measure gpu_adam "$folder/benchmarks/gpu_adam" --rounds 5 --threads "$(nproc)"
measure gpu_offload "$folder/benchmarks/gpu_offload" --rounds 5
measure gpu_nccl "${ranks[@]}" "$folder/benchmarks/gpu_nccl" --rounds 5
(IFS=,; printf '{%s}\n' "${results[*]}") >"$report/report.json"
if [ -n "$failed" ]; then
    say "failed:$failed"
    exit 1
fi
say "all passed"
