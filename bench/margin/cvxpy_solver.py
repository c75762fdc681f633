"""cvxpy with Clarabel, SCS and ECOS: the problem as people write it today.

    W = Variable((d, d)); minimize(pnorm(W, p) | normNuc(W) | sigma_max(W)) subject to B vec(W) >= c

p-norms go by power cones where the solver has them (Clarabel, SCS) and by cvxpy's rational second-order cones otherwise
(ECOS). `seconds` is all of Problem.solve(), as a user waits for it; `inside` is what the solver says it took. lambda
are cvxpy's multipliers of the constraints.
"""

import time
import warnings

import numpy as np

from problem import Answer, Failed, Unsupported

import cvxpy as cp

# As tight as each of them is asked for without giving up too often; they return what they have where they cannot.
OPTIONS = {
    "CLARABEL": {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10},
    "SCS": {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 200_000},
    "ECOS": {"abstol": 1e-10, "reltol": 1e-10, "feastol": 1e-10, "max_iters": 200},
}
WRITTEN = {"CLARABEL": "Clarabel", "SCS": "SCS", "ECOS": "ECOS"}


def objective(W, norm, solver):
    if norm.spectral:
        if norm.p not in (1, np.inf):
            raise Unsupported("no atom for Schatten-p")
        if solver == "ECOS":
            raise Unsupported("no semidefinite cone")
        return cp.normNuc(W) if norm.p == 1 else cp.sigma_max(W)
    if norm.p == 2:
        return cp.norm(W, "fro")
    return cp.pnorm(cp.vec(W, order="C"), norm.p, approx=solver == "ECOS")


def solve(problem, solver, options=None):
    begin = time.process_time()
    W = cp.Variable(problem.shape)
    B, c, equal = problem.rows(), problem.bounds, problem.equality
    weights = cp.vec(W, order="C")
    constraints, places, signs = [], [], []
    if not equal.all():
        constraints, places, signs = [B[~equal] @ weights >= c[~equal]], [~equal], [1]
    if equal.any():  # cvxpy's Lagrangian adds nu^T (left - right) for equations
        constraints, places, signs = [*constraints, B[equal] @ weights == c[equal]], [*places, equal], [*signs, -1]
    program = cp.Problem(cp.Minimize(objective(W, problem.norm, solver)), constraints)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of inaccurate solutions: the gap says how inaccurate
            program.solve(solver=solver, **(OPTIONS[solver] if options is None else options))
    except (cp.error.SolverError, ValueError, ArithmeticError) as error:
        raise Failed(str(error).splitlines()[0]) from error
    if W.value is None or any(constraint.dual_value is None for constraint in constraints):
        raise Failed(f"status {program.status}")
    multipliers = np.zeros(problem.count)
    for rows, sign, constraint in zip(places, signs, constraints):
        multipliers[rows] = sign * constraint.dual_value
    return Answer(W.value, multipliers, time.process_time() - begin, program.solver_stats.solve_time)


SOLVERS = {f"cvxpy + {WRITTEN[name]}": (lambda problem, name=name: solve(problem, name))
           for name in OPTIONS if name in cp.installed_solvers()}
