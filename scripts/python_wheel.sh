#!/usr/bin/env bash
# python_wheel.sh: the wheel of the Python package in build/wheels, from build/release.
#
# The extension is one more target of build/release, so nothing of the library is compiled twice. A folder that is not there
# yet is configured for this machine's instruction set, without tests. Otherwise it stays as it was configured. The tools are
# those of tests/python/requirements.txt, in build/python-env. scripts/wheel.sh makes a wheel for other machines.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/progress.sh
case ${1:-} in
  "") ;;
  -h | --help)
    help_of scripts/python_wheel.sh
    exit 0
    ;;
  *)
    echo "python_wheel.sh: unknown argument $1 (usage: python_wheel.sh)" >&2
    exit 2
    ;;
esac

python=$PWD/build/python-env/bin/python
if [[ ! -x $python ]]; then python3 -m venv build/python-env; fi
stamp=build/python-env/requirements.txt
if ! cmp -s tests/python/requirements.txt "$stamp"; then
  "$python" -m pip install --quiet --disable-pip-version-check -r tests/python/requirements.txt
  cp tests/python/requirements.txt "$stamp"
fi
if [[ ! -f build/release/CMakeCache.txt ]]; then
  launcher=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake --preset release -DATTMIRROR_TESTS=OFF -DATTMIRROR_EXAMPLES=OFF -DATTMIRROR_KERNELS=native -DATTMIRROR_CUDA=OFF \
    -DATTMIRROR_DEEP=OFF "${launcher[@]}"
fi
# pyproject.toml has settings of its own for these; the folder's are kept.
defines=()
for name in TESTS EXAMPLES CUDA DEEP MPI; do
  defines+=(-C "cmake.define.ATTMIRROR_$name=$(sed -n "s/^ATTMIRROR_$name:[A-Z]*=//p" build/release/CMakeCache.txt)")
done
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' build/release/CMakeCache.txt)
# scikit-build-core starts a folder afresh that another environment used; this one is ours, whoever used it last.
rm -rf build/wheels build/release/.skbuild-info.json
CMAKE_BUILD_PARALLEL_LEVEL=$(compile_jobs) "$python" -m pip wheel . --quiet --disable-pip-version-check --no-build-isolation --no-deps \
  --wheel-dir build/wheels -C build-dir=build/release "${defines[@]}"
cmake -B build/release -DATTMIRROR_PYTHON=OFF "-DCMAKE_INSTALL_PREFIX=$prefix" -U 'SKBUILD*' -U '*Python_*' -U nanobind_DIR >/dev/null
