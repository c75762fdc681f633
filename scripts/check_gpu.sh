#!/usr/bin/env bash
# check_gpu.sh [check|bench|network|torch|all]: builds the kernels for NVIDIA GPUs with nothing but CUDA, CMake, ninja, Eigen and
# headers (and the optimizers, the networks and their trainer, where python3 has PyTorch), checks them on the GPU of this
# machine, and times them; `network` does so for the networks alone: an epoch of P1's sentiment network on IMDb and of its vision
# transformer, steps recorded as CUDA graphs or not, with what host and GPU do in a step, model FLOP utilisation, memory and
# where the time goes; `torch` does so for the optimizers in Python alone, which need PyTorch, but no
# LibTorch to compile with. For machines that lack the packages of the whole build; elsewhere
# scripts/test.sh builds all of it.
#
# Headers of fmt, nlohmann-json, toml++, CLI11 and Random123 are looked for in build/carry (build/carry/fmt/format.h and so
# on), then in the system. With token files build/carry/imdb-train.safetensors and imdb-test.safetensors (attmirror deep
# tokenize) the trainer runs on them, too; without them texts are made up. Tables go to the terminal and to the folder OUT
# (build/device by default).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
what=${1:-all}
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
in_python() { PYTHONPATH=python ATTMIRROR_STEP_LIBRARIES=build/device/python/attmirror python3 "$@"; }
if [[ -n $torch && ($what == torch || $what == all) ]]; then
  run torch_check in_python tests/device/torch_check.py
  if python3 -c 'import pytest' 2>/dev/null; then run torch_tests in_python -m pytest -q -p no:cacheprovider tests/torch; fi
  run torch_step_bench in_python bench/torch_step_bench.py --device cuda
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
