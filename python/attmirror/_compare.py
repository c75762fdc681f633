"""Did the training go where theory says?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from ._arrays import Floats, Ints, Norm, floats, token_indices
from ._data import Dataset
from ._descent import Run
from ._margin import MarginSolution


@dataclass(frozen=True)
class Comparison:
    """How near the weights of a run are to a max-margin solution, in numbers that do not depend on their size.

    directional_bregman is 0 only for equal directions; correlation is the cosine between the two; margin_ratio is the
    margin of the run's direction as a share of the solution's.
    """

    directional_bregman: float
    correlation: float
    margin_ratio: float
    same_tokens: bool


@dataclass(frozen=True)
class ComparisonTrace:
    """The same along the records of a run: arrays with one entry for each."""

    step: Ints
    directional_bregman: Floats
    correlation: Floats
    margin_ratio: Floats


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


def compare(
    run: Run, solution: MarginSolution | Any, *, tokens: Any = None, p: float | None = None, norm: Norm | None = None
) -> Comparison:
    """Holds a run against a max-margin solution (or weights), in the geometry of the run's optimizer, or of `p`."""
    weights, alpha = _target(run, solution, tokens)
    row = np.asarray(run._handle.compare(weights, alpha, p, norm, False))[0]
    same = bool(np.array_equal(run.selected_tokens, alpha))
    return Comparison(float(row[0]), float(row[1]), float(row[2]), same)


def compare_trace(
    run: Run, solution: MarginSolution | Any, *, tokens: Any = None, p: float | None = None, norm: Norm | None = None
) -> ComparisonTrace:
    """compare() for every record of the run."""
    weights, alpha = _target(run, solution, tokens)
    rows = np.asarray(run._handle.compare(weights, alpha, p, norm, True))
    return ComparisonTrace(run.trace["step"], rows[:, 0], rows[:, 1], rows[:, 2])


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
