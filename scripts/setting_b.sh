#!/usr/bin/env bash
# setting_b.sh ATTMIRROR FOLDER: trains the three runs of Setting B from arXiv 2410.14581 with the command ATTMIRROR, and
# solves the max-margin problem for the tokens that each of them selects.
#
# It writes data.npz, the run folders p1.75, p2 and p3, and svm_p1.75.npz, svm_p2.npz and svm_p3.npz into FOLDER, and prints
# each command that it runs.
set -euo pipefail

attmirror=$1
folder=$2
mkdir -p "$folder"

run() {
  printf '$ attmirror'
  printf ' %s' "$@"
  printf '\n'
  "$attmirror" "$@" >/dev/null
}

run generate --samples 6 --tokens 8 --dim 10 --seed 1 -o "$folder/data.npz" --quiet
for setting in 1.75:1500 2:2000 3:20000; do
  p=${setting%:*}
  run train "$folder/data.npz" --p "$p" --steps "${setting#*:}" --lr 0.1 --normalized --eps paper --jacobian safe \
    -o "$folder/p$p" --overwrite --quiet
done
for p in 1.75 2 3; do
  run margin "$folder/data.npz" --select "run:$folder/p$p" -o "$folder/svm_p$p.npz" --quiet
done
