#!/usr/bin/env python3
"""One competitor on one problem, in a process of its own that the driver can end: compare.py calls it.

    solve_one.py MODULE SOLVER data.npz alpha.npy NORM answer.npz LIMIT

One core, which the system takes away after LIMIT seconds of work (and a few for the imports). Prints {"seconds", "inside"} (the mean of up to twenty solves after a first one, as many as fit in a second: the clock of
processor time may tick in milliseconds) or {"unsupported"} or {"failed"} with the reason.
"""

import importlib
import json
import os
import resource
import statistics
import sys

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np  # noqa: E402

from problem import Failed, Norm, Unsupported, attention_problem, made_feasible  # noqa: E402


def main():
    module, name, data, alpha, norm, output, limit = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(float(limit)) + 5,) * 2)
    alpha = np.load(alpha)
    problem, origins = attention_problem(np.load(data), alpha, Norm(norm))
    try:
        solve = importlib.import_module(module).SOLVERS[name]
        answers = [solve(problem)]
        while len(answers) < 21 and sum(answer.seconds for answer in answers) < 1:
            answers.append(solve(problem))
        W = made_feasible(problem, answers[-1].W)
    except (Unsupported, Failed) as error:
        print(json.dumps({type(error).__name__.lower(): str(error)}))
        return
    np.savez(output, **{"W": W, "lambda": answers[-1].multipliers, "constraints": origins, "alpha": alpha})
    measured = answers[1:] or answers
    inside = [answer.inside for answer in measured if answer.inside is not None]
    print(json.dumps({"seconds": statistics.fmean(answer.seconds for answer in measured),
                      "inside": statistics.fmean(inside) if inside else None}))


if __name__ == "__main__":
    main()
