#!/usr/bin/env bash
# get_plotly.sh: puts plotly.min.js, which draws the interactive figures of reports, into build/plotly.
#
# Debian's package does not contain it. The Python package in this version does, and its checksum is verified. Without
# Plotly, attmirror is built all the same and figures are static, so a failure prints one line and exits with 0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=6.9.0
sha256=36bebe2f1bb13884774fe61689c329071446f6ce4a8927fb1f0d6fb24f581236
target=build/plotly/plotly.min.js

if [[ -s $target ]]; then exit 0; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The system's Python first: another one on the path may lack pip.
python=
for candidate in /usr/bin/python3 python3; do
  if "$candidate" -m pip --version >/dev/null 2>&1; then
    python=$candidate
    break
  fi
done
if [[ -z $python ]]; then
  echo "no Python with pip found: figures in reports will be static (without Plotly)" >&2
  exit 0
fi

echo "plotly==$version --hash=sha256:$sha256" >"$folder/requirements.txt"
if ! "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
  --timeout 20 --retries 1 --dest "$folder" --requirement "$folder/requirements.txt" >"$folder/log" 2>&1 </dev/null; then
  reason=$(grep -m 1 ERROR "$folder/log" || tail -n 1 "$folder/log")
  echo "Plotly could not be downloaded (${reason:-no reason given}): figures in reports will be static" >&2
  exit 0
fi
mkdir -p build/plotly
"$python" - "$folder"/plotly-*.whl "$folder/plotly.min.js" <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, open(sys.argv[2], "wb") as file:
    file.write(wheel.read("plotly/package_data/plotly.min.js"))
END
mv "$folder/plotly.min.js" "$target"
