#!/usr/bin/env python3
"""attmirror compared with general solvers on max-margin problems, in one run: seconds, gaps and ratios.

    python3 -m venv build/solvers && build/solvers/bin/pip install -r bench/margin/requirements.txt
    build/solvers/bin/python bench/margin/compare.py build/release/bin/attmirror
                             [--cases n=6] [--solvers SciPy] [--limit 90] [--verifier attmirror|numpy] [--json]

Data are those of `attmirror generate --seed 1`; each query selects its token of highest score. All run on one core, each
solve in a process of its own that is ended after --limit seconds. The time is that of the solve: without start-up, files
and imports, but with everything that the solver's user waits for (for cvxpy that includes the translation into cones; the
time inside the solver is in parentheses). Theirs is processor time, ours is wall time: the same on an idle machine, and on a
busy one in their favor. Competitors have a first solve to warm up; the first line says whether attmirror has. No solver is believed: each W is scaled until it satisfies the constraints, and
`attmirror margin --check` measures the gap of W and lambda from the data. There is one adapter file per competitor, next to this
one; those that cannot be imported are skipped and named.
"""

import argparse
import importlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from problem import Norm, attention_problem, measure

HERE = Path(__file__).resolve().parent
ADAPTERS = ("scipy_dual", "scipy_lp", "cvxopt_solver", "cvxpy_solver")
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")}
NORMS = ("1.1", "1.75", "2", "3", "nuclear", "spectral", "1", "inf")


class Size(NamedTuple):
    n: int
    T: int
    d: int

    def __str__(self):
        return f"n={self.n} T={self.T} d={self.d}"


SIZES = (Size(6, 8, 10), Size(50, 16, 64))


class Case(NamedTuple):
    size: Size
    norm: str
    data: Path
    alpha: Path

    def __str__(self):
        return f"{self.size}, {self.norm if self.norm.isalpha() and self.norm != 'inf' else 'p=' + self.norm}"


def make_data(binary, size, folder):
    data, chosen = folder / f"{size}.npz", folder / f"{size}.npy"
    subprocess.run([binary, "generate", "--samples", str(size.n), "--tokens", str(size.T), "--dim", str(size.d),
                    "--seed", "1", "-o", data, "--quiet"], check=True)
    arrays = np.load(data)
    np.save(chosen, np.argmax(arrays["Y"][:, None] * (arrays["X"] @ arrays["v"]), axis=1).astype(np.int64))
    return data, chosen


def margin(binary, case, *options):
    """What `attmirror margin` says about a case. It exits 1 when a gap is not reached, which is an answer too."""
    command = [binary, "margin", case.data, "--norm", case.norm, "--select", f"file:{case.alpha}", "--threads", "1",
               "--json", "--quiet", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"compare: {' '.join(map(str, command))} failed: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def gap_by_attmirror(binary, case, answer):
    return margin(binary, case, "--check", answer)["gap"]


def gap_by_numpy(_binary, case, answer):
    stored = np.load(answer)
    problem, _ = attention_problem(np.load(case.data), stored["alpha"], Norm(case.norm))
    return measure(problem, stored["W"], stored["lambda"])[2]


VERIFIERS = {"attmirror": gap_by_attmirror, "numpy": gap_by_numpy}


def warm_options(binary):
    """Solves again within the process, as the competitors do, where the command offers it."""
    said = subprocess.run([binary, "margin", "--help"], check=True, capture_output=True, text=True).stdout
    return ["--repeat", "20"] if "--repeat" in said else []


def our_row(binary, case, gap_of, folder, warm):
    answer = folder / "ours.npz"
    answers = [margin(binary, case, "-o", answer, *warm) for _ in range(5)]
    return {"solver": "attmirror", "seconds": statistics.median(a["seconds"] for a in answers), "inside": None,
            "gap": gap_of(binary, case, answer), "note": answers[0]["status"]}


def their_row(binary, case, module, name, gap_of, folder, limit):
    answer = folder / "theirs.npz"
    answer.unlink(missing_ok=True)
    row = {"solver": name, "seconds": None, "inside": None, "gap": None, "note": ""}
    try:
        done = subprocess.run([sys.executable, HERE / "solve_one.py", module, name, case.data, case.alpha, case.norm, answer,
                               str(limit)], capture_output=True, text=True, timeout=10 * (limit + 5),
                              env=os.environ | ONE_THREAD)
    except subprocess.TimeoutExpired:
        return row | {"note": f"not within {limit:g} s"}
    if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return row | {"note": f"not within {limit:g} s"}
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return row | {"note": f"exit {done.returncode}" + (f": {said[-1]}" if said else "")}
    said = json.loads(done.stdout.strip().splitlines()[-1])
    if "unsupported" in said:
        return None
    if "failed" in said:
        return row | {"note": said["failed"]}
    return row | said | {"gap": gap_of(binary, case, answer)}


def adapters():
    """(module, solver) of all that can be imported."""
    found = []
    for module in ADAPTERS:
        try:
            found += [(module, name) for name in importlib.import_module(module).SOLVERS]
        except ImportError as error:
            print(f"compare: without {module}: {error}", file=sys.stderr)
    return found


def in_units(seconds):
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def table_line(case, row, ours):
    if row["seconds"] is None:
        return f"| {case} | {row['solver']} | – | – | – | {row['note']} |"
    inside = f" ({in_units(row['inside'])})" if row["inside"] else ""
    ratio = f"{row['seconds'] / ours['seconds']:.3g}×" if ours and row is not ours else ""
    return f"| {case} | {row['solver']} | {in_units(row['seconds'])}{inside} | {row['gap']:.1e} | {ratio} | {row['note']} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the command attmirror")
    parser.add_argument("--cases", default="", help="only those whose name contains this, like 'n=6' or 'p=1.1'")
    parser.add_argument("--solvers", default="", help="only competitors whose name contains this")
    parser.add_argument("--limit", type=float, default=90, help="seconds that one solve may take")
    parser.add_argument("--verifier", choices=VERIFIERS, default="attmirror")
    parser.add_argument("--without-attmirror", action="store_true", help="the competitors alone")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, in place of the table")
    options = parser.parse_args()
    gap_of = VERIFIERS[options.verifier]
    found = [(module, name) for module, name in adapters() if options.solvers.lower() in name.lower()]
    warm = [] if options.without_attmirror else warm_options(options.binary)
    rows = []
    if not options.json:
        print(f"one core; gaps measured by {options.verifier}; ratios to attmirror's time, which is that of "
              f"{'repeated solves' if warm else 'the first solve of a process'}")
        print("| case | solver | time (inside the solver) | gap | ratio | |\n| --- | --- | ---: | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in SIZES:
            cases = [Case(size, norm, *make_data(options.binary, size, folder)) for norm in NORMS]
            for case in (case for case in cases if options.cases in str(case)):
                ours = None if options.without_attmirror else our_row(options.binary, case, gap_of, folder, warm)
                theirs = (their_row(options.binary, case, *who, gap_of, folder, options.limit) for who in found)
                for row in filter(None, itertools.chain([ours], theirs)):
                    rows.append({"case": str(case)} | row)
                    if not options.json:
                        print(table_line(case, row, ours), flush=True)
    if options.json:
        print(json.dumps({"verifier": options.verifier, "limit": options.limit, "rows": rows}))


if __name__ == "__main__":
    main()
