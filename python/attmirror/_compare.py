"""Did the training go where theory says?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import Floats, Ints, Norm, floats, token_indices
from ._data import Dataset
from ._descent import Run
from ._margin import MarginSolution, max_margin


@dataclass(frozen=True)
class Comparison:
    """How near the weights of a run are to a max-margin solution, in numbers that do not depend on their size.

    directional_bregman is 0 only for equal directions; correlation is the cosine between the two; margin_ratio is the
    margin of the run's direction as a share of the solution's, both in the norm of the run's optimizer (or of `p`, or
    `norm`). It is at most 1 where the solution is that of this norm, and below 0 where the run prefers other tokens.

    Problems in the norms 1, inf and "spectral" have many solutions, and then the first two are NaN. For 1 and inf,
    `distance` is that of the run's direction from the nearest of all solutions, in the same norm, from 0 to 2; it is NaN
    for all other norms.
    """

    directional_bregman: float
    correlation: float
    margin_ratio: float
    same_tokens: bool
    distance: float = float("nan")


@dataclass(frozen=True)
class ComparisonTrace:
    """The same along the records of a run: arrays with one entry for each."""

    step: Ints
    directional_bregman: Floats
    correlation: Floats
    margin_ratio: Floats
    distance: Floats


@dataclass(frozen=True)
class RunSide:
    """One of two runs: what it selects, what that is worth for the labels, and its margins."""

    selected_tokens: Ints
    scores: Floats
    margins: dict[str, float]
    support: Ints


@dataclass(frozen=True)
class RunComparison:
    """Two runs on the same data.

    `differences` has a row (query, token of the first, token of the second) for each query whose selected tokens differ,
    queries counted over all sequences; `correlation` is the cosine of the weights. Margins are the smallest differences
    of logits over the norm of the weights, in the norms of both runs' optimizers. `support` has the support tokens
    (sequence, query, token) of the max-margin problem of a run's tokens in its norm, and `shared_support` counts those
    that both have.
    """

    first: RunSide
    second: RunSide
    correlation: float
    differences: Ints
    shared_support: int

    @property
    def same_tokens(self) -> bool:
        """Whether both runs select the same token for every query."""
        return len(self.differences) == 0


def _target(run: Run, solution: MarginSolution | Any, tokens: Any) -> tuple[Floats, Ints]:
    if isinstance(solution, MarginSolution):
        weights, alpha = solution._handle.matrix(), solution.tokens
    else:
        weights, alpha = floats(solution, "solution"), None
        if weights.ndim == 1:
            weights = weights.reshape(-1, 1)
    if tokens is not None:
        alpha = token_indices(tokens)
    return weights, run.selected_tokens if alpha is None else alpha


def _measured(solution: Any, rows: Floats, weights: list[Floats]) -> Floats:
    """Rows of divergence, correlation and margin ratio with a fourth column, the distance from all solutions."""
    distance = np.full(len(rows), np.nan)
    if isinstance(solution, MarginSolution) and not solution.unique:
        rows = rows.copy()
        rows[:, :2] = np.nan
        if solution.kind != "spectral" and solution.problem in ("attention", "prompt"):
            distance = np.asarray(solution._handle.distances(weights))
    return np.column_stack([rows, distance])


@overload
def compare(run: Run, other: Run, *, p: float | None = None, norm: Norm | None = None) -> RunComparison: ...
@overload
def compare(
    run: Run,
    other: MarginSolution | npt.ArrayLike,
    *,
    tokens: Any = None,
    p: float | None = None,
    norm: Norm | None = None,
) -> Comparison: ...
def compare(
    run: Run,
    other: MarginSolution | Run | npt.ArrayLike,
    *,
    tokens: Any = None,
    p: float | None = None,
    norm: Norm | None = None,
) -> Comparison | RunComparison:
    """Holds a run against a max-margin solution (or weights), in the geometry of the run's optimizer, or of `p`.

    Given another run on the same data, it holds the two against each other and returns a RunComparison.
    """
    if isinstance(other, Run):
        if tokens is not None:
            raise ValueError("tokens is given with two runs: each is compared with the tokens that it selects")
        return _compare_runs(run, other, p, norm)
    weights, alpha = _target(run, other, tokens)
    rows = np.asarray(run._handle.compare(weights, alpha, p, norm, False))
    row = _measured(other, rows, [run._handle.weights()])[0]
    same = bool(np.array_equal(run.selected_tokens, alpha))
    return Comparison(float(row[0]), float(row[1]), float(row[2]), same, float(row[3]))


def compare_trace(
    run: Run, solution: MarginSolution | Any, *, tokens: Any = None, p: float | None = None, norm: Norm | None = None
) -> ComparisonTrace:
    """compare() for every record of the run."""
    weights, alpha = _target(run, solution, tokens)
    rows = np.asarray(run._handle.compare(weights, alpha, p, norm, True))
    trace = run._handle.trace_weights() if isinstance(solution, MarginSolution) and not solution.unique else []
    rows = _measured(solution, rows, trace)
    return ComparisonTrace(run.trace["step"], rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3])


def _norm_name(norm: Norm) -> str:
    return norm if isinstance(norm, str) else f"{float(norm):g}"


def _side(run: Run, own: Norm, norms: list[Norm]) -> RunSide:
    tokens = run.selected_tokens
    flat = np.asarray(tokens).ravel()
    scores = np.array([row[t] for row, t in zip(run._handle.scores(), flat)])
    weights = run._handle.weights()
    margin = run._handle.margin(tokens)
    with np.errstate(divide="ignore", invalid="ignore"):
        margins = {_norm_name(one): float(np.divide(margin, _core.matrix_norm(weights, one))) for one in norms}
    if run.params == "prompt":
        solution = max_margin(run.data, tokens, own, problem="prompt", key_weights=run._handle.key_weights)
    else:
        solution = max_margin(run.data, tokens, own)
    support = solution.support if solution.status == "certified" else np.zeros((0, 3), dtype=np.int64)
    return RunSide(tokens, scores, margins, support)


def _compare_runs(first: Run, second: Run, p: float | None, norm: Norm | None) -> RunComparison:
    if first.data != second.data:
        raise ValueError(
            f"the runs are on different data (fingerprints {first.data.fingerprint:016x} and "
            f"{second.data.fingerprint:016x}): expected the same"
        )
    a, b = first._handle.weights(), second._handle.weights()
    if a.shape != b.shape:
        raise ValueError(f"the weights of the runs have the shapes {a.shape} and {b.shape}: expected the same")
    own = [norm if norm is not None else p if p is not None else run._handle.measuring_norm() for run in (first, second)]
    norms = own if own[0] != own[1] else own[:1]
    sides = [_side(run, kind, norms) for run, kind in zip((first, second), own)]
    tokens = [np.asarray(side.selected_tokens).ravel() for side in sides]
    where = np.flatnonzero(tokens[0] != tokens[1])
    differences = np.column_stack([where, tokens[0][where], tokens[1][where]]).astype(np.int64)
    shared = {tuple(row) for row in sides[0].support.tolist()} & {tuple(row) for row in sides[1].support.tolist()}
    directed = all(np.isfinite(w).all() and np.any(w) for w in (a, b))
    return RunComparison(sides[0], sides[1], correlation(a, b) if directed else float("nan"), differences, len(shared))


def directional_bregman(solution: Any, iterate: Any, p: float) -> float:
    """P1's directional Bregman divergence of two sets of weights: 0 only for equal directions, 1 - cos for p = 2."""
    return _core.directional_bregman(floats(solution, "solution"), floats(iterate, "iterate"), p)


def correlation(a: Any, b: Any) -> float:
    """The cosine of the angle between two sets of weights."""
    return _core.correlation(floats(a, "a"), floats(b, "b"))


def norm(W: Any, kind: Norm = 2.0) -> float:
    """||W|| in an entrywise norm (a number from 1 to inf) or a named one ("nuclear", "spectral", "schatten:P")."""
    return _core.matrix_norm(floats(W, "W"), kind)


def selection_margin(data: Dataset, tokens: Any, W: Any) -> float:
    """The smallest difference of logits between a selected token and another of its sequence."""
    return _core.selection_margin(data._handle, token_indices(tokens), floats(W, "W"))


def attention(data: Dataset, W: Any) -> tuple[Any, Ints]:
    """Attention probabilities, a row per query, and the selected tokens, of any weights W."""
    return _core.attention_of(data._handle, floats(W, "W"))
