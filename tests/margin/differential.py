#!/usr/bin/env python3
"""Random max-margin problems against solvers of other people, in every norm.

    differential.py COMMAND [--count N] [--seed S]

COMMAND is the program attmirror. Each problem is written to an .npz file, solved by `attmirror margin --json`, and

  1. its norm is compared with that of an independent solver: linear programs by SciPy's HiGHS (l_1, l_inf, and whether
     there is a solution at all), second-order, power and semidefinite cones by Clarabel (l_2, l_p, nuclear, spectral),
     and SciPy's SLSQP for Schatten norms, which no cone of Clarabel expresses;
  2. its certificate is checked from the two files alone, in NumPy's long doubles (singular values in doubles).

Prints how many were solved, agreed and disagreed, and ends with 1 if any disagreed. Needs numpy, scipy and clarabel.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import clarabel
import numpy as np
import scipy.optimize
import scipy.sparse

NORMS = ["1", "1.1", "1.5", "2", "3", "10", "inf", "nuclear", "spectral", "schatten:1.5"]

# How far two solvers may differ, relative: what the other one promises.
TOLERANCE = {"nuclear": 2e-6, "spectral": 2e-6, "schatten:1.5": 2e-5}
DEFAULT_TOLERANCE = 1e-6


def random_problem(rng):
    """Tokens, queries, labels and a selection; now and then one that has no solution."""
    n, tokens, d = rng.integers(1, 5), rng.integers(2, 6), rng.integers(1, 5)
    X, Z = rng.normal(size=(n, tokens, d)), rng.normal(size=(n, d))
    kind = rng.integers(0, 4)
    if kind == 1:
        X /= np.linalg.norm(X, axis=2, keepdims=True)
    if kind == 2:
        X *= 10.0 ** rng.integers(-3, 4)
    if kind == 3 and n > 1:
        Z[1] = Z[0]  # one query asked twice
    return {"X": X, "Z": Z, "Y": rng.choice([-1.0, 1.0], size=n)}, rng.integers(0, tokens, size=n)


def constraint_rows(data, selected):
    """The matrices a z^T, flattened, of all constraints <A, W> >= 1."""
    rows = []
    for i, alpha in enumerate(selected):
        for t in range(data["X"].shape[1]):
            if t != alpha:
                rows.append(np.outer(data["X"][i, alpha] - data["X"][i, t], data["Z"][i]).ravel())
    return np.array(rows)


# ---- the other solvers: the smallest norm


def by_linear_program(A, p):
    m, size = A.shape
    if p == 1:  # W = w+ - w-
        answer = scipy.optimize.linprog(np.ones(2 * size), A_ub=np.hstack([-A, A]), b_ub=-np.ones(m))
    else:  # |W| <= t
        eye = np.eye(size)
        A_ub = np.vstack([np.hstack([-A, np.zeros((m, 1))]), np.hstack([eye, -np.ones((size, 1))]),
                          np.hstack([-eye, -np.ones((size, 1))])])
        answer = scipy.optimize.linprog(np.append(np.zeros(size), 1), A_ub=A_ub,
                                        b_ub=np.concatenate([-np.ones(m), np.zeros(2 * size)]),
                                        bounds=[(None, None)] * size + [(0, None)])
    return answer.fun if answer.success else None


def clarabel_minimum(objective, blocks, cones):
    """min objective^T x subject to b - A x in the cones; blocks are pairs (A, b)."""
    A = scipy.sparse.csc_matrix(np.vstack([block for block, _ in blocks]))
    b = np.concatenate([right for _, right in blocks])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    settings.max_iter = 500
    size = len(objective)
    solver = clarabel.DefaultSolver(scipy.sparse.csc_matrix((size, size)), np.asarray(objective), A, b, cones, settings)
    answer = solver.solve()
    # Where it stops a little short of 1e-9 the answer is still good to the tolerances above.
    return answer.obj_val if str(answer.status) in ("Solved", "AlmostSolved", "InsufficientProgress") else None


def by_second_order_cone(A):
    m, size = A.shape
    margins = (np.hstack([-A, np.zeros((m, 1))]), -np.ones(m))
    cone = np.zeros((size + 1, size + 1))
    cone[0, -1] = -1
    cone[1:, :-1] = -np.eye(size)
    return clarabel_minimum(np.append(np.zeros(size), 1), [margins, (cone, np.zeros(size + 1))],
                            [clarabel.NonnegativeConeT(m), clarabel.SecondOrderConeT(size + 1)])


def by_power_cones(A, p):
    """r^(1/p) t^(1 - 1/p) >= |w| and sum r = t, so that t = ||w||_p. Unknowns: w, r, t."""
    m, size = A.shape
    margins = (np.hstack([-A, np.zeros((m, size + 1))]), -np.ones(m))
    total = (np.concatenate([np.zeros(size), np.ones(size), [-1]])[None, :], np.zeros(1))
    cones = np.zeros((3 * size, 2 * size + 1))
    for i in range(size):
        cones[3 * i, size + i] = cones[3 * i + 1, -1] = cones[3 * i + 2, i] = -1
    return clarabel_minimum(np.append(np.zeros(2 * size), 1), [total, margins, (cones, np.zeros(3 * size))],
                            [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(m)]
                            + [clarabel.PowerConeT(1 / p)] * size)


def by_semidefinite_program(A, d, name):
    """[P W; W^T Q] >= 0 with the trace of P and Q (nuclear) or P = Q = t I (spectral)."""
    m, side = len(A), 2 * d
    triangle = [(i, j) for j in range(side) for i in range(j + 1)]  # columns of the upper triangle
    position = {entry: k for k, entry in enumerate(triangle)}
    size = len(triangle)
    margins = np.zeros((m, size))
    for k in range(m):
        for i in range(d):
            for j in range(d):
                margins[k, position[i, d + j]] = -A[k, i * d + j]
    scale = -np.diag([1.0 if i == j else np.sqrt(2) for i, j in triangle])
    blocks, cones = [(margins, -np.ones(m)), (scale, np.zeros(size))], [clarabel.NonnegativeConeT(m)]
    objective = np.zeros(size)
    if name == "nuclear":
        for i in range(side):
            objective[position[i, i]] = 0.5
    else:
        equal = np.zeros((size, size))
        used = 0
        for i, j in triangle:
            same_block = (i < d) == (j < d)
            if same_block and (i, j) != (0, 0):
                equal[used, position[i, j]] = 1
                if i == j:
                    equal[used, position[0, 0]] = -1
                used += 1
        blocks.insert(0, (equal[:used], np.zeros(used)))
        cones.insert(0, clarabel.ZeroConeT(used))
        objective[position[0, 0]] = 1
    return clarabel_minimum(objective, blocks, cones + [clarabel.PSDTriangleConeT(side)])


def by_slsqp(A, d, p, start):
    """From the Euclidean solution, which is feasible. Smooth where no singular value is 0."""
    def value(w):
        return (np.linalg.svd(w.reshape(d, d), compute_uv=False) ** p).sum() ** (1 / p)

    def gradient(w):
        u, s, v = np.linalg.svd(w.reshape(d, d))
        total = (s ** p).sum() ** (1 / p)
        return ((u * (s / total) ** (p - 1)) @ v).ravel()

    unit = value(start)
    answer = scipy.optimize.minimize(lambda w: value(w), start / unit, jac=gradient, method="SLSQP",
                                     constraints={"type": "ineq", "fun": lambda w: A @ w * unit - 1,
                                                  "jac": lambda w: A * unit},
                                     options={"maxiter": 1000, "ftol": 1e-15})
    worst = (A @ answer.x).min() * unit
    return unit * answer.fun / worst if worst > 0.5 else None


def euclidean(A):
    """The smallest W itself, by nonnegative least squares on its dual problem (Lawson and Hanson)."""
    m, size = A.shape
    # min |A^T x|^2 / 2 - 1^T x, x >= 0, as least squares: the point of the cone's dual nearest to the origin.
    x, _ = scipy.optimize.nnls(np.vstack([A.T, np.ones(m)]), np.append(np.zeros(size), 1), maxiter=1000)
    w = A.T @ x
    worst = (A @ w).min()
    return w / worst if worst > 0 else None


def reference(A, d, name):
    unit = np.abs(A).max()
    A = A / unit  # cone solvers look at absolute numbers
    if name in ("1", "inf"):
        norm = by_linear_program(A, float(name))
    elif name == "2":
        norm = by_second_order_cone(A)
    elif name in ("nuclear", "spectral"):
        norm = by_semidefinite_program(A, d, name)
    elif name.startswith("schatten:"):
        start = euclidean(A)
        norm = None if start is None else by_slsqp(A, d, float(name.split(":")[1]), start)
    else:
        norm = by_power_cones(A, float(name))
    return None if norm is None else norm / unit


# ---- the certificate


def norm_of(W, name, dual=False):
    kind, p = ("schatten", {"nuclear": "1", "spectral": "inf"}.get(name, name.split(":")[-1]))
    if name not in ("nuclear", "spectral") and not name.startswith("schatten:"):
        kind = "entries"
    p = np.longdouble(p)
    if dual:
        p = np.longdouble("inf") if p == 1 else np.longdouble(1) if np.isinf(p) else p / (p - 1)
    sizes = np.abs(W).ravel()
    largest = sizes.max()
    if largest == 0:
        return largest
    if kind == "schatten":
        sizes = np.linalg.svd((W / largest).astype(float), compute_uv=False).astype(np.longdouble) * largest
    if np.isinf(p):
        return sizes.max()
    largest = sizes.max()
    return largest * ((sizes / largest) ** p).sum() ** (1 / p)


def wrong_certificate(data, selected, name, svm, answer):
    """A sentence, or None."""
    X, Z = data["X"].astype(np.longdouble), data["Z"].astype(np.longdouble)
    lam = svm["lambda"].astype(np.longdouble)
    rows = [np.outer(X[i, selected[i]] - X[i, t], Z[i]) for i, _, t in svm["constraints"]]
    if len(rows) != len(selected) * (X.shape[1] - 1) or len(lam) != len(rows):
        return f"{len(rows)} constraints and {len(lam)} multipliers"
    if (lam < 0).any():
        return "a multiplier is negative"
    dual_norm = norm_of(sum(k * row for k, row in zip(lam, rows)), name, dual=True)
    bound = lam.sum() / dual_norm if dual_norm > 0 else np.longdouble("inf") if lam.sum() > 0 else np.longdouble(0)
    if answer["status"] == "infeasible":
        unit = max((1 / norm_of(row, name, dual=True) for row in rows if row.any()), default=1)
        return None if bound / unit > 1e10 else f"lambda proves a norm of {bound / unit:.3g} units only"
    W = svm["W"].astype(np.longdouble)
    margin = min((row * W).sum() for row in rows)
    norm = norm_of(W, name)
    gap = (norm - bound) / norm
    if margin < 1 - 2e-12:
        return f"a margin is {margin}"
    if abs(gap) > answer["tol"]:
        return f"the gap is {gap:.3g}"
    if abs(norm / answer["norm"] - 1) > 1e-13:
        return f"the norm of W is {norm}, not {answer['norm']}"
    return None


# ---- all of it


def solve(command, folder, data, selected, name):
    np.savez(folder / "data.npz", **data)
    file = folder / "svm.npz"
    file.unlink(missing_ok=True)
    run = subprocess.run([command, "margin", folder / "data.npz", "--norm", name, "--json", "-o", file, "--select",
                          ",".join(str(token) for token in selected)], capture_output=True, text=True, check=False)
    if run.returncode not in (0, 1):
        return None, run.stderr
    return json.loads(run.stdout), np.load(file)


def compare(command, folder, rng, name):
    """What is wrong: None, or a sentence. And whether it was certified, and whether the other solver had an answer."""
    data, selected = random_problem(rng)
    answer, svm = solve(command, folder, data, selected, name)
    if answer is None:
        return svm, False, False
    A = constraint_rows(data, selected)
    if answer["status"] == "stopped":
        return f"stopped: {answer['reason']}", False, False
    wrong = wrong_certificate(data, selected, name, svm, answer)
    if wrong:
        return wrong, True, False
    feasible = by_linear_program(A / (np.abs(A).max() or 1), np.inf) is not None
    if feasible != (answer["status"] == "certified"):
        return f"{answer['status']}, and the linear program is {'' if feasible else 'not '}feasible", True, True
    if not feasible:
        return None, True, True
    norm = reference(A, data["X"].shape[2], name)
    if norm is None:
        return None, True, False
    difference = abs(norm / answer["norm"] - 1)
    if difference > TOLERANCE.get(name, DEFAULT_TOLERANCE):
        return f"norm {answer['norm']}, the other solver has {norm} ({difference:.2g} off)", True, True
    return None, True, True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", type=pathlib.Path, help="the program attmirror")
    parser.add_argument("--count", type=int, default=20, help="problems for each norm")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    command = options.command.resolve()
    solved = agreed = silent = 0
    disagreements = []
    with tempfile.TemporaryDirectory() as folder:
        for name in NORMS:
            for case in range(options.count):
                rng = np.random.default_rng([options.seed, NORMS.index(name), case])
                wrong, certified, compared = compare(command, pathlib.Path(folder), rng, name)
                solved += certified
                agreed += certified and compared and not wrong
                silent += certified and not compared and not wrong
                if wrong:
                    disagreements.append(f"norm {name}, seed {options.seed}, case {case}: {wrong}")
    for line in disagreements:
        print(line)
    print(f"{len(NORMS) * options.count} problems in {len(NORMS)} norms: {solved} solved with their certificates "
          f"checked, {agreed} agreed, {len(disagreements)} disagreed, {silent} the other solver did not solve")
    # Solvers that never answer would agree with everything.
    return 1 if disagreements or agreed < 0.8 * solved or solved == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
