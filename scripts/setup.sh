#!/usr/bin/env bash
# setup.sh [--tests]: makes sure that the Debian packages are there that building attmirror (or its tests too) needs, and
# Plotly for the figures of reports (scripts/get_plotly.sh).
#
# Touches nothing, and needs no network, when all of them are installed. Otherwise installs what is missing: as root,
# or through sudo. Without either it names the packages and stops. ATTMIRROR_NO_SETUP=1 skips it altogether, for those
# who have the libraries from elsewhere.
set -euo pipefail

packages=(g++ cmake ninja-build libeigen3-dev libcli11-dev nlohmann-json3-dev libfmt-dev libzip-dev zlib1g-dev
  librandom123-dev libsqlite3-dev libtomlplusplus-dev libicu-dev liblzma-dev python3-pip)
if [[ ${1:-} == --tests ]]; then
  packages+=(libgtest-dev librapidcheck-dev libmpfr-dev libopenmpi-dev openmpi-bin
    chromium chromium-driver python3-selenium libtorch-dev libgloo-dev libopenblas0-openmp python3-torch)
elif [[ $# -gt 0 ]]; then
  echo "setup.sh: unknown argument $1 (usage: setup.sh [--tests])" >&2
  exit 2
fi

if [[ -n ${ATTMIRROR_NO_SETUP:-} ]]; then
  exit 0
fi
if ! command -v dpkg-query >/dev/null; then
  echo "setup.sh: this is no Debian system; going on in the hope that the equivalents of these packages are there:" >&2
  echo "  ${packages[*]}" >&2
  exec "$(dirname "${BASH_SOURCE[0]}")/get_plotly.sh"
fi

missing=()
for package in "${packages[@]}"; do
  if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
    missing+=("$package")
  fi
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exec "$(dirname "${BASH_SOURCE[0]}")/get_plotly.sh"
fi

if [[ $(id -u) -eq 0 ]]; then
  as_root=()
elif command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
  as_root=(sudo) # asks for a password only where there is somebody to type it
else
  echo "setup.sh: these packages are missing, and this is neither root nor can it use sudo. Please have installed:" >&2
  echo "  apt-get install ${missing[*]}" >&2
  exit 3
fi

echo "installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install_packages() {
  "${as_root[@]}" apt-get -q -y update </dev/null &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get -q -y install --no-install-recommends "${missing[@]}" </dev/null
}
if ! install_packages >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "setup.sh: apt-get could not install: ${missing[*]}" >&2
  exit 3
fi
"$(dirname "${BASH_SOURCE[0]}")/get_plotly.sh"
