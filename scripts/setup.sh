#!/usr/bin/env bash
# setup.sh [--networks|--docs|--tests]: installs the Debian packages that building attmirror needs (with --networks also those
# for `attmirror deep`, with --docs those for the site of the documentation, with --tests those for the tests), and Plotly for
# the figures in reports (scripts/get_plotly.sh).
#
# If everything is installed already, it changes nothing and needs no network. Otherwise it installs what is missing, as root
# or through sudo; without either, it names the packages and stops. If you have the libraries from elsewhere, set
# ATTMIRROR_NO_SETUP=1 to skip this script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/progress.sh

packages=(g++ cmake ninja-build libeigen3-dev libcli11-dev nlohmann-json3-dev libfmt-dev libzip-dev zlib1g-dev
  librandom123-dev libsqlite3-dev libtomlplusplus-dev libicu-dev liblzma-dev python3-pip)
network_packages=(libtorch-dev libgloo-dev libopenblas0-openmp)
docs_packages=(doxygen python3-venv python3-dev)
test_packages=(libgtest-dev librapidcheck-dev libmpfr-dev libopenmpi-dev openmpi-bin chromium chromium-driver
  python3-selenium python3-torch clang libclang-rt-dev man-db zsh fish sqlite3 python3-numpy python3-pytest strace)
# The layout of the sources is that of clang-format 14, which only Debian 12 has.
if grep -q '^VERSION_ID="12"' /etc/os-release 2>/dev/null; then test_packages+=(clang-format-14); fi
case ${1:-} in
  "") ;;
  --networks) packages+=("${network_packages[@]}") ;;
  --docs) packages+=("${docs_packages[@]}") ;;
  --tests) packages+=("${network_packages[@]}" "${docs_packages[@]}" "${test_packages[@]}") ;;
  -h | --help)
    help_of scripts/setup.sh
    exit 0
    ;;
  *)
    echo "setup.sh: unknown argument $1 (usage: setup.sh [--networks|--docs|--tests])" >&2
    exit 2
    ;;
esac

if [[ -n ${ATTMIRROR_NO_SETUP:-} ]]; then
  exit 0
fi
if ! command -v dpkg-query >/dev/null; then
  echo "setup.sh: not a Debian system; continuing on the assumption that the equivalents of these packages are installed:" >&2
  echo "  ${packages[*]}" >&2
  exec scripts/get_plotly.sh
fi

installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null | sed -n 's/ installed$//p' || true)
missing=()
for package in "${packages[@]}"; do
  if ! grep -qxF "$package" <<<"$installed"; then missing+=("$package"); fi
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exec scripts/get_plotly.sh
fi

if [[ $(id -u) -eq 0 ]]; then
  as_root=()
elif command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
  as_root=(sudo) # asks for a password only where there is somebody to type it
  sudo -v
else
  echo "setup.sh: these packages are missing, and installing them requires root or sudo. Please run as root:" >&2
  echo "  apt-get install ${missing[*]}" >&2
  exit 3
fi

echo "installing ${missing[*]}"
need_folder build
log=build/setup.log
install_packages() {
  "${as_root[@]}" apt-get -q -y update || return 1
  # File descriptor 3 carries apt's own progress; sudo would close it, so the file is opened behind it.
  "${as_root[@]}" bash -c 'exec 3>"$1.status"; shift
      DEBIAN_FRONTEND=noninteractive exec apt-get -q -y install --no-install-recommends -o APT::Status-Fd=3 "$@"' \
    setup "$log" "${missing[@]}"
}
apt_progress "installing packages" "$log" install_packages || exit 3
scripts/get_plotly.sh
