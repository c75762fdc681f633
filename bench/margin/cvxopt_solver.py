"""CVXOPT, on the form of each problem that is smallest.

    p = 2       the dual quadratic program in the Gram matrix of the constraints (m variables); W = sum lambda_k A_k
    1 < p < 2   solvers.cp on the smooth dual  min ||B^T lambda||_q^q / q - c^T lambda  (q > 2: its Hessian is finite)
    2 < p       solvers.cp on  min sum |w|^p / p  s.t.  B w >= c
    nuclear     the dual  max c^T lambda  s.t.  [[I, U], [U^T, I]] >= 0  (m variables); W from the block's multiplier
    spectral    min t  s.t.  [[t I, W], [W^T, t I]] >= 0,  B w >= c

lambda are CVXOPT's multipliers wherever it is not what CVXOPT solves for.
"""

import time

import numpy as np

from problem import Answer, Failed, Unsupported

import cvxopt
from cvxopt import matrix, solvers, spdiag, spmatrix

OPTIONS = {"show_progress": False, "abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11, "maxiters": 100}
MOST_MEMORY = 2e9  # bytes of the largest dense matrix that is worth trying


def finished(result, *names):
    """CVXOPT reports "unknown" when it cannot reach the tolerances; what it has by then is judged by its gap."""
    if any(result[name] is None for name in names):
        raise Failed(f"status {result['status']}")
    return [np.array(result[name]) for name in names]


def factorization(size):
    """CVXOPT's default for cones of matrices, "qr", breaks down on these problems (1.3.3: gaps near 1). "ldl" is the most
    accurate and forms a matrix of all unknowns and rows; "chol" ends near 1e-8 and does not."""
    return "ldl" if size <= 2000 else "chol"


def need_inequalities(problem):
    if problem.equality.any():
        raise Unsupported("this adapter has no equalities")


def solve_frobenius(problem):
    m, free = problem.count, np.flatnonzero(problem.equality)
    inner = np.flatnonzero(~problem.equality)
    G = spmatrix(-1.0, range(len(inner)), inner.tolist(), (len(inner), m))
    result = solvers.qp(matrix(problem.gram()), matrix(-problem.bounds), G, matrix(0.0, (len(inner), 1)), options=OPTIONS)
    (multipliers,) = finished(result, "x")
    multipliers = multipliers.ravel()
    return problem.combination(multipliers), multipliers


def solve_power_dual(problem):
    B, c, q, m = problem.rows(), problem.bounds, problem.norm.q, problem.count
    ones = B.T @ np.ones(m)
    start = (c.sum() / np.sum(np.abs(ones) ** q)) ** (1 / (q - 1))

    def F(x=None, z=None):
        if x is None:
            return 0, matrix(start, (m, 1))
        lam = np.array(x).ravel()
        U = lam @ B
        size = np.abs(U)
        value = np.sum(size**q) / q - c @ lam
        slope = B @ np.copysign(size ** (q - 1), U) - c
        if z is None:
            return matrix(value), matrix(slope).T
        curve = (B * ((q - 1) * size ** (q - 2))) @ B.T
        return matrix(value), matrix(slope).T, z[0] * matrix(curve)

    result = solvers.cp(F, spmatrix(-1.0, range(m), range(m)), matrix(0.0, (m, 1)), options=OPTIONS)
    (multipliers,) = finished(result, "x")
    multipliers = multipliers.ravel()
    U = problem.combination(multipliers)
    return np.copysign(np.abs(U) ** (q - 1), U), multipliers


def solve_power_primal(problem):
    B, c, p = problem.rows(), problem.bounds, problem.norm.p
    size = B.shape[1]
    if 8 * size**2 > MOST_MEMORY:
        raise Unsupported(f"a dense matrix of {size}^2")
    start = problem.combination(np.ones(problem.count)).ravel()
    start *= (c @ np.ones(len(c))) / (start @ start)

    def F(x=None, z=None):
        if x is None:
            return 0, matrix(start)
        w = np.array(x).ravel()
        power = np.abs(w) ** (p - 2)
        value, slope = matrix(np.sum(power * w * w) / p), matrix(power * w).T
        if z is None:
            return value, slope
        return value, slope, spdiag(matrix(z[0] * (p - 1) * power))

    result = solvers.cp(F, matrix(-B), matrix(-c), options=OPTIONS)
    w, multipliers = finished(result, "x", "zl")
    return w.reshape(problem.shape), multipliers.ravel()


def block_columns(matrices, rows, cols):
    """Each [[0, A], [A^T, 0]] as a column in CVXOPT's order (column by column)."""
    side = rows + cols
    blocks = np.zeros((len(matrices), side, side))
    blocks[:, :rows, rows:] = matrices
    blocks[:, rows:, :rows] = matrices.transpose(0, 2, 1)
    return blocks.reshape(len(matrices), -1).T  # symmetric: both orders are one


def solve_nuclear(problem):
    need_inequalities(problem)
    (rows, cols), m = problem.shape, problem.count
    if 8 * m * (rows + cols) ** 2 > MOST_MEMORY:
        raise Unsupported(f"a dense matrix of {m} x {(rows + cols) ** 2}")
    A = problem.rows().reshape(m, rows, cols)
    G = np.vstack([-np.eye(m), block_columns(A, rows, cols)])
    h = np.concatenate([np.zeros(m), np.eye(rows + cols).ravel()])
    result = solvers.conelp(matrix(-problem.bounds), matrix(G), matrix(h), {"l": m, "q": [], "s": [rows + cols]},
                            kktsolver=factorization(sum(G.shape)), options=OPTIONS)
    x, z = finished(result, "x", "z")
    block = z.ravel()[m:].reshape(rows + cols, rows + cols).T  # the lower triangle counts
    return 2 * block[rows:, :rows].T, x.ravel()


def solve_spectral(problem):
    need_inequalities(problem)
    (rows, cols), m = problem.shape, problem.count
    size = rows * cols
    if 8 * (size + 1) * (rows + cols) ** 2 > MOST_MEMORY:
        raise Unsupported(f"a dense matrix of {size + 1} x {(rows + cols) ** 2}")
    units = np.eye(size).reshape(size, rows, cols)
    G = np.zeros((m + (rows + cols) ** 2, size + 1))
    G[:m, 1:] = -problem.rows()
    G[m:, 0] = -np.eye(rows + cols).ravel()
    G[m:, 1:] = -block_columns(units, rows, cols)
    h = np.concatenate([-problem.bounds, np.zeros((rows + cols) ** 2)])
    objective = np.zeros(size + 1)
    objective[0] = 1
    result = solvers.conelp(matrix(objective), matrix(G), matrix(h), {"l": m, "q": [], "s": [rows + cols]},
                            kktsolver=factorization(sum(G.shape)), options=OPTIONS)
    x, z = finished(result, "x", "z")
    return x.ravel()[1:].reshape(rows, cols), z.ravel()[:m]


def choose(norm):
    if norm.spectral:
        if norm.p not in (1, np.inf):
            raise Unsupported("no cone for Schatten-p")
        return solve_nuclear if norm.p == 1 else solve_spectral
    if norm.p in (1, np.inf):
        raise Unsupported("a linear program: see HiGHS")
    return solve_frobenius if norm.p == 2 else solve_power_dual if norm.p < 2 else solve_power_primal


def solve(problem):
    begin = time.process_time()
    method = choose(problem.norm)
    if method in (solve_power_dual, solve_power_primal):
        need_inequalities(problem)
    try:
        W, multipliers = method(problem)
    except (ArithmeticError, ValueError) as error:
        raise Failed(f"{type(error).__name__}: {error}") from error
    return Answer(W, multipliers, time.process_time() - begin)


SOLVERS = {f"CVXOPT {cvxopt.__version__}": solve}
