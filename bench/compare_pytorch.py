#!/usr/bin/env python3
"""attmirror compared with PyTorch, in one run: microseconds per training step and their ratio.

    python3 bench/compare_pytorch.py build/release/bin/attmirror [--rounds 5] [--json]

Machines are noisy, so the programs take turns: in each round every loop of bench/pytorch_loop.py runs once and
attmirror runs once, per geometry; medians over the rounds are compared. One core, double precision, the papers' size
(n = 6, T = 8, d = 10), normalized l_p mirror descent. Exit 3: no torch.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import pytorch_loop as loops
import torch

EXPONENTS = (1.1, 1.75, 2.0, 3.0)
PYTORCH_STEPS = 1000
OUR_STEPS = 100_000


def attmirror_us(binary, data, p, eps):
    """Microseconds per step as `attmirror train` reports them: the loop alone, without start-up and files."""
    command = [binary, "train", data, "--p", str(p), "--steps", str(OUR_STEPS), "--lr", "0.1", "--normalized",
               "--eps", eps, "--record", "none", "--threads", "1", "--init", "normal:1", "--json", "--quiet"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result["seconds"] / result["steps"] * 1e6


def pytorch_us(run, problem, p):
    start = time.perf_counter()
    run(*problem, p, 0.1, PYTORCH_STEPS)
    return (time.perf_counter() - start) / PYTORCH_STEPS * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the command attmirror")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    torch.set_num_threads(1)
    problem = loops.draw(6, 8, 10, 1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "data.npz")
        subprocess.run([options.binary, "generate", "--seed", "1", "-o", data, "--quiet"], check=True)
        for p in EXPONENTS:
            contestants = {
                "autograd": lambda: pytorch_us(loops.run_autograd, problem, p),
                "closed form": lambda: pytorch_us(loops.run_closed_form, problem, p),
                "attmirror exact": lambda: attmirror_us(options.binary, data, p, "exact"),
                "attmirror paper": lambda: attmirror_us(options.binary, data, p, "paper"),
            }
            times = {name: [] for name in contestants}
            for measured in range(options.rounds + 1):
                for name, run in contestants.items():
                    value = run()
                    if measured:  # the first round warms up
                        times[name].append(value)
            rows.append({"p": p, **{name: statistics.median(values) for name, values in times.items()}})

    if options.json:
        print(json.dumps({"torch": torch.__version__, "rounds": options.rounds, "us_per_step": rows}))
        return
    print(f"microseconds per step, n=6 T=8 d=10, one core, median of {options.rounds} rounds; PyTorch {torch.__version__}")
    print("|    p | PyTorch autograd | PyTorch closed form | attmirror exact | attmirror paper | autograd / paper |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        print(f"| {row['p']:4g} | {row['autograd']:.1f} | {row['closed form']:.1f} | {row['attmirror exact']:.3f} | "
              f"{row['attmirror paper']:.3f} | {row['autograd'] / row['attmirror paper']:.0f}x |")


if __name__ == "__main__":
    main()
