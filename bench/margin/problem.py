"""A max-margin problem as plain arrays, and how good an answer to it is.

    min ||W||  subject to  <a_k z_g^T, W> = a_k^T W z_g  >= c_k  or  = c_k,      k = 1..m, g the group of k

All adapters get one of these. They return an Answer, or raise Unsupported (this method is not for this norm or this size,
and why) or Failed (it gave up, and what it said).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Unsupported(Exception):
    pass


class Failed(Exception):
    pass


class Answer(NamedTuple):
    W: np.ndarray
    multipliers: np.ndarray  # lambda, one per constraint
    seconds: float  # of the processor, from the arrays of the problem to W and lambda
    inside: float | None = None  # of which in the solver itself, where a modelling language stands before it


@dataclass(frozen=True)
class Norm:
    """Entrywise l_p or Schatten-p; `text` is what `attmirror margin --norm` reads."""

    text: str

    @property
    def spectral(self):
        return self.text in ("nuclear", "spectral") or self.text.startswith("schatten:")

    @property
    def p(self):
        words = {"nuclear": 1.0, "spectral": np.inf, "frobenius": 2.0}
        return words.get(self.text) or float(self.text.removeprefix("schatten:"))

    @property
    def q(self):
        """The exponent of the dual norm."""
        return np.inf if self.p == 1 else 1.0 if self.p == np.inf else self.p / (self.p - 1)

    def value(self, W):
        return self._power_norm(W, self.p)

    def dual_value(self, U):
        return self._power_norm(U, self.q)

    def _power_norm(self, W, p):
        entries = np.linalg.svd(W, compute_uv=False) if self.spectral else np.abs(W).ravel()
        largest = entries.max(initial=0)
        if largest == 0 or p == np.inf:
            return largest
        return largest * np.sum((entries / largest) ** p) ** (1 / p)  # no power over- or underflows to harm


class MarginProblem:
    def __init__(self, left, right, group, bounds, norm, equality=None):
        """left (m, rows), right (groups, cols), group (m) ascending without gaps, bounds (m)."""
        self.left, self.right = np.asarray(left, float), np.asarray(right, float)
        self.group, self.bounds = np.asarray(group, int), np.asarray(bounds, float)
        self.norm = norm
        self.equality = np.zeros(len(self.bounds), bool) if equality is None else np.asarray(equality, bool)
        self._starts = np.flatnonzero(np.diff(self.group, prepend=-1))
        if not np.array_equal(self.group[self._starts], np.arange(len(self.right))):
            raise ValueError("each group needs constraints, and those of a group must be neighbours")

    @property
    def count(self):
        return len(self.bounds)

    @property
    def shape(self):
        return self.left.shape[1], self.right.shape[1]

    def margins(self, W):
        """<A_k, W> for all k: W moves to the queries first, so that nothing of size m rows cols is formed."""
        return np.einsum("kr,kr->k", self.left, (self.right @ W.T)[self.group])

    def combination(self, multipliers):
        """U = sum_k lambda_k A_k."""
        return np.add.reduceat(multipliers[:, None] * self.left, self._starts, axis=0).T @ self.right

    def gram(self):
        """<A_k, A_l> = (a_k . a_l)(z_g . z_h)."""
        return (self.left @ self.left.T) * (self.right @ self.right.T)[np.ix_(self.group, self.group)]

    def rows(self):
        """(m, rows cols): the A_k as vectors in C order, which is what general solvers want."""
        return np.einsum("kr,kc->krc", self.left, self.right[self.group]).reshape(self.count, -1)


def attention_problem(data, alpha, norm):
    """The attention SVM of an .npz dataset (X, Z) with one query per sequence, and its constraints' origins (m, 3)."""
    X, Z = data["X"], data["Z"]
    origins = [(i, 0, t) for i in range(len(X)) for t in range(X.shape[1]) if t != alpha[i]]
    i, t = (np.array([origin[axis] for origin in origins]) for axis in (0, 2))
    problem = MarginProblem(X[i, alpha[i]] - X[i, t], Z, i, np.ones(len(origins)), norm)
    return problem, np.array(origins)


def made_feasible(problem, W):
    """W times the least number that satisfies the inequalities with positive bounds: its norm then bounds the optimum
    from above, and solvers with loose tolerances are not credited for what they violate."""
    wanted = (problem.bounds > 0) & ~problem.equality
    worst = np.min(problem.margins(W)[wanted] / problem.bounds[wanted], initial=np.inf)
    if not np.all(np.isfinite(W)) or worst <= 0:
        raise Failed("the W returned separates nothing")
    return W if worst == np.inf else W / worst


def measure(problem, W, multipliers):
    """(norm, dual, gap): dual = c^T lambda / ||sum lambda A||_* bounds the norm of every feasible W from below."""
    multipliers = np.where(problem.equality, multipliers, np.maximum(multipliers, 0))
    norm = problem.norm.value(W)
    size = problem.norm.dual_value(problem.combination(multipliers))
    dual = problem.bounds @ multipliers / size if size > 0 else 0.0
    return norm, dual, (norm - dual) / norm
