# test_stages.sh: the stages of scripts/test.sh. Source it.

every_kernel=${every_kernel:-0} # 1: all instruction sets, and the kernels for GPUs compiled
fuzz_seconds=${ATTMIRROR_FUZZ_SECONDS:-12}
jobs=$(nproc)
passed=0
failed=0
skipped=0
wrapper=() # a command that tests and builds run under

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

# skip STAGE WHY
skip() {
  skipped=$((skipped + 1))
  say "$1: skipped, $2"
}

finish() {
  say "time"
  printf '   %s\n' "${times[@]}"
  echo "$passed passed, $failed failed, $skipped skipped"
  if [[ $failed -gt 0 ]]; then exit 1; fi
  exit 0
}

# What git sees of the tree, to notice tests that leave something behind. Empty outside a checkout.
tree_state() { git --no-optional-locks status --porcelain 2>/dev/null || true; }

# configure PRESET FOLDER [OPTIONS...]. ccache takes part in fresh build folders, where it is installed.
configure() {
  local preset=$1 folder=$2 launcher=()
  shift 2
  if [[ ! -f $folder/CMakeCache.txt ]] && command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  fi
  attempt "configuring $folder" cmake --preset "$preset" -B "$folder" "${launcher[@]}" "$@"
}

# build FOLDER [OPTIONS...]
build() {
  local folder=$1 began=$SECONDS
  shift
  attempt "building $folder" "${wrapper[@]}" cmake --build "$folder" -j "$(compile_jobs)" "$@" || return 1
  echo "   built in $(duration $((SECONDS - began)))"
}

# run_ctest FOLDER [OPTIONS...]: adds its counts to ours.
run_ctest() {
  local folder=$1 log=build/ctest.log began=$SECONDS counts
  shift
  rm -rf "$folder/test-results" "$folder/junit.xml"
  "${wrapper[@]}" ctest --test-dir "$folder" --output-on-failure --no-tests=error --timeout 900 -j "$jobs" \
    --output-junit junit.xml "$@" >"$log" 2>&1 </dev/null || true
  if ! counts=$(python3 scripts/test_summary.py "$folder/junit.xml" "$folder/test-results"); then
    failed=$((failed + 1))
    tail -n 100 "$log"
    say "ctest in $folder FAILED"
    return 0
  fi
  read -r -a counts <<<"$counts"
  passed=$((passed + counts[0]))
  failed=$((failed + counts[1]))
  skipped=$((skipped + counts[2]))
  if [[ ${counts[1]} -gt 0 ]] || ! grep -q '^100% tests passed' "$log"; then
    grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed )|^\[ +(OK|RUN) +\]' "$log" | tail -n 200 || true
    if [[ ${counts[1]} -eq 0 ]]; then failed=$((failed + 1)); fi
  fi
  echo "   ${counts[0]} passed, ${counts[1]} failed, ${counts[2]} skipped in $(duration $((SECONDS - began)))"
}

# configure_release [OPTIONS...]: build/release as the size wants it.
configure_release() {
  local kernels=native cuda=OFF
  if [[ $every_kernel -eq 1 ]]; then kernels=all cuda=AUTO; fi
  # One architecture shows that the kernels for GPUs compile.
  configure release build/release -DATTMIRROR_KERNELS=$kernels -DATTMIRROR_CUDA=$cuda -DATTMIRROR_CUDA_ARCHITECTURES=90 "$@"
}

stage_release() {
  if [[ $every_kernel -eq 1 ]]; then say "release: all tests on all instruction sets"; else say "release: all tests"; fi
  configure_release -DATTMIRROR_TESTS=ON -DATTMIRROR_EXAMPLES=ON -DATTMIRROR_DEEP=AUTO -DBUILD_SHARED_LIBS=OFF ||
    finish # nothing else can go well
  build build/release || finish
  if [[ $every_kernel -eq 1 ]]; then run_ctest build/release; else run_ctest build/release -LE thorough; fi
}

