#!/usr/bin/env python3
"""compare_builds.py OLD NEW [--rounds N] [--only NAME,...]: is one build as fast as another?

OLD and NEW are folders of benchmark programs (build/bench/bin of two checkouts). Each round runs each program of both, one after
the other and in alternating order, so that other load on the machine affects both. A row of a program's table is a case; its ratio is
the median over rounds of new time / old time. For each program it prints the number of cases, the median ratio over cases, and the
largest with its case. Exit code 1 if a median ratio is above --limit (1.05).
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys

# Program, arguments that keep a run to seconds, and the column that has the time (after the name of the case).
PROGRAMS = {
    "descent": (["--benchmark_filter=PaperSize", "--benchmark_min_time=0.05"], r"^(\S*PaperSize\S+) +(?P<time>[\d.]+) ns"),
    "sweep": (["--steps", "500"], r"^ +(?P<case>[\d.]+) +(?P<time>[\d.]+) +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+%"),
    "margin": (["--only", "sizes", "--seeds", "3"], r"^\| (?P<case>\d+ \| \d+ \| \d+ \| [\w:.]+) \| (?P<time>[\d.]+) \|"),
    "large": ([], r"^\| (?P<case>\d+ \| \d+ \| \d+ \| \d) \| [\d.e-]+ \| (?P<time>[\d.e-]+) \("),
    "optimizer": (["--parameters", "4194304", "--tensors", "4", "--repeats", "9"],
                  r"^(?P<case>(?:bf16: )?ours.*?) {2,}[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +(?P<time>[\d.]+)$"),
    "step": (["4194304"], r"^(?P<case>(?:float|bfloat|half|double)\S* .*?) {2,}(?P<time>[\d.]+) +ns"),
}


def times(program, arguments, pattern):
    """Case to time, in the program's own unit."""
    text = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    return {match[1]: float(match["time"]) for match in re.finditer(pattern, text, re.MULTILINE)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit", type=float, default=1.05)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    arguments = parser.parse_args()
    too_slow = False
    print("program    cases  median ratio  largest")
    for name in arguments.only.split(","):
        options, pattern = PROGRAMS[name]
        ratios = {}
        for turn in range(arguments.rounds):
            measured = {}
            for folder in (arguments.old, arguments.new)[::1 if turn % 2 else -1]:
                measured[folder] = times(folder / f"attmirror_bench_{name}", options, pattern)
            for case, before in measured[arguments.old].items():
                if before > 0 and case in measured[arguments.new]:
                    ratios.setdefault(case, []).append(measured[arguments.new][case] / before)
        if not ratios:
            sys.exit(f"compare_builds.py: {name} printed no times that this script understands")
        medians = {case: statistics.median(values) for case, values in ratios.items()}
        worst = max(medians, key=medians.get)
        median = statistics.median(medians.values())
        too_slow |= median > arguments.limit
        print(f"{name:<10} {len(medians):5d}  {median:12.3f}  {medians[worst]:.3f} ({worst})", flush=True)
    return 1 if too_slow else 0


sys.exit(main())
