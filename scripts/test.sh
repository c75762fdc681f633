#!/usr/bin/env bash
# test.sh [all|nightly|STAGE...]: runs the tests.
#
#   scripts/test.sh           the tests that every change must pass: stages release, python and format
#   scripts/test.sh all       what continuous integration runs: quickstart, release (on every instruction set, with the
#                             GPU kernels), python, install, packages, asan, tsan, fuzz, format
#   scripts/test.sh nightly   what takes longer still: docs, separate, tarball, clean_root, newest, torch, differential, long
#
# Stages:
#   release      build/release with all tests; on this machine's instruction set, or on all of them (in `all`)
#   python       the wheel of the Python package, installed into a virtual environment and tested there
#   docs         scripts/docs.sh: the documentation as a site
#   quickstart   scripts/quickstart.sh; its build is then installed and used from another project
#   install      the same with everything built
#   packages     .deb and .tar.gz, unpacked and used
#   asan         the tests under the address and undefined-behavior sanitizers, at a reduced size
#   tsan         the tests of multithreaded code under the thread sanitizer, at a reduced size
#   fuzz         the file parsers on random input, 12 seconds each (ATTMIRROR_FUZZ_SECONDS; needs clang with libFuzzer)
#   format       the formatting of the sources (needs clang-format 14)
#   separate     each source compiled by itself (ATTMIRROR_UNITY=OFF), warnings as errors
#   tarball      the quick start in an unpacked archive, without git and without a compiler cache
#   clean_root   the quick start in a new Debian root (needs root and debootstrap)
#   newest       attmirror deep against the newest PyTorch from pip
#   torch        attmirror.torch and attmirror.optax with the newest PyTorch and JAX from pip, and a Hugging Face transformer
#   differential max-margin problems in ten norms against SciPy and Clarabel, from pip
#   long         property tests with many more cases, parsers fuzzed for ten minutes each, the docs' long blocks
#
# On two cores without a compiler cache, the first takes about a quarter of an hour and `all` three quarters of an hour; with a
# cache, a third of that.
#
# If the optional tool for a stage is missing, the stage says so and is skipped. Each stage prints its time and its slowest
# tests. The last line is "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/progress.sh
source scripts/test_stages.sh

if [[ $# -gt 1 && ($1 == all || $1 == nightly) ]]; then
  echo "test.sh: $1 is given together with ${*:2}: expected one of all and nightly, or a list of stages" >&2
  exit 2
fi
case ${1:-} in
  -h | --help)
    help_of scripts/test.sh
    exit 0
    ;;
  "") stages=(release python format) ;;
  all)
    every_kernel=1
    stages=(quickstart release python install packages asan tsan fuzz format)
    ;;
  nightly) stages=(docs separate tarball clean_root newest torch differential long) ;;
  *) stages=("$@") ;;
esac
for stage in "${stages[@]}"; do
  if ! declare -F "stage_$stage" >/dev/null; then
    echo "test.sh: unknown stage $stage: expected all, nightly, or some of $(declare -F | sed -n 's/^declare -f stage_//p' | xargs)" >&2
    exit 2
  fi
done

need_folder build
began=$SECONDS
scripts/setup.sh --tests
times=("$(printf '%-12s %s' packages "$(duration $((SECONDS - began)))")")
before=$(tree_state)
for stage in "${stages[@]}"; do
  stage_began=$SECONDS
  "stage_$stage"
  times+=("$(printf '%-12s %s' "$stage" "$(duration $((SECONDS - stage_began)))")")
done
attempt "leaving the tree as it was (git status)" diff <(printf '%s\n' "$before") <(printf '%s\n' "$(tree_state)") || true
finish
