#!/usr/bin/env bash
# docs.sh [FOLDER]: builds the documentation as a site, in FOLDER (default: build/docs/site). Open FOLDER/index.html: it needs
# no server and no network.
#
# The first call installs what is missing on Debian (Doxygen; as root or through sudo), fetches Sphinx and its extensions into
# build/docs/python-env (docs/requirements.txt has the versions), and compiles the Python package, whose reference and notebooks
# are part of the site. That takes some minutes where nothing has been compiled yet. Later calls need no network and compile
# only what has changed. Exit 0: the site is there; 1: a page has a mistake, such as a broken link, and the site is left as it was.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/progress.sh

case ${1:-} in
  -h | --help)
    help_of scripts/docs.sh
    exit 0
    ;;
  -*)
    echo "docs.sh: unknown argument $1 (usage: docs.sh [FOLDER])" >&2
    exit 2
    ;;
esac
if [[ $# -gt 1 ]]; then
  echo "docs.sh: $# arguments are given: expected one folder at most" >&2
  exit 2
fi
site=${1:-build/docs/site}
if [[ -e $site && ! -f $site/.attmirror-site && -n $(ls -A "$site" 2>/dev/null) ]]; then
  echo "docs.sh: $site has files that are not an earlier site: name a folder that is empty or does not exist" >&2
  exit 2
fi

need_folder build/docs
began=$SECONDS
scripts/setup.sh --docs

environment=$PWD/build/docs/python-env
python=$environment/bin/python
if ! cmp -s docs/requirements.txt "$environment/requirements.txt"; then
  make_environment() {
    python3 -m venv "$environment" &&
      "$python" -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt &&
      cp docs/requirements.txt "$environment/requirements.txt"
  }
  with_progress "installing Sphinx" build/docs/environment.log make_environment
fi

# The package brings the command along, too.
wheel=$(compgen -G 'build/wheels/attmirror-*.whl' | head -n 1 || true)
if [[ -z $wheel || -n $(find python src include cmake CMakeLists.txt pyproject.toml -newer "$wheel" -type f -print -quit) ]]; then
  build_progress "compiling the Python package" build/docs/package.log scripts/python_wheel.sh
  wheel=$(compgen -G 'build/wheels/attmirror-*.whl' | head -n 1)
fi
if [[ ! -f $environment/package || $wheel -nt $environment/package ]]; then
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall "$wheel"
  touch "$environment/package"
fi

# The papers' experiments in small, for their figures. 1 says that some numbers differ, and the page which.
reproduction=build/docs/reproduction
if [[ ! -f $reproduction/report.html || $environment/package -nt $reproduction/report.html ]]; then
  reproduce() {
    local status=0
    rm -rf "$reproduction"
    "$environment/bin/attmirror" reproduce all --quick --quiet -o "$reproduction" || status=$?
    [[ $status -le 1 ]]
  }
  with_progress "running the experiments in small" build/docs/reproduction.log reproduce
fi

make_site() {
  rm -rf build/docs/doxygen build/docs/html
  mkdir -p build/docs/doxygen
  { cat docs/site/Doxyfile; echo "OUTPUT_DIRECTORY = build/docs/doxygen"; echo "WARN_AS_ERROR = FAIL_ON_WARNINGS"; } | doxygen - || return 1
  "$python" -B docs/site/stage.py --source . --out build/docs/pages --doxygen build/docs/doxygen/xml --reproduction "$reproduction" || return 1
  ATTMIRROR_DOXYGEN_XML=$PWD/build/docs/doxygen/xml "$python" -B -m sphinx -W --keep-going -q -E -j auto -c docs/site \
    -d build/docs/doctrees -b html build/docs/pages build/docs/html || return 1
  # Nothing may be loaded from elsewhere.
  if grep -rnoE '(<script[^>]* src|<link[^>]* href|<img[^>]* src|@import|url\()[= ]*["'"'"']?https?://[^"'"'"' )>]+' build/docs/html --include='*.html' --include='*.css' |
    grep -v 'rel="canonical"'; then
    echo "docs.sh: these files are loaded from the network" >&2
    return 1
  fi
  cp "$reproduction/report.html" build/docs/html/reproduce-quick.html
  touch build/docs/html/.attmirror-site
}
with_progress "building the site" build/docs/site.log make_site
rm -rf "$site"
mkdir -p "$(dirname "$site")"
cp -r build/docs/html "$site"
echo "$site/index.html: $(find "$site" -name '*.html' | wc -l) pages, $(du -sm "$site" | cut -f 1) MB, built in $(duration $((SECONDS - began)))"
