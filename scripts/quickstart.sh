#!/usr/bin/env bash
# quickstart.sh: builds attmirror and does the papers' experiments again in their quick versions, published beside ours.
#
# Needs nothing but a Debian machine (12 or later): missing packages are installed by scripts/setup.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=build/quickstart.log
mkdir -p build
quietly() { # quietly WHAT COMMAND...: shows the output only if the command fails
  local what=$1
  shift
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    echo "quickstart.sh: $what failed; all of its output is in $log" >&2
    exit 1
  fi
}

scripts/setup.sh

# The tests need more packages, so a fresh build folder does without them; one that scripts/test.sh has made keeps them.
options=()
if [[ ! -f build/release/CMakeCache.txt ]]; then
  options+=(-DATTMIRROR_TESTS=OFF -DATTMIRROR_EXAMPLES=OFF)
  if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
fi
echo "building build/release/bin/attmirror (some minutes the first time)"
quietly "configuring" cmake --preset release "${options[@]}"
quietly "building" cmake --build --preset release --target attmirror_command

out=out/quickstart
# 1 says that some numbers differ (the table says which, and the page why), or that an experiment failed.
status=0
build/release/bin/attmirror reproduce all --quick -o "$out" | tee build/quickstart_table.txt || status=$?
if [[ $status -gt 1 ]] || grep -q '  failed: ' build/quickstart_table.txt; then exit "$status"; fi
cat <<END

The page          $out/report.html   (open it in a browser; figures and tables are in $out/figures and $out/tables)
all of it         build/release/bin/attmirror reproduce all -o out/full   (a minute or two on two cores)
the experiments   build/release/bin/attmirror reproduce --list
the command       build/release/bin/attmirror --help
END
