"""A study in ten lines: a hundred trainings and their max-margin problems, as a pandas frame.

    python examples/python/sweep_to_frame.py [FIGURE.pdf]
"""

import sys

import attmirror as am

results = am.sweep({
    "data": {"samples": 6, "tokens": 8, "dim": 10},
    "train": {"normalized": True, "steps": 1500},
    "grid": {"seed": range(1, 26), "p": [1.5, 1.75, 2, 3]},
    "record": {"solutions": ["own"]},
})
frame = results.frame()
print(frame.groupby("p")[["final_loss", "own.bregman", "own.correlation"]].mean())

if len(sys.argv) > 1:
    results.plot(x="p", y="own.bregman").savefig(sys.argv[1])
