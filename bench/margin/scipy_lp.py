"""HiGHS, through SciPy, for the two norms whose problems are linear programs.

    l1          min 1^T (w+ + w-)  s.t.  B (w+ - w-) >= c,  w+, w- >= 0
    l_infinity  max c^T lambda  s.t.  B^T lambda = u+ - u-,  1^T (u+ + u-) <= 1,  lambda, u+, u- >= 0: the dual, which has
                d^2 + 1 rows in place of the m + 2 d^2 of the primal problem; W are the multipliers of its equations

The simplex method ends on a vertex, so the answers are exact up to rounding; lambda are HiGHS's own multipliers.
"""

import time

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from problem import Answer, Failed, Unsupported

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def finished(result):
    if result.status != 0:
        raise Failed(result.message)
    return result


def solve_l1(problem, method):
    B = problem.rows()
    both, size = sparse.csc_array(np.hstack([B, -B])), B.shape[1]
    at_least, equal = ~problem.equality, problem.equality
    result = finished(linprog(np.ones(2 * size), A_ub=-both[at_least], b_ub=-problem.bounds[at_least],
                              A_eq=both[equal] if equal.any() else None,
                              b_eq=problem.bounds[equal] if equal.any() else None, method=method, options=TIGHT))
    multipliers = np.empty(problem.count)
    multipliers[at_least] = -result.ineqlin.marginals
    if equal.any():
        multipliers[equal] = result.eqlin.marginals
    return (result.x[:size] - result.x[size:]).reshape(problem.shape), multipliers


def solve_linf(problem, method):
    B = problem.rows()
    m, size = B.shape
    eye = sparse.eye_array(size)
    equations = sparse.hstack([sparse.csr_array(B.T), -eye, eye]).tocsc()
    total = np.concatenate([np.zeros(m), np.ones(2 * size)])[None, :]
    limits = [(None, None) if free else (0, None) for free in problem.equality] + [(0, None)] * (2 * size)
    result = finished(linprog(-np.concatenate([problem.bounds, np.zeros(2 * size)]), A_ub=total, b_ub=[1],
                              A_eq=equations, b_eq=np.zeros(size), bounds=limits, method=method, options=TIGHT))
    return -result.eqlin.marginals.reshape(problem.shape), result.x[:m]


def solve(problem, method="highs"):
    begin = time.process_time()
    if problem.norm.spectral or problem.norm.p not in (1, np.inf):
        raise Unsupported("not a linear program")
    W, multipliers = (solve_l1 if problem.norm.p == 1 else solve_linf)(problem, method)
    return Answer(W, multipliers, time.process_time() - begin)


SOLVERS = {
    "HiGHS dual simplex (SciPy)": lambda problem: solve(problem, "highs-ds"),
    "HiGHS interior point (SciPy)": lambda problem: solve(problem, "highs-ipm"),
}