# built FOLDER PART: 1 where corpus or deep is switched on and has been built, else 0.
built() {
  local switch=ATTMIRROR_${2^^}
  if compgen -G "$1/lib/libattmirror_$2.*" >/dev/null && ! grep -q "^$switch:[A-Z]*=OFF" "$1/CMakeCache.txt"; then echo 1; else echo 0; fi
}

# consumer FOLDER OPTIONS...: what cmake --install leaves serves another project.
consumer() {
  local folder=$1 version
  shift
  version=$(sed -n 's/^project(attmirror VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  attempt "installing $folder, and using it" cmake -D BUILD_DIR="$PWD/$folder" -D WORK_DIR="$PWD/build/consumer" \
    -D CONSUMER_DIR="$PWD/tests/consumer" -D COMPILER=c++ -D VERSION="$version" "$@"
}

# The folder that stage release goes on with: what the quick start compiles is not compiled again.
stage_quickstart() {
  say "quickstart: the quick start, and its state installed"
  if [[ ! -f build/release/CMakeCache.txt ]]; then
    configure_release -DATTMIRROR_TESTS=OFF -DATTMIRROR_EXAMPLES=OFF -DATTMIRROR_CUDA=OFF -DATTMIRROR_DEEP=OFF || finish
  fi
  attempt "scripts/quickstart.sh" scripts/quickstart.sh || finish
  attempt "the quick start's page" test -s out/quickstart/report.html || true
  check_install
}

# What has been built is installed and used; what has not is left out and asked for in vain.
check_install() {
  consumer build/release -D DEEP="$(built build/release deep)" -D CORPUS="$(built build/release corpus)" \
    -P tests/house/consumer.cmake || true
}

stage_install() {
  say "install: everything, used from another project"
  check_install
}

# The objects of build/release serve the shared library, too: only links happen.
stage_packages() {
  say "packages: .deb and .tar.gz"
  configure_release -DBUILD_SHARED_LIBS=ON -DATTMIRROR_TESTS=OFF -DATTMIRROR_EXAMPLES=OFF -DATTMIRROR_CUDA=OFF \
    -DATTMIRROR_DEEP=OFF || return 0
  if build build/release --target attmirror_command; then
    consumer build/release -P tests/house/packages.cmake || true
  fi
  configure_release -DBUILD_SHARED_LIBS=OFF || return 0
}

# run_pytest PYTHON TESTS [OPTIONS...]: adds its counts to ours. What is tested is installed; the source tree stays as it is.
run_pytest() {
  local python=$1 log=build/pytest.log began=$SECONDS counts
  shift
  rm -f build/pytest.xml
  PYTHONDONTWRITEBYTECODE=1 MPLBACKEND=Agg "$python" -m pytest -q -p no:cacheprovider --durations 5 \
    --junitxml build/pytest.xml "$@" >"$log" 2>&1 </dev/null || true
  if ! counts=$(python3 -c 'import sys, xml.etree.ElementTree as xml
suite = next(xml.parse(sys.argv[1]).getroot().iter("testsuite"))
total, failures, errors, skipped = (int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped"))
print(total - failures - errors - skipped, failures + errors, skipped)' build/pytest.xml 2>/dev/null); then
    failed=$((failed + 1))
    tail -n 100 "$log"
    say "pytest FAILED"
    return 0
  fi
  read -r -a counts <<<"$counts"
  passed=$((passed + counts[0]))
  failed=$((failed + counts[1]))
  skipped=$((skipped + counts[2]))
  if [[ ${counts[1]} -gt 0 ]]; then tail -n 200 "$log"; fi
  echo "   ${counts[0]} passed, ${counts[1]} failed, ${counts[2]} skipped in $(duration $((SECONDS - began)))"
}

# The extension is one more target of build/release, so nothing of the library is compiled again. The wheel is otherwise
# that of `pip install .`, and its tests run in an environment that knows nothing of the source tree.
# attmirror.torch with Debian's PyTorch, which is of its own Python and of NumPy 1: the wheel in a folder of its own.
test_torch_optimizers() {
  if ! /usr/bin/python3 -c 'import pytest, torch' 2>/dev/null; then
    skip python "attmirror.torch: there is no python3-torch, or no python3-pytest"
    return 0
  fi
  rm -rf build/torch-package
  attempt "unpacking the wheel" python3 -m zipfile -e build/wheels/attmirror-*.whl build/torch-package || return 0
  PYTHONPATH=$PWD/build/torch-package run_pytest /usr/bin/python3 tests/torch
}

stage_python() {
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    skip python "there is no python3-venv"
    return 0
  fi
  say "python: the wheel, installed and tested"
  local began=$SECONDS python=$PWD/build/python-env/bin/python
  if [[ ! -f build/release/CMakeCache.txt ]]; then
    configure_release -DATTMIRROR_TESTS=OFF -DATTMIRROR_EXAMPLES=OFF -DATTMIRROR_DEEP=OFF -DBUILD_SHARED_LIBS=OFF || return 0
  fi
  attempt "building the wheel" scripts/python_wheel.sh || return 0
  attempt "installing the wheel" "$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall \
    build/wheels/attmirror-*.whl || return 0
  echo "   built and installed in $(duration $((SECONDS - began)))"
  run_pytest "$python" tests/python
  test_torch_optimizers
  attempt "the pages about Python" "$python" tests/docs/run_blocks.py shell --command build/release/bin/attmirror README.md docs/python.md \
    docs/tutorials/a-sweep.md || true
}

# The pages as a site, with the package of stage python; a broken link or a formula that cannot be typeset fails.
stage_docs() {
  if ! command -v doxygen >/dev/null || ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    skip docs "there is no doxygen, or no python3-venv"
    return 0
  fi
  say "docs: the site of the documentation"
  if attempt "scripts/docs.sh" scripts/docs.sh; then tail -n 1 build/test.log | sed 's/^/   /'; fi
}

# Sanitizers see as much with little optimization, which compiles in half the time. The command and the examples run in
# stage release, and so does what stands on LibTorch, which is not built with sanitizers.
sanitizer_options=(-DATTMIRROR_CLI=OFF -DATTMIRROR_EXAMPLES=OFF -DATTMIRROR_DEEP=OFF)

stage_asan() {
  say "asan: address and undefined-behaviour sanitizers"
  # The checks for undefined behavior take twice as long to compile at -O1 as at -Og; the tests, a quarter less.
  configure asan build/test-asan "${sanitizer_options[@]}" "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-Og -g1" || return 0
  build build/test-asan || return 0
  ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 run_ctest build/test-asan -LE 'isa|slow|house'
}

# Only the rooms that start threads. g++ 12's thread sanitizer cannot start where the kernel spreads addresses widely,
# so that is switched off for it where allowed.
stage_tsan() {
  say "tsan: thread sanitizer"
  local machine rooms=(base attention corpus descent margin mirror next_token sweep)
  machine=$(uname -m)
  if setarch "$machine" -R true 2>/dev/null; then wrapper=(setarch "$machine" -R); fi
  if configure tsan build/test-tsan "${sanitizer_options[@]}" "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" && build build/test-tsan --target "${rooms[@]/#/attmirror_test_}"; then
    TSAN_OPTIONS=halt_on_error=1 run_ctest build/test-tsan -L 'base|attention|deep|descent|margin|mirror|next_token|sweep' -LE 'isa|slow'
  fi
  wrapper=()
}

stage_fuzz() {
  local probe='extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
  if ! clang++ -x c++ - -fsanitize=fuzzer,address,undefined -o /dev/null <<<"$probe" >/dev/null 2>&1; then
    skip fuzz "there is no clang++ with libFuzzer"
    return 0
  fi
  say "fuzz: each parser for $fuzz_seconds seconds"
  configure fuzz build/fuzz "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" || return 0
  build build/fuzz --target attmirror_fuzzers || return 0
  mkdir -p build/fuzz/findings
  # As many at a time as there are cores.
  local format formats=(arrays database npy npz results safetensors sentences sweep text_set tokens trainer wordpiece)
  printf '%s\n' "${formats[@]}" | xargs -P "$jobs" -I {} bash -c '
    mkdir -p build/fuzz/new/{}
    "build/fuzz/bin/attmirror_fuzz_{}" -max_total_time="$0" -malloc_limit_mb=64 -verbosity=0 \
      -artifact_prefix="build/fuzz/findings/{}-" build/fuzz/new/{} tests/fuzz/corpus/{} >build/fuzz/{}.log 2>&1 </dev/null
    echo $? >build/fuzz/{}.status' "$fuzz_seconds"
  for format in "${formats[@]}"; do
    attempt "fuzzing $format (what broke it is in build/fuzz/findings)" \
      bash -c "cat build/fuzz/$format.log; exit \$(cat build/fuzz/$format.status)" || true
  done
}

stage_format() {
  local status=0
  scripts/format.sh --check >build/test.log 2>&1 </dev/null || status=$?
  if [[ $status -eq 4 ]]; then
    skip format "there is no clang-format 14"
    return 0
  fi
  say "format: the layout of the sources"
  if [[ $status -eq 0 ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    cat build/test.log
    say "the layout FAILED (scripts/format.sh fixes it)"
  fi
}

stage_separate() {
  say "separate: each source by itself, warnings as errors"
  configure dev build/test-separate -DATTMIRROR_CUDA=OFF || return 0
  build build/test-separate || return 0
}

# unpack_archive FOLDER: the committed state, as a release archive has it.
unpack_archive() {
  rm -rf "$1"
  mkdir -p "$1"
  git archive --format=tar HEAD | tar -x -C "$1"
}

stage_tarball() {
  say "tarball: the quick start without git and without a compiler cache"
  local folder
  folder=$(mktemp -d)/attmirror
  unpack_archive "$folder"
  if attempt "the quick start in an unpacked archive" env CCACHE_DISABLE=1 "$folder/scripts/quickstart.sh"; then
    tail -n 8 build/test.log
    attempt "its second call" "$folder/scripts/quickstart.sh" || true
    attempt "installing it" cmake --install "$folder/build/release" --prefix "$folder/installed" || true
    attempt "the installed command" "$folder/installed/bin/attmirror" --version || true
  fi
  rm -rf "${folder%/*}"
}

stage_clean_root() {
  if [[ $(id -u) -ne 0 ]] || ! command -v debootstrap >/dev/null; then
    skip clean_root "it takes root and debootstrap"
    return 0
  fi
  say "clean_root: the quick start in a new Debian root"
  local root mirror suite
  root=$(mktemp -d)
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  if attempt "debootstrap" debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror"; then
    cp -r /etc/apt/. "$root/etc/apt/"
    cp /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
    # What this machine trusts, for registries behind its own certificates.
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || true
    if [[ -f /etc/pip.conf ]]; then cp /etc/pip.conf "$root/etc/"; fi
    unpack_archive "$root/attmirror"
    mount --bind /proc "$root/proc"
    attempt "the quick start in a new root" chroot "$root" /attmirror/scripts/quickstart.sh && tail -n 8 build/test.log
    attempt "installing there" chroot "$root" cmake --install /attmirror/build/release || true
    attempt "the installed command" chroot "$root" attmirror --version || true
    umount "$root/proc"
  fi
  rm -rf "$root"
}

stage_newest() {
  say "newest: attmirror deep with the newest PyTorch from pip"
  local environment=build/newest-python prefix
  attempt "a virtual environment with PyTorch" bash -c \
    "python3 -m venv $environment && $environment/bin/pip install --quiet torch numpy" || return 0
  prefix=$("$environment/bin/python" -c 'import torch; print(torch.utils.cmake_prefix_path)')
  configure release build/test-newest "-DCMAKE_PREFIX_PATH=$prefix" -DATTMIRROR_DEEP=ON -DATTMIRROR_CUDA=OFF -DATTMIRROR_KERNELS=native \
    -DATTMIRROR_EXAMPLES=OFF || return 0
  build build/test-newest || return 0
  run_ctest build/test-newest -L 'deep|views'
}

stage_differential() {
  say "differential: max-margin problems against SciPy and Clarabel"
  local environment=build/differential-python
  attempt "a virtual environment with SciPy and Clarabel" bash -c \
    "python3 -m venv $environment && $environment/bin/pip install --quiet numpy scipy clarabel" || return 0
  configure_release || return 0
  build build/release --target attmirror_command || return 0
  if attempt "random problems in ten norms" "$environment/bin/python" tests/margin/differential.py build/release/bin/attmirror \
    --count 200 --seed "$RANDOM"; then
    tail -n 1 build/test.log
  fi
}

# The optimizers in Python with the newest PyTorch and JAX from pip, and a transformer of Hugging Face with one line changed.
stage_torch() {
  say "torch: attmirror.torch and attmirror.optax with the newest PyTorch and JAX from pip"
  local environment=build/torch-python python
  python=$environment/bin/python
  attempt "a virtual environment with PyTorch, transformers and JAX" bash -c "python3 -m venv $environment && $environment/bin/pip \
    install --quiet torch numpy pytest expecttest transformers accelerate 'jax[cpu]' optax mypy" || return 0
  if [[ ! -f build/release/CMakeCache.txt ]]; then
    configure_release -DATTMIRROR_TESTS=OFF -DATTMIRROR_EXAMPLES=OFF -DATTMIRROR_DEEP=OFF || return 0
  fi
  build build/release --target attmirror_step || return 0
  local settings=(env PYTHONPATH=python "ATTMIRROR_STEP_LIBRARIES=$PWD/build/release/python/attmirror")
  PYTHONPATH=$PWD/python ATTMIRROR_STEP_LIBRARIES=$PWD/build/release/python/attmirror run_pytest "$python" tests/torch
  # With the types of this PyTorch and of JAX. The other modules need what is not here; stage python checks the whole package.
  attempt "types" env MYPYPATH=python "$python" -m mypy --strict --follow-imports silent --config-file "" \
    --cache-dir build/torch-mypy python/attmirror/{torch,optax}.py python/attmirror/_torch_*.py python/attmirror/_step_*.py || true
  if cmake --build build/release --target help | grep -q attmirror_optimizer_cases; then
    build build/release --target attmirror_optimizer_cases || return 0
    attempt "cases by the optimizers in C++" build/release/bin/attmirror_optimizer_cases build/torch-cases || return 0
    local package
    for package in torch optax; do
      attempt "attmirror.$package against C++" "${settings[@]}" "$python" -B tests/torch/compare_with_cpp.py "$package" \
        build/torch-cases && tail -n 1 build/test.log
    done
  else
    skip torch "comparison with the optimizers in C++: build/release has no LibTorch, or no tests"
  fi
  if [[ -f ../shared/data/sst2/train.tsv ]]; then
    attempt "a transformer on SST-2" "${settings[@]}" "$python" tests/torch/train_transformer.py ../shared/data/sst2 \
      ../shared/tokenizer/bert-base-uncased-vocab.txt && tail -n 5 build/test.log
  else
    skip torch "a transformer on SST-2: there is no ../shared/data/sst2"
  fi
}

stage_long() {
  say "long: new and many more cases"
  local seed=$RANDOM$RANDOM
  echo "   property tests with seed=$seed max_success=2000"
  configure_release -DATTMIRROR_TESTS=ON -DATTMIRROR_EXAMPLES=ON "-DATTMIRROR_PROPERTY_CASES=seed=$seed max_success=2000" || return 0
  if build build/release; then ATTMIRROR_NIGHTLY=1 run_ctest build/release; fi
  configure_release "-DATTMIRROR_PROPERTY_CASES=seed=7" || return 0
  fuzz_seconds=600 stage_fuzz
}
