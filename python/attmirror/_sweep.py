"""Sweeps: thousands of trainings, each with its max-margin problems, in one database."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _html
from ._arrays import PathLike, path_text
from ._progress import Progress


def _toml_value(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return "inf" if value == float("inf") else repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        escaped = "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
        return f'"{escaped}"'
    if isinstance(value, range):
        value = list(value)
    if isinstance(value, (Sequence, np.ndarray)):
        return "[" + ", ".join(_toml_value(entry) for entry in value) + "]"
    raise TypeError(f"{value!r} cannot stand in a sweep: expected a number, a text, a truth value or a list of them")


def to_toml(plan: Mapping[str, Any]) -> str:
    """The sweep file that a dict stands for: tables are dicts, [[zip]] and [[list]] are lists of dicts."""
    plain = {key: value for key, value in plan.items() if not isinstance(value, Mapping) and not _is_tables(value)}
    lines = [f"{key} = {_toml_value(value)}" for key, value in plain.items()]
    _append_tables(lines, {key: value for key, value in plan.items() if key not in plain}, "")
    return "\n".join(lines) + "\n"


def _is_tables(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0 and isinstance(value[0], Mapping)


def _append_tables(lines: list[str], tables: Mapping[str, Any], prefix: str) -> None:
    for name, value in tables.items():
        for table in value if _is_tables(value) else [value]:
            lines.append(f"\n[[{prefix}{name}]]" if _is_tables(value) else f"\n[{prefix}{name}]")
            inner = {key: entry for key, entry in table.items() if isinstance(entry, Mapping) or _is_tables(entry)}
            lines.extend(f"{key} = {_toml_value(entry)}" for key, entry in table.items() if key not in inner)
            _append_tables(lines, inner, f"{prefix}{name}.")


class SweepResults:
    """The database of a sweep: one row per run.

    frame() is a pandas frame with one row per run; column() one column as an array; arrays() the curves or weights of
    all runs; `path` is the SQLite file, which any program can read, also while the sweep runs.
    """

    def __init__(self, path: PathLike, outcome: dict[str, Any] | None = None) -> None:
        self.path = path_text(path)
        header = _core.sweep_header(self.path)
        self.name: str = header["name"]
        self.axes: list[str] = header["axes"]
        self.settings: list[str] = header["settings"]
        self.metrics: list[str] = header["metrics"]
        self.array_names: list[str] = header["arrays"]
        self._outcome = outcome or {}

    @property
    def computed(self) -> int:
        """Runs that this call computed; the others were there."""
        return int(self._outcome.get("computed", 0))

    @property
    def interrupted(self) -> bool:
        """Whether the sweep was stopped before its last run."""
        return bool(self._outcome.get("interrupted", False))

    def __len__(self) -> int:
        return int(_core.sweep_header(self.path)["count"])

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All columns: numbers as float64 or int64 arrays (NaN where there is none), texts as objects."""
        result: dict[str, npt.NDArray[Any]] = {}
        for name, kind, values in _core.sweep_columns(self.path):
            if kind == "text":
                result[name] = np.array(values, dtype=object)
            elif kind == "integer" and None not in values:
                result[name] = np.array(values, dtype=np.int64)
            else:
                result[name] = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        return result

    def column(self, name: str) -> npt.NDArray[Any]:
        """One column, by its name."""
        columns = self.columns()
        if name not in columns:
            raise KeyError(f"there is no column {name}: expected one of {', '.join(columns)}")
        return columns[name]

    def frame(self, library: str = "pandas") -> Any:
        """All runs as a frame of pandas or polars."""
        if library == "pandas":
            import pandas  # type: ignore[import-untyped, unused-ignore]

            return pandas.DataFrame(self.columns())
        if library == "polars":
            import polars  # type: ignore[import-not-found, unused-ignore]

            return polars.DataFrame({name: values.tolist() for name, values in self.columns().items()}, strict=False)
        raise ValueError(f'library is "{library}": expected pandas or polars')

    def arrays(self, name: str) -> list[npt.NDArray[np.float64] | None]:
        """A curve ("loss", "own.bregman", ...) or weights of every run; None for a run without."""
        return _core.sweep_arrays(self.path, name)

    def summary(self, group_by: Sequence[str] = (), metrics: Sequence[str] = ()) -> Any:
        """Mean, deviation, standard error and quantiles of metrics over groups of runs, as a pandas frame."""
        import pandas  # type: ignore[import-untyped, unused-ignore]

        _, columns, rows = _core.sweep_summary(self.path, list(group_by), list(metrics))
        frame = pandas.DataFrame(rows, columns=columns)
        for column in frame.columns:
            try:
                frame[column] = pandas.to_numeric(frame[column])
            except (ValueError, TypeError):
                continue
        return frame

    def plot(self, x: str | None = None, y: str | None = None, ax: Any = None) -> Any:
        """A metric against an axis of the sweep: median, and the range of four runs of five. Returns a figure."""
        from .plots import plot_sweep

        return plot_sweep(self, x=x, y=y, ax=ax)

    def __repr__(self) -> str:
        return f"<attmirror.SweepResults: {len(self)} runs over {', '.join(self.axes) or 'no axes'}, in {self.path}>"

    def _repr_html_(self) -> str:
        rows = [("runs", len(self)), ("axes", ", ".join(self.axes)), ("metrics", ", ".join(self.metrics)),
                ("file", self.path)]
        return _html.facts(f"Sweep {self.name}", rows)


def sweep(
    plan: Mapping[str, Any] | PathLike,
    out: PathLike | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    threads: int = 0,
    progress: bool = False,
) -> SweepResults:
    """Runs a sweep: a TOML file, or the same as a dict.

    >>> results = am.sweep({"data": {"samples": 6, "tokens": 8, "dim": 10},
    ...                     "train": {"normalized": True, "steps": 1500},
    ...                     "grid": {"seed": range(1, 101), "p": [1.75, 2, 3]},
    ...                     "record": {"solutions": ["own"]}})
    >>> results.frame().groupby("p")["own.bregman"].mean()

    Parameters
    ----------
    plan : dict or path
        docs/sweep.md has all keys.
    out : path
        The SQLite file. Without it, one in a temporary folder that goes with the result.
    resume, overwrite : bool
        Go on with the sweep that is in the file, or replace it.
    """
    if resume and overwrite:
        raise ValueError("both resume and overwrite are given: expected one of them")
    if isinstance(plan, Mapping):
        text, name, folder = to_toml(plan), "sweep", os.getcwd()
    else:
        name = path_text(plan)
        with open(name, encoding="utf-8") as file:
            text = file.read()
        folder = os.path.dirname(os.path.abspath(name))
    temporary = None
    if out is None:
        temporary = tempfile.mkdtemp(prefix="attmirror-sweep-")
        out = os.path.join(temporary, "results.db")
    bar = Progress("sweep") if progress else None
    on_pulse = None
    if bar is not None:
        shown = bar
        on_pulse = lambda now: shown.update(now[0] / max(now[1], 1), f"{now[0]} of {now[1]} runs")  # noqa: E731
    try:
        outcome = _core.sweep(text, name, folder, path_text(out),
                              "resume" if resume else "overwrite" if overwrite else "create", threads, on_pulse)
        results = SweepResults(out, outcome)
    except BaseException:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        if bar is not None:
            bar.close()
    if temporary is not None:
        weakref.finalize(results, shutil.rmtree, temporary, True)
    return results


def load_sweep(path: PathLike) -> SweepResults:
    """The results of a sweep, of the command's too."""
    return SweepResults(path)
