"""The published experiments, and our numbers beside theirs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _core, _html
from ._arrays import PathLike, path_text
from ._progress import Progress


@dataclass(frozen=True)
class Experiment:
    """A published experiment: what of which paper, and how long it takes."""

    id: str
    paper: str
    item: str
    title: str
    summary: str
    seconds: float
    quick_seconds: float
    out_of_scope: str


@dataclass(frozen=True)
class Finding:
    """One published number beside ours, with its verdict."""

    quantity: str
    published: Any
    ours: Any
    verdict: str
    note: str


@dataclass(frozen=True)
class Report:
    """What came out of one experiment; `details` is everything, as results/ID.json has it."""

    id: str
    title: str
    outcome: str
    seconds: float
    findings: list[Finding]
    details: dict[str, Any] = field(repr=False)

    def count(self, verdict: str) -> int:
        """How many findings have this verdict: reproduced, inconclusive, artefact, differs or new."""
        return sum(finding.verdict == verdict for finding in self.findings)


class Reproduction(Sequence[Report]):
    """The reports of reproduce(), in order."""

    def __init__(self, reports: list[Report], summary: str, folder: str) -> None:
        self.reports = reports
        self.summary = summary
        self.folder = folder

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            for report in self.reports:
                if report.id == index:
                    return report
            raise KeyError(index)
        return self.reports[index]

    def __len__(self) -> int:
        return len(self.reports)

    def count(self, verdict: str) -> int:
        return sum(report.count(verdict) for report in self.reports)

    def frame(self) -> Any:
        """One row per finding, as a pandas frame."""
        import pandas  # type: ignore[import-untyped, unused-ignore]

        return pandas.DataFrame([
            {"experiment": report.id, "quantity": finding.quantity, "published": finding.published,
             "ours": finding.ours, "verdict": finding.verdict, "note": finding.note}
            for report in self.reports for finding in report.findings])

    def __repr__(self) -> str:
        return f"<attmirror.Reproduction: {self.summary}>"

    def _repr_html_(self) -> str:
        rows = [(report.id, report.outcome, len(report.findings), report.count("reproduced"), report.count("differs"))
                for report in self.reports]
        return _html.table(self.summary, ["experiment", "outcome", "numbers", "reproduced", "differ"], rows)


def experiments() -> list[Experiment]:
    """All published experiments that reproduce() knows."""
    return [Experiment(*entry) for entry in _core.experiments()]


def _report(entry: tuple[str, list[str]]) -> Report:
    details = json.loads(entry[0])
    found = details.get("findings", details.get("result", {}).get("findings", []))
    findings = [
        Finding(one.get("quantity", ""), one.get("published", one.get("published_text")),
                one.get("ours_text") or one.get("ours"), verdict, one.get("note", ""))
        for one, verdict in zip(found, entry[1])
    ]
    info = details.get("info", details)
    return Report(info["id"], info.get("title", ""), details.get("outcome", ""), float(details.get("seconds", 0)),
                  findings, details)


def reproduce(
    ids: str | Sequence[str] = "all",
    *,
    quick: bool = False,
    out: PathLike | None = None,
    threads: int = 0,
    again: bool = False,
    progress: bool = False,
) -> Reproduction:
    """Reruns published experiments and judges each number: reproduced, inconclusive, artefact, differs or new.

    Parameters
    ----------
    ids : "all", an id or several
        experiments() lists them.
    quick : bool
        Fewer seeds or sizes: a smoke test.
    out : path
        Keep results and report.html in this folder; what is there already is taken over unless `again`.
    """
    chosen = [] if ids == "all" else [ids] if isinstance(ids, str) else list(ids)
    bar = Progress("reproduce") if progress else None
    on_progress = None
    if bar is not None:
        shown = bar
        on_progress = lambda now: shown.update(now[3], now[0])  # noqa: E731
    folder = "" if out is None else path_text(out)
    try:
        entries, summary = _core.reproduce(chosen, quick, threads, folder, again, on_progress)
    finally:
        if bar is not None:
            bar.close()
    return Reproduction([_report(entry) for entry in entries], summary, folder)


def report(sources: PathLike | Sequence[PathLike], out: PathLike) -> None:
    """Writes an HTML page about run folders, paths, sweeps, solutions or a reproduction, as the command does."""
    listed = [sources] if isinstance(sources, (str, bytes)) or hasattr(sources, "__fspath__") else list(sources)
    _core.report([path_text(source) for source in listed], path_text(out))
