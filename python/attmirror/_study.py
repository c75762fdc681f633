"""Studies: optimizers on one dataset, from several starts, held against their max-margin solutions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from . import _core
from ._arrays import PathLike, path_text
from ._data import Dataset, load_dataset
from ._sweep import SweepResults, sweep

_MARK = "# Written by attmirror study"


@dataclass(frozen=True)
class Study:
    """What study() left in its folder: `sweep.toml`, `results.db` and `report.html`."""

    folder: str
    conclusion: str
    results: SweepResults

    @property
    def report(self) -> str:
        """The path of the page."""
        return os.path.join(self.folder, "report.html")


def study(
    data: Dataset | PathLike,
    out: PathLike,
    *,
    optimizers: Sequence[str] = ("md", "gd", "sign", "adam:0.95"),
    p: Sequence[float] | None = None,
    seeds: int = 10,
    steps: int = 20_000,
    lr: float | None = None,
    resume: bool = False,
    overwrite: bool = False,
    threads: int = 0,
    progress: bool = False,
) -> Study:
    """Trains, solves the max-margin problems, compares and writes a page, as `attmirror study` does.

    >>> done = am.study("own.npz", "study/", optimizers=["md", "gd", "sign"], p=[1.1, 1.5, 3], seeds=10)
    >>> print(done.conclusion)
    >>> done.results.frame()

    Parameters
    ----------
    data : path or Dataset
        A Dataset that is not in a file is saved as data.npz in the folder.
    out : path
        The folder.
    optimizers : list of words
        Those of `train --optimizer`, and md:P, steepest:NORM, adam:BETA2.
    p : list
        Those of md; 1.1, 1.75 and 3 without it.
    seeds : int
        Random starts of each optimizer.
    lr : float
        For all optimizers; by the scale of the data without it.
    resume, overwrite : bool
        Go on with the study that is in the folder, or replace it.
    """
    folder = path_text(out)
    file = os.path.join(folder, "sweep.toml")
    if os.path.exists(file):
        with open(file, encoding="utf-8", errors="replace") as there:
            if not there.read(len(_MARK)) == _MARK:
                raise ValueError(f"{file} is there already and was not written by attmirror study: give another folder")
    path = None if isinstance(data, Dataset) else path_text(data)
    dataset = data if isinstance(data, Dataset) else load_dataset(data)
    chosen = [] if p is None and "md" not in optimizers else list(p if p is not None else (1.1, 1.75, 3))
    name = "data.npz" if path is None else os.path.relpath(path, folder)
    text = _core.study_file(dataset._handle, name, list(optimizers), chosen, seeds, steps, lr)
    os.makedirs(folder, exist_ok=True)
    if path is None:
        dataset.save(os.path.join(folder, "data.npz"))
    database = os.path.join(folder, "results.db")
    if os.path.exists(database) and not (resume or overwrite):
        raise ValueError(f"{database} is there already: give resume=True to go on with it, overwrite=True to replace it, "
                         "or another folder")
    with open(file, "w", encoding="utf-8") as written:
        written.write(text)
    results = sweep(file, database, resume=resume and os.path.exists(database), overwrite=overwrite, threads=threads,
                    progress=progress)
    return Study(folder, _core.study_report(folder, os.path.basename(path or name), text), results)
