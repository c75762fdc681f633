"""Which margin does an optimizer maximize? Optimizers or runs against norms, with certified margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

from . import _html
from ._arrays import Floats, Norm
from ._compare import norm as norm_of
from ._compare import selection_margin
from ._data import Dataset
from ._descent import Run, descend_many
from ._margin import max_margin_many
from ._reproduce import Report, reproduce
from .optimizers import Optimizer, optimizer

DEFAULT_NORMS: tuple[Norm, ...] = (1.0, 1.1, 1.75, 2.0, 3.0, float("inf"), "nuclear", "spectral")

Trained = Union[Optimizer, Run]


def norm_label(norm: Norm) -> str:
    """ℓ1.75, ℓ∞, nuclear."""
    if isinstance(norm, str):
        return norm
    return "ℓ∞" if norm == float("inf") else f"ℓ{norm:g}"


def default_optimizers() -> dict[str, tuple[Optimizer, int]]:
    """Optimizers with the steps after which each is near its limit on data of the papers' size."""
    return {
        "gradient descent": (optimizer("gd", lr=0.1, normalized=True), 20_000),
        "ℓ1.1 mirror descent": (optimizer("md", p=1.1, lr=0.1, normalized=True), 10_000),
        "ℓ1.75 mirror descent": (optimizer("md", p=1.75, lr=0.1, normalized=True), 10_000),
        "ℓ3 mirror descent": (optimizer("md", p=3, lr=1, normalized=True), 20_000),
        "coordinate descent": (optimizer("coordinate", lr=0.3), 20_000),
        "sign descent": (optimizer("sign", lr=0.1), 10_000),
        "Adam, β₂ = 0.95": (optimizer("adam", lr=0.01, beta2=0.95), 20_000),
        "spectral descent": (optimizer("spectral", lr=0.1), 10_000),
        "nuclear steepest descent": (optimizer("steepest", norm="nuclear", lr=0.1), 10_000),
    }


@dataclass(frozen=True)
class WhichMargin:
    """A table of shares: the margin that each row's direction has in each norm, over the largest that any direction has.

    `ratios` is (rows, norms): the mean over datasets where there are several, with `errors` their standard errors.
    `predicted` is the column that theory names for each row, or None. NaN where a run did not end as it should or a
    problem was not certified.
    """

    rows: list[str]
    norms: list[Norm]
    ratios: Floats
    errors: Floats
    predicted: list[int | None]
    samples: int
    uncertified: int
    runs: list[list[Run]] = field(repr=False)

    @property
    def columns(self) -> list[str]:
        """The names of the norms."""
        return [norm_label(norm) for norm in self.norms]

    @property
    def largest(self) -> list[str]:
        """For each row the norm whose margin it comes nearest to."""
        return [self.columns[int(np.nanargmax(row))] if np.isfinite(row).any() else "" for row in self.ratios]

    @property
    def agrees(self) -> list[bool | None]:
        """For each row whether that is the norm that theory names; None where it names none of these."""
        return [None if column is None else name == self.columns[column]
                for name, column in zip(self.largest, self.predicted)]

    def frame(self) -> Any:
        """As a pandas frame: optimizers down, norms across."""
        import pandas  # type: ignore[import-untyped, unused-ignore]

        return pandas.DataFrame(self.ratios, index=self.rows, columns=self.columns)

    def plot(self, ax: Any = None) -> Any:
        """A heat map; the norm that theory names is outlined. Returns a figure."""
        from .plots import plot_which_margin

        return plot_which_margin(self, ax=ax)

    def __repr__(self) -> str:
        width = max(map(len, self.rows), default=0)
        lines = [" " * width + "".join(f"{name:>10}" for name in self.columns)]
        for row, values, predicted in zip(self.rows, self.ratios, self.predicted):
            cells = "".join(f"{value:.3f}{'*' if c == predicted else ' '}".rjust(10) for c, value in enumerate(values))
            lines.append(row.ljust(width) + cells)
        return "\n".join([*lines, "share of the largest margin; * the norm that theory names"])

    def _repr_html_(self) -> str:
        rows = [[name, *(f"{value:.3f}{' *' if c == predicted else ''}" for c, value in enumerate(values))]
                for name, values, predicted in zip(self.rows, self.ratios, self.predicted)]
        return _html.table("Share of the largest margin (* the norm that theory names)", ["", *self.columns], rows)


