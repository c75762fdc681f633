#!/usr/bin/env bash
# check_gpu.sh [all|check|bench|network|torch]: builds the kernels for NVIDIA GPUs, checks them on the GPU of this machine and
# times them. It needs CUDA, CMake, ninja, Eigen and headers, for machines that lack the packages of the whole build; elsewhere
# scripts/test.sh builds all of it.
#
#   all      everything below (the default)
#   check    the kernels, and the optimizers in C++ where python3 has PyTorch
#   bench    the time of a step, by the kernels and by the optimizers in C++
#   network  the networks and their trainer, where python3 has PyTorch: an epoch of P1's sentiment network on IMDb
#            and of its vision transformer, with steps recorded as CUDA graphs and without: what host and GPU do in a step,
#            model FLOP utilization, memory, where the time goes (P1: Optimizing Attention with Mirror Descent)
#   torch    attmirror.torch: its checks, the time of a step and PyTorch's own checks of optimizers; all of tests/torch where
#            python3 has pytest. Needs PyTorch, but no LibTorch to compile with
#
# Headers of fmt, nlohmann-json, toml++, CLI11 and Random123 are looked for in build/carry (build/carry/fmt/format.h and so
# on), then in the system. With token files build/carry/imdb-train.safetensors and imdb-test.safetensors (attmirror deep
# tokenize) the trainer runs on them, too; without them texts are made up. Tables go to the terminal and to the folder OUT
# (build/device by default). Exits with 1 if a check fails, 2 for a word that is none of the above, 3 if building fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/progress.sh
what=${1:-all}
case $what in
  -h | --help)
    help_of scripts/check_gpu.sh
    exit 0
    ;;
  all | check | bench | network | torch) ;;
  *)
    echo "check_gpu.sh: unknown word \"$what\": expected all, check, bench, network or torch" >&2
    exit 2
    ;;
esac
out=${OUT:-build/device}
options=(-DCMAKE_BUILD_TYPE=Release)
if [[ -f build/carry/fmt/format.h ]]; then options+=("-DATTMIRROR_HEADERS=$PWD/build/carry"); fi
torch=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)' 2>/dev/null || true)
if [[ -n $torch ]]; then options+=("-DCMAKE_PREFIX_PATH=$torch"); fi
mkdir -p build "$out"

targets=(all attmirror_step attmirror_cuda_step)
if [[ $what == torch ]]; then targets=(attmirror_step attmirror_cuda_step); fi
if ! { cmake -G Ninja -S tests/device -B build/device "${options[@]}" && cmake --build build/device --target "${targets[@]}"; } >"$out/build.log" 2>&1; then
  tail -n 40 "$out/build.log"
  echo "check_gpu.sh: the build failed" >&2
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
in_python() { PYTHONPATH=python ATTMIRROR_STEP_LIBRARIES=build/device/python/attmirror python3 "$@"; }
if [[ -n $torch && ($what == torch || $what == all) ]]; then
  run torch_check in_python tests/device/torch_check.py
  run torch_step_bench in_python bench/torch_step_bench.py --device cuda
  if python3 -c 'import pytest' 2>/dev/null; then
    run torch_tests in_python -m pytest -q -p no:cacheprovider --durations=5 tests/torch
  else
    run torch_tests in_python tests/torch/test_pytorch_checks.py
  fi
fi
if [[ $what == torch ]]; then exit "$status"; fi
if [[ $what == check || $what == all ]]; then
  run cuda_step_check build/device/bin/cuda_step_check
  run cuda_options_check build/device/bin/cuda_options_check
  if [[ -x build/device/bin/optimizer_check ]]; then run optimizer_check build/device/bin/optimizer_check; fi
fi
if [[ $what != bench && -x build/device/bin/network_check ]]; then run network_check build/device/bin/network_check; fi
if [[ $what == bench || $what == all ]]; then
  run cuda_step_bench build/device/bin/cuda_step_bench
  if [[ -x build/device/bin/optimizer_bench ]]; then run optimizer_bench build/device/bin/optimizer_bench --device cuda; fi
fi
if [[ $what != check && -x build/device/bin/network_bench ]]; then
  tokens=build/carry/imdb-train.safetensors
  texts=()
  if [[ -f $tokens ]]; then texts=(--tokens "$tokens"); fi
  run network_bench build/device/bin/network_bench --device cuda --networks 3,6,vit --optimizers md,adam --profile "${texts[@]}"
  for blocks in 3 6; do
    if [[ ! -f $tokens ]]; then break; fi
    run "train_$blocks" build/device/bin/attmirror_deep_train train examples/deep/imdb.toml --overwrite -o "$out/train_$blocks" \
      --set data.train="$tokens" --set data.test=build/carry/imdb-test.safetensors --set model.blocks=$blocks \
      --set model.heads=$blocks --set train.epochs=5
  done
fi
exit "$status"
