#!/usr/bin/env bash
# quickstart.sh [--networks]: builds attmirror and reruns the papers' experiments in their quick versions.
#
# It prints one line per experiment, the numbers that differ, and the path of the report, which shows published numbers next
# to ours. It needs a Debian machine (12 or later) and nothing else: scripts/setup.sh installs missing packages. Run it again
# and it takes seconds.
#
#   --networks   also installs LibTorch and builds `attmirror deep`, which trains transformers
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/progress.sh

networks=0
for argument in "$@"; do
  case $argument in
    --networks) networks=1 ;;
    -h | --help)
      help_of scripts/quickstart.sh
      exit 0
      ;;
    *)
      echo "quickstart.sh: unknown argument $argument (usage: quickstart.sh [--networks])" >&2
      exit 2
      ;;
  esac
done

need_folder build
began=$SECONDS
if [[ $networks -eq 1 ]]; then scripts/setup.sh --networks; else scripts/setup.sh; fi
packages=$((SECONDS - began))

# A fresh build folder gets the command alone, for this machine's instruction set; one that is there already (scripts/test.sh
# makes one with tests) stays as it was configured. `attmirror deep` is switched on by --networks, and stays on.
options=()
if [[ ! -f build/release/CMakeCache.txt ]]; then
  options+=(-DATTMIRROR_TESTS=OFF -DATTMIRROR_EXAMPLES=OFF -DATTMIRROR_KERNELS=native -DATTMIRROR_CUDA=OFF)
  if [[ $networks -eq 0 ]]; then options+=(-DATTMIRROR_DEEP=OFF); fi
  if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
fi
targets=(attmirror_command)
if [[ $networks -eq 1 ]]; then
  options+=(-DATTMIRROR_DEEP=ON)
  targets+=(attmirror_deep_command)
fi
with_progress "configuring" build/quickstart-configure.log cmake --preset release "${options[@]}"
build_progress "compiling" build/quickstart-compile.log cmake --build --preset release -j "$(compile_jobs)" --target "${targets[@]}"

out=out/quickstart
attmirror=build/release/bin/attmirror
# Exit code 1 means that some numbers differ: the table says which, and the page why.
status=0
"$attmirror" reproduce all --quick --summary -o "$out" || status=$?
if [[ $status -gt 1 ]]; then exit "$status"; fi
cat <<END

Done in $(duration $((SECONDS - began - packages)))$(if [[ $packages -ge 5 ]]; then echo ", after $(duration "$packages") for installing packages"; fi). Next, in $PWD:

  $out/report.html
      every figure and table; open it in your browser
  $attmirror --help
      how to use the command; each subcommand has its own --help
  $attmirror reproduce all -o out/full
      runs the experiments in full: two minutes on two cores
  cmake --install build/release --prefix ~/.local
      installs the command, its man pages and the library
END
