#!/usr/bin/env bash
# completions.sh ATTMIRROR: asks bash, zsh and fish what they offer after the Tab key, with the scripts of
# `ATTMIRROR completion`. A shell that is not installed is skipped, and that is said.
set -euo pipefail
if [[ $# -ne 1 || ! -x $1 ]]; then
  echo "usage: completions.sh ATTMIRROR" >&2
  exit 2
fi
attmirror=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# Files to complete; the second has a space in its name.
mkdir bin zebra scripts
ln -s "$attmirror" bin/attmirror
touch zoo.npz "zoo animals.npz"
for shell in bash zsh fish; do "$attmirror" completion "$shell" >"scripts/$shell"; done

failed=0
passed=0
asks= # the function that prints what a shell offers for a command line, one word a line

# offers LINE WORDS...: all WORDS are offered, and those after "not:" are not.
offers() {
  local line=$1 offered word expected=yes
  shift
  offered=$("$asks" "$line" 2>&1) || true
  for word in "$@"; do
    if [[ $word == not: ]]; then
      expected=no
    elif { grep -qxF -e "$word" <<<"$offered" && [[ $expected == yes ]]; } ||
      { ! grep -qxF -e "$word" <<<"$offered" && [[ $expected == no ]]; }; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      printf '%s: "%s" should%s offer %s, but offers:\n%s\n' "$asks" "$line" "$([[ $expected == no ]] && echo ' not')" \
        "$word" "$offered"
    fi
  done
}

# What all three shells must know.
questions() {
  offers 'attmirror tr' train not: path
  offers 'attmirror ' generate deep completion
  offers 'attmirror train --p' --p --params not: --steps train
  offers 'attmirror margin --norm ' nuclear spectral inf not: NUMBER --norm
  offers 'attmirror margin --norm nu' nuclear not: spectral
  offers 'attmirror train --optimizer s' sign spectral not: adam
  offers 'attmirror reproduce a' all not: EXPERIMENT
  offers 'attmirror generate -o zo' zoo.npz not: train
  offers 'attmirror info zo' zoo.npz 'zoo animals.npz'
  offers 'attmirror completion z' zsh not: zoo.npz
  # deep has subcommands of its own, some of them with the names of others.
  offers 'attmirror deep t' train tokenize not: zoo.npz
  offers 'attmirror deep train zo' zoo.npz not: train
  offers 'attmirror deep train --p' not: --params
  offers 'attmirror --json tr' train
}

# Readline's part is done by hand: words are separated at blanks, colons and equals signs.
in_bash() {
  bash --norc -c '
    source scripts/bash
    line=${1//:/ : } line=${line//=/ = }
    read -ra COMP_WORDS <<<"$line"
    if [[ "$1" == *" " ]]; then COMP_WORDS+=(""); fi
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _attmirror
    printf "%s\n" "${COMPREPLY[@]}"' bash "$1"
}

# The widget of an interactive zsh; what it is about to show is written to a file.
in_zsh() { zsh_answer "source scripts/zsh" "$1"; }
in_zsh_autoloaded() { zsh_answer "true" "$1"; }
zsh_answer() {
  rm -f answer answer.done
  cat >driver.zsh <<'ZSH'
zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner "source setup.zsh"
for (( i = 0; i < 300; i++ )); do [[ -e ready ]] && break; sleep 0.02; done
zpty -w -n inner "$1"$'\t'
for (( i = 0; i < 300; i++ )); do [[ -e answer.done ]] && break; sleep 0.02; done
zpty -d inner
ZSH
  cat >setup.zsh <<ZSH
fpath=($folder/site \$fpath)
autoload -Uz compinit
compinit -u -d $folder/zcompdump
$1
ZSH
  cat >>setup.zsh <<'ZSH'
compadd() {
  # Calls that only look for matches (-A, -O, -D) are not shown.
  local -a shown
  if [[ ${@[(r)-[AOD]]} == -[AOD] ]]; then builtin compadd "$@"; return; fi
  builtin compadd -A shown "$@"
  (( $#shown )) && print -rl -- "${shown[@]}" >> answer
  builtin compadd "$@"
}
finish() { touch answer.done }
comppostfuncs=(finish)
touch ready
ZSH
  rm -f ready
  timeout 20 zsh -f driver.zsh "$2" >/dev/null
  # Blanks are quoted as they would be on the command line.
  if [[ -e answer ]]; then sed 's/\\ / /g' answer; fi
}

# Descriptions follow a tab, and folders end in a slash.
in_fish() { fish --no-config -c 'source scripts/fish; complete -C "$argv[1]"' "$1" | cut -f1; }
in_fish_autoloaded() { # fish asks only for commands that there are
  PATH="$folder/bin:$PATH" fish --no-config -c 'set -p fish_complete_path $PWD/site; complete -C "$argv[1]"' "$1" | cut -f1
}

asks=in_bash
questions
offers 'attmirror margin --select r' run:
offers 'attmirror margin --select run:zeb' zebra
offers 'attmirror train --norm=nu' nuclear

mkdir site
if command -v zsh >/dev/null; then
  asks=in_zsh
  questions
  offers 'attmirror margin --select r' run:
  offers 'attmirror margin --select run:zeb' zebra
  # As a file on the search path, which is how it is installed.
  cp scripts/zsh site/_attmirror
  asks=in_zsh_autoloaded
  offers 'attmirror tr' train not: path
else
  echo "skipped: zsh is not installed"
fi

if command -v fish >/dev/null; then
  asks=in_fish
  questions
  cp scripts/fish site/attmirror.fish
  asks=in_fish_autoloaded
  offers 'attmirror tr' train not: path
else
  echo "skipped: fish is not installed"
fi

echo "completions: $passed passed, $failed failed"
[[ $failed -eq 0 ]]
