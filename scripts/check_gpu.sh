#!/usr/bin/env bash
# check_gpu.sh [check|bench|all]: builds the kernels for NVIDIA GPUs with nothing but CUDA, CMake, ninja, Eigen and fmt
# (and the optimizers, where python3 has PyTorch), checks them on the GPU of this machine, and times them. For machines that lack the packages of the whole build; elsewhere
# scripts/test.sh builds all of it.
#
# fmt's headers are looked for in build/carry (build/carry/fmt/format.h), then in the system. Tables go to the terminal and
# to the folder OUT (build/device by default).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
what=${1:-all}
out=${OUT:-build/device}
options=(-DCMAKE_BUILD_TYPE=Release)
if [[ -f build/carry/fmt/format.h ]]; then options+=("-DATTMIRROR_HEADERS=$PWD/build/carry"); fi
torch=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)' 2>/dev/null || true)
if [[ -n $torch ]]; then options+=("-DCMAKE_PREFIX_PATH=$torch"); fi
mkdir -p build "$out"

if ! { cmake -G Ninja -S tests/device -B build/device "${options[@]}" && cmake --build build/device; } >"$out/build.log" 2>&1; then
  tail -n 40 "$out/build.log"
  echo "check_gpu.sh: building failed" >&2
  exit 3
fi

status=0
# run NAME COMMAND...: shows what it prints, keeps it under OUT.
run() {
  local name=$1
  shift
  echo "== $name"
  "$@" >"$out/$name.txt" 2>&1 || status=1
  cat "$out/$name.txt"
}
if [[ $what != bench ]]; then
  run cuda_step_check build/device/bin/cuda_step_check
  run cuda_options_check build/device/bin/cuda_options_check
  if [[ -x build/device/bin/optimizer_check ]]; then run optimizer_check build/device/bin/optimizer_check; fi
fi
if [[ $what != check ]]; then
  run cuda_step_bench build/device/bin/cuda_step_bench
  if [[ -x build/device/bin/optimizer_bench ]]; then run optimizer_bench build/device/bin/optimizer_bench --device cuda; fi
fi
exit "$status"
