#!/usr/bin/env bash
# format.sh [--check]: lays out all C++ sources with clang-format 14, or says which are not laid out (exit 1).
#
# Other versions break lines differently, so only version 14 (Debian 12) counts. Exit 4: it is not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

formatter=
for candidate in clang-format-14 clang-format; do
  if command -v "$candidate" >/dev/null && [[ $("$candidate" --version) == *"version 14."* ]]; then
    formatter=$candidate
    break
  fi
done
if [[ -z $formatter ]]; then
  echo "format.sh: clang-format 14 is not there" >&2
  exit 4
fi

mapfile -d '' -t sources < <(find include src tests examples bench \
  \( -name '*.hpp' -o -name '*.cpp' \) -print0 | sort -z)
if [[ ${1:-} == --check ]]; then
  status=0
  for source in "${sources[@]}"; do
    if ! "$formatter" --dry-run -Werror "$source" 2>/dev/null; then
      echo "not laid out: $source" >&2
      status=1
    fi
  done
  exit "$status"
fi
"$formatter" -i "${sources[@]}"
