#!/usr/bin/env bash
# format.sh [--check]: formats all C++ and CUDA sources with clang-format 14. With --check it changes nothing and lists the
# sources that are not formatted (exit 1): those that clang-format would change, and those with a line of more than 120
# characters that is not a string literal.
#
# Other versions break lines differently, so it must be version 14 (Debian 12). Exit 4: clang-format 14 is not installed.
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
  echo "format.sh: clang-format 14 is not installed" >&2
  exit 4
fi

mapfile -d '' -t sources < <(find include src python tests examples bench \
  \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z)
if [[ ${1:-} == --check ]]; then
  status=0
  complaints=$(printf '%s\0' "${sources[@]}" | xargs -0 -n 16 -P "$(nproc)" "$formatter" --dry-run -Werror 2>&1) || status=1
  sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error: .*/not laid out: \1/p' <<<"$complaints" | sort -u >&2
  if printf '%s\0' "${sources[@]}" | LC_ALL=C.UTF-8 xargs -0 grep -HnE '^.{121,}$' | grep -v '"' >&2; then
    status=1
  fi
  exit "$status"
fi
"$formatter" -i "${sources[@]}"
