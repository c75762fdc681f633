"""SciPy's L-BFGS-B on the structured smooth dual: what a careful NumPy programmer writes for 1 < p < infinity.

    max over lambda >= 0 of  c^T lambda - ||U||^q / q,   U = sum_k lambda_k A_k,   W = sign(U) |U|^{q-1}

(Schatten-p: the same on the singular values.) The gradient is c_k - <A_k, W>, and the rank-one structure makes both cost a
product of the queries with W. The start is the best point of the ray lambda = t c.
"""

import time

import numpy as np
from scipy.optimize import minimize

from problem import Answer, Failed, Unsupported


class SmoothDual:
    def __init__(self, problem):
        self.problem, self.q = problem, problem.norm.q

    def primal_of(self, U):
        """W and ||U||^q."""
        if self.problem.norm.spectral:
            P, s, Q = np.linalg.svd(U, full_matrices=False)
            power = s ** (self.q - 1)
            return (P * power) @ Q, power @ s
        size = np.abs(U)
        power = size ** (self.q - 1)
        return np.copysign(power, U), np.vdot(power, size)

    def __call__(self, multipliers):
        W, power = self.primal_of(self.problem.combination(multipliers))
        return power / self.q - self.problem.bounds @ multipliers, self.problem.margins(W) - self.problem.bounds


def minimize_dual(problem):
    """lambda, as far as rounding lets the line search go: where the objective is flat to 1e-16, near a gap of 1e-8."""
    if not 1 < problem.norm.p < np.inf:
        raise Unsupported("the dual is not smooth")
    dual = SmoothDual(problem)
    c = problem.bounds
    _, power = dual.primal_of(problem.combination(c))
    start = (c @ c / power) ** (1 / (dual.q - 1)) * c  # d/dt (t c^T c - t^q power / q) = 0
    bounds = [(None, None) if free else (0, None) for free in problem.equality]
    result = minimize(dual, start, jac=True, method="L-BFGS-B", bounds=bounds,
                      options={"ftol": 0, "gtol": 1e-14, "maxiter": 200_000, "maxfun": 400_000})
    if not np.all(np.isfinite(result.x)):
        raise Failed(str(result.message))
    return result.x


def solve(problem):
    begin = time.process_time()
    multipliers = minimize_dual(problem)
    W, _ = SmoothDual(problem).primal_of(problem.combination(multipliers))
    return Answer(W, multipliers, time.process_time() - begin)


SOLVERS = {"SciPy L-BFGS-B on the dual": solve}