def _named(trained: Mapping[str, Any] | Sequence[Any] | None, steps: int) -> dict[str, tuple[Any, int]]:
    if trained is None:
        return dict(default_optimizers())
    entries = trained if isinstance(trained, Mapping) else {repr(entry): entry for entry in trained}
    return {name: entry if isinstance(entry, tuple) else (entry, steps) for name, entry in entries.items()}


def _ratios(run: Run, norms: Sequence[Norm], smallest: Sequence[float]) -> list[float]:
    if run.status not in ("completed", "saturated") or not run.selected_tokens.size:
        return [float("nan")] * len(norms)
    margin = selection_margin(run.data, run.selected_tokens, run.W)
    return [margin / norm_of(run.W, norm) * least for norm, least in zip(norms, smallest)]


def which_margin(
    data: Dataset | Sequence[Dataset] | None = None,
    trained: Mapping[str, Any] | Sequence[Any] | None = None,
    norms: Sequence[Norm] = DEFAULT_NORMS,
    *,
    steps: int = 10_000,
    threads: int = 0,
    progress: bool = False,
    **settings: Any,
) -> WhichMargin:
    """Measures which margin each optimizer maximizes, against certified max-margin solutions.

    >>> am.which_margin(data, [am.SignDescent(lr=0.1), am.MirrorDescent(p=1.1, normalized=True)])

    Parameters
    ----------
    data : Dataset or several
        Ratios are means over them.
    trained : list or dict of optimizers, of (optimizer, steps), or of runs
        Nine optimizers without it. Runs bring their own data.
    norms : list
        Columns of the table.
    steps : int
        For optimizers that come without.

    Notes
    -----
    The other arguments are those of descend(). which_margin_experiment() is the published table, on 100 datasets.
    """
    rows = _named(trained, steps)
    sets = [] if data is None else [data] if isinstance(data, Dataset) else list(data)
    runs: list[list[Run]] = []
    tasks: list[tuple[Dataset, Optimizer, Mapping[str, Any]]] = []
    for entry, length in rows.values():
        if isinstance(entry, Run):
            continue
        if not sets:
            raise TypeError("which_margin() needs data to train optimizers on: expected a Dataset, or runs")
        tasks += [(one, entry, {"steps": length}) for one in sets]
    fresh = iter(descend_many(tasks, threads=threads, progress=progress, record="none", **settings))
    for entry, _ in rows.values():
        runs.append([entry] if isinstance(entry, Run) else [next(fresh) for _ in sets])

    # Each (data, tokens, norm) is solved once, whoever selected the tokens.
    problems: dict[tuple[int, bytes], Run] = {}
    for run in (one for row in runs for one in row):
        if run.selected_tokens.size:
            problems.setdefault((run.data.fingerprint, run.selected_tokens.tobytes()), run)
    solutions = max_margin_many(
        [run.data for run in problems.values() for _ in norms],
        [run.selected_tokens for run in problems.values() for _ in norms],
        [norm for _ in problems for norm in norms], threads=threads) if problems else []
    certified = [one.norm if one.status == "certified" else float("nan") for one in solutions]
    least = {key: certified[i * len(norms) : (i + 1) * len(norms)] for i, key in enumerate(problems)}

    means, errors = [], []
    for row in runs:
        values = np.array([
            _ratios(run, norms, least[run.data.fingerprint, run.selected_tokens.tobytes()])
            if run.selected_tokens.size else [float("nan")] * len(norms) for run in row])
        means.append(values.mean(axis=0))
        errors.append(values.std(axis=0, ddof=1) / np.sqrt(len(row)) if len(row) > 1 else np.zeros(len(norms)))
    predicted = []
    for row in runs:
        limit = row[0].optimizer.geometry_norm
        if row[0].params == "KQ" and row[0].optimizer.method == "gd":
            limit = "nuclear"
        predicted.append(list(norms).index(limit) if limit is not None and limit in norms else None)
    return WhichMargin(list(rows), list(norms), np.array(means), np.array(errors), predicted, max(len(sets), 1),
                       int(np.isnan(certified).sum()), runs)


def which_margin_experiment(*, quick: bool = False, threads: int = 0, progress: bool = False) -> Report:
    """The experiment's table: eighteen optimizers, eight norms, 100 datasets (three where `quick`)."""
    report: Report = reproduce("which-margin", quick=quick, threads=threads, progress=progress)[0]
    return report
