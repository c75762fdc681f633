"""Which margin does an optimizer maximize? Optimizers or runs against norms, with certified margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

from . import _core, _html
from ._arrays import Floats, Norm
from ._data import Dataset
from ._descent import Run, descend_many
from ._progress import Progress
from ._reproduce import Report, reproduce
from .optimizers import Optimizer

DEFAULT_NORMS: tuple[Norm, ...] = tuple(_core.default_margin_norms())

Trained = Union[str, Optimizer, Run]


def norm_label(norm: Norm) -> str:
    """ℓ1.75, ℓ∞, nuclear."""
    return str(_core.norm_symbol(norm))


@dataclass(frozen=True)
class WhichMargin:
    """A table of shares: the margin that each row's direction has in each norm, over the largest that any direction has.

    `ratios` is (rows, norms): the mean over datasets where there are several, with `errors` their standard errors.
    `predicted` is the column that theory predicts for each row, or None. NaN where a run did not end as it should or a
    problem was not certified. `states` says for each row of `runs` whether it is "near_limit" or why not ("rising",
    "unsaturated", "diverged", "infeasible", "uncertified"), and `remarks` says the same in a sentence. `conclusion` is
    the table in one sentence, where there is one dataset.
    """

    rows: list[str]
    norms: list[Norm]
    ratios: Floats
    errors: Floats
    predicted: list[int | None]
    samples: int
    uncertified: int
    runs: list[list[Run]] = field(repr=False)
    states: list[list[str]] = field(repr=False)
    remarks: list[list[str]] = field(repr=False)
    worst_gap: float
    conclusion: str | None

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
        """For each row whether that is the norm that theory predicts; None where it predicts none of these."""
        return [None if column is None else name == self.columns[column]
                for name, column in zip(self.largest, self.predicted)]

    def frame(self) -> Any:
        """As a pandas frame: optimizers down, norms across."""
        import pandas  # type: ignore[import-untyped, unused-ignore]

        return pandas.DataFrame(self.ratios, index=self.rows, columns=self.columns)

    def plot(self, ax: Any = None) -> Any:
        """A heat map; the norm that theory predicts is outlined. Returns a figure."""
        from .plots import plot_which_margin

        return plot_which_margin(self, ax=ax)

    def __repr__(self) -> str:
        width = max(map(len, self.rows), default=0)
        lines = [" " * width + "".join(f"{name:>10}" for name in self.columns)]
        for row, values, predicted in zip(self.rows, self.ratios, self.predicted):
            cells = "".join(f"{value:.3f}{'*' if c == predicted else ' '}".rjust(10) for c, value in enumerate(values))
            lines.append(row.ljust(width) + cells)
        notes = [f"! {row}: {next(filter(None, remarks))}" for row, remarks in zip(self.rows, self.remarks) if any(remarks)]
        return "\n".join([*lines, "share of the largest margin; * the norm that theory predicts", *notes])

    def _repr_html_(self) -> str:
        rows = [[name, *(f"{value:.3f}{' *' if c == predicted else ''}" for c, value in enumerate(values))]
                for name, values, predicted in zip(self.rows, self.ratios, self.predicted)]
        return _html.table("Share of the largest margin (* the norm that theory predicts)", ["", *self.columns], rows)


Row = tuple[str, list[Run]]


def _trained_rows(
    sets: list[Dataset], trained: Mapping[str, Any] | Sequence[Any] | None, steps: int | None, threads: int,
    progress: bool, settings: Mapping[str, Any],
) -> list[Row]:
    """Each row with its runs: given ones as they are, words and optimizers after training on all of `sets`."""
    if isinstance(trained, Mapping):
        entries = list(trained.items())
    else:
        entries = [(entry if isinstance(entry, str) else repr(entry), entry) for entry in trained or ()]
    if trained is not None and not entries:
        raise ValueError("trained is empty: expected optimizers or runs")
    if not sets and any(not isinstance(entry, Run) for _, entry in entries or [("", None)]):
        raise TypeError("which_margin() needs data to train optimizers on: expected a Dataset, or runs")
    bar = Progress("which_margin") if progress else None
    words = [entry for _, entry in entries if isinstance(entry, str)]
    by_word: dict[str, list[Run]] = {}
    titles: dict[str, str] = {}
    try:
        if words or trained is None:
            if settings:
                raise TypeError(f"{', '.join(settings)}: optimizers that are given by words take steps alone")
            for one in sets:
                for word, title, run in _core.train_margin_rows(one._handle, words, steps, threads,
                                                                bar.update if bar else None):
                    by_word.setdefault(word, []).append(Run(run))
                    titles[word] = title
        tasks = []
        for _, entry in entries:
            rule, length = entry if isinstance(entry, tuple) else (entry, steps or 10_000)
            if isinstance(rule, Optimizer):
                tasks += [(one, rule, {"steps": length, "record": [length // 2]}) for one in sets]
        fresh = iter(descend_many(tasks, threads=threads, **settings))
    finally:
        if bar is not None:
            bar.close()
    if trained is None:
        return [(titles[word], runs) for word, runs in by_word.items()]
    return [(name, [entry] if isinstance(entry, Run) else by_word[entry] if isinstance(entry, str)
             else [next(fresh) for _ in sets]) for name, entry in entries]


def which_margin(
    data: Dataset | Sequence[Dataset] | None = None,
    trained: Mapping[str, Any] | Sequence[Any] | None = None,
    norms: Sequence[Norm] = DEFAULT_NORMS,
    *,
    steps: int | None = None,
    threads: int = 0,
    progress: bool = False,
    **settings: Any,
) -> WhichMargin:
    """Measures which margin each optimizer maximizes, against certified max-margin solutions.

    >>> am.which_margin(data, ["md:1.1", "gd", "sign"])
    >>> am.which_margin(data, [am.SignDescent(lr=0.1), am.MirrorDescent(p=1.1, normalized=True)])

    Parameters
    ----------
    data : Dataset or several
        Ratios are means over them.
    trained : list or dict of words, of optimizers, of (optimizer, steps), or of runs
        Words are those of `attmirror which-margin --optimizers`: their step sizes follow the scale of the data, and
        without `trained` there are nine of them. Optimizers keep the step sizes that they have. Runs bring their own
        data.
    norms : list
        Columns of the table.
    steps : int
        20,000 for words, 10,000 for optimizers that come without.

    Notes
    -----
    The other arguments are those of descend(), for optimizers. which_margin_experiment() is the published table, on 100
    datasets.
    """
    sets = [] if data is None else [data] if isinstance(data, Dataset) else list(data)
    rows = _trained_rows(sets, trained, steps, threads, progress, settings)
    flat = [(name, run._handle) for name, runs in rows for run in runs]
    measured = _core.measure_margins(flat, list(norms), threads)
    results = iter(measured["rows"])
    means, errors, predicted, states, remarks = [], [], [], [], []
    for _, runs in rows:
        own = [next(results) for _ in runs]
        values = np.array([one["shares"] for one in own])
        means.append(values.mean(axis=0))
        errors.append(values.std(axis=0, ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.zeros(len(norms)))
        limit = own[0]["predicted"]
        predicted.append(list(norms).index(limit) if limit is not None and limit in norms else None)
        states.append([one["state"] for one in own])
        remarks.append([one["remark"] for one in own])
    single = all(len(runs) == 1 for _, runs in rows)
    return WhichMargin([name for name, _ in rows], list(norms), np.array(means), np.array(errors), predicted,
                       max(len(sets), 1), measured["uncertified"], [runs for _, runs in rows], states, remarks,
                       measured["worst_gap"], measured["conclusion"] if single else None)


def which_margin_experiment(*, quick: bool = False, threads: int = 0, progress: bool = False) -> Report:
    """The experiment's table: eighteen optimizers, eight norms, 100 datasets (three where `quick`)."""
    report: Report = reproduce("which-margin", quick=quick, threads=threads, progress=progress)[0]
    return report
