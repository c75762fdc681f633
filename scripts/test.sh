#!/usr/bin/env bash
# test.sh [STAGE...]: passes all tests. Stages, all of them by default:
#
#   release   build/release with all tests, on every instruction set; install and use from another project
#   asan      the tests under the address and undefined-behaviour sanitizers, at a reduced size
#   tsan      the tests of what runs in threads under the thread sanitizer, at a reduced size
#   fuzz      the parsers of files against random input, 20 seconds each   (needs clang with libFuzzer)
#   format    the layout of the sources                                    (needs clang-format 14)
#
# A stage whose optional tool is not there says so and is skipped. The last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

stages=("$@")
if [[ ${#stages[@]} -eq 0 ]]; then stages=(release asan tsan fuzz format); fi
fuzz_seconds=${ATTMIRROR_FUZZ_SECONDS:-20}
jobs=$(nproc)
passed=0
failed=0
wrapper=() # a command that tests and builds run under
mkdir -p build

say() { printf '== %s\n' "$*"; }

# attempt WHAT COMMAND...: counts as one test; the output is shown only when it fails.
attempt() {
  local what=$1 log=build/test.log
  shift
  if "$@" >"$log" 2>&1 </dev/null; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    tail -n 60 "$log"
    say "$what FAILED"
    return 1
  fi
}

finish() {
  echo "$passed passed, $failed failed"
  if [[ $failed -gt 0 ]]; then exit 1; fi
  exit 0
}

# configure PRESET FOLDER [OPTIONS...]. ccache takes part in fresh build folders, where it is installed.
configure() {
  local preset=$1 folder=$2 launcher=()
  shift 2
  if [[ ! -f $folder/CMakeCache.txt ]] && command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  attempt "configuring $folder" cmake --preset "$preset" -B "$folder" "${launcher[@]}" "$@"
}

# Sanitizers see as much at -O1, which compiles in half the time. The command and the examples run in stage release, and so
# does what stands on LibTorch, which is not built with sanitizers.
sanitizer_options=(-DATTMIRROR_CLI=OFF -DATTMIRROR_EXAMPLES=OFF -DATTMIRROR_DEEP=OFF "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1")

# run_ctest FOLDER [OPTIONS...]: adds ctest's counts to ours.
run_ctest() {
  local folder=$1 log=build/ctest.log total broken
  shift
  "${wrapper[@]}" ctest --test-dir "$folder" --output-on-failure --no-tests=error --timeout 600 -j "$jobs" \
    "$@" >"$log" 2>&1 </dev/null || true
  if [[ $(grep -E 'tests passed, [0-9]+ tests failed out of [0-9]+' "$log") =~ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]]; then
    broken=${BASH_REMATCH[1]}
    total=${BASH_REMATCH[2]}
  else
    broken=1
    total=1
  fi
  passed=$((passed + total - broken))
  failed=$((failed + broken))
  if [[ $broken -gt 0 ]]; then
    grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed )' "$log" | tail -n 200 || true
  else
    grep -E 'tests passed|^Total Test time' "$log"
  fi
}

stage_release() {
  say "release: all tests"
  # One architecture shows that the kernels for GPUs compile.
  configure release build/release -DATTMIRROR_TESTS=ON -DATTMIRROR_EXAMPLES=ON -DATTMIRROR_CUDA_ARCHITECTURES=90 ||
    finish # nothing else can go well
  attempt "building build/release" cmake --build build/release || finish
  run_ctest build/release
}

stage_asan() {
  say "asan: address and undefined-behaviour sanitizers"
  configure asan build/test-asan "${sanitizer_options[@]}" || return 0
  attempt "building build/test-asan" cmake --build build/test-asan || return 0
  ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 run_ctest build/test-asan -LE 'isa|slow|house'
}

# Only the rooms that start threads. g++ 12's thread sanitizer cannot start where the kernel spreads addresses widely,
# so that is switched off for it where allowed.
stage_tsan() {
  say "tsan: thread sanitizer"
  local machine
  machine=$(uname -m)
  if setarch "$machine" -R true 2>/dev/null; then wrapper=(setarch "$machine" -R); fi
  if configure tsan build/test-tsan "${sanitizer_options[@]}" &&
    attempt "building build/test-tsan" "${wrapper[@]}" cmake --build build/test-tsan \
      --target attmirror_test_base attmirror_test_attention attmirror_test_corpus attmirror_test_descent attmirror_test_margin \
      attmirror_test_mirror attmirror_test_next_token attmirror_test_sweep; then
    TSAN_OPTIONS=halt_on_error=1 run_ctest build/test-tsan -L 'base|attention|deep|descent|margin|mirror|next_token|sweep' -LE 'isa|slow'
  fi
  wrapper=()
}

stage_fuzz() {
  local probe='extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
  if ! clang++ -x c++ - -fsanitize=fuzzer,address,undefined -o /dev/null <<<"$probe" >/dev/null 2>&1; then
    say "fuzz: skipped, there is no clang++ with libFuzzer"
    return 0
  fi
  say "fuzz: each parser for $fuzz_seconds seconds"
  configure fuzz build/fuzz || return 0
  attempt "building build/fuzz" cmake --build build/fuzz || return 0
  local format
  for format in npy npz safetensors sentences sweep text_set tokens wordpiece; do
    mkdir -p "build/fuzz/new/$format" "build/fuzz/findings"
    attempt "fuzzing $format (what broke it is in build/fuzz/findings)" \
      "build/fuzz/bin/attmirror_fuzz_$format" -max_total_time="$fuzz_seconds" -malloc_limit_mb=64 -verbosity=0 \
      -artifact_prefix="build/fuzz/findings/$format-" "build/fuzz/new/$format" "tests/fuzz/corpus/$format" || true
  done
}

stage_format() {
  local status=0
  scripts/format.sh --check >build/test.log 2>&1 </dev/null || status=$?
  if [[ $status -eq 4 ]]; then
    say "format: skipped, there is no clang-format 14"
    return 0
  fi
  say "format: the layout of the sources"
  if [[ $status -eq 0 ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    cat build/test.log
    say "the layout FAILED (scripts/format.sh mends it)"
  fi
}

# What git sees of the tree, to notice tests that leave something behind. Empty outside a checkout.
tree_state() { git --no-optional-locks status --porcelain 2>/dev/null || true; }

for stage in "${stages[@]}"; do
  if ! declare -F "stage_$stage" >/dev/null; then
    echo "test.sh: unknown stage $stage (release, asan, tsan, fuzz, format)" >&2
    exit 2
  fi
done

scripts/setup.sh --tests
before=$(tree_state)
for stage in "${stages[@]}"; do "stage_$stage"; done
attempt "leaving the tree as it was (git status)" diff <(printf '%s\n' "$before") <(printf '%s\n' "$(tree_state)") || true
finish
