#!/usr/bin/env python3
"""P1's aggregate study by attmirror and by the loop that researchers write in PyTorch, in one run.

    python3 bench/compare_study.py build/bench/bin/attmirror_bench_study [--rounds 3] [--steps 300]

The study is 100 seeds x p = 1.75, 2, 3 with 1,500, 2,000 and 20,000 steps, 300 max-margin problems and 3 x 3 divergences.
attmirror does all of it. PyTorch is timed per step (autograd, one core, as published code runs it) and extrapolated to the
training alone, taking turns with attmirror. Exit 3: no torch.
"""

import argparse
import json
import statistics
import subprocess
import time

import pytorch_loop as loops
import torch

STEPS = {1.75: 1500, 2.0: 2000, 3.0: 20000}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the program attmirror_bench_study")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300, help="steps of PyTorch per round and p")
    options = parser.parse_args()
    torch.set_num_threads(1)
    problem = loops.draw(6, 8, 10, 1)
    times = {p: [] for p in STEPS}
    studies = []
    for measured in range(options.rounds + 1):
        for p in STEPS:
            start = time.perf_counter()
            loops.run_autograd(*problem, p, 0.1, options.steps)
            if measured:  # the first round warms up
                times[p].append((time.perf_counter() - start) / options.steps)
        answer = subprocess.run([options.binary, "--rounds", "1", "--json"], check=True, capture_output=True, text=True)
        if measured:
            studies.append(json.loads(answer.stdout))
    per_step = {p: statistics.median(values) for p, values in times.items()}
    torch_seconds = sum(100 * STEPS[p] * per_step[p] for p in STEPS)
    whole = statistics.median(study["study_seconds"] for study in studies)
    alone = statistics.median(study["study_seconds_one_thread"] for study in studies)
    print(f"PyTorch {torch.__version__}, one core: " + ", ".join(f"p = {p:g} {1e6 * t:.0f} us" for p, t in per_step.items())
          + f" a step; the trainings of the study: {torch_seconds:.0f} s")
    print(f"attmirror, the whole study: {whole:.3f} s on {studies[0]['threads']} threads ({torch_seconds / whole:.0f} times "
          f"as fast), {alone:.3f} s on one ({torch_seconds / alone:.0f} times)")


if __name__ == "__main__":
    main()
