"""On which tokens can training end? Attractors, whole and partial, each with a certificate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from . import _core, _html
from ._arrays import Floats, Ints, Norm, floats
from ._data import Dataset
from ._progress import Progress


@dataclass(frozen=True)
class Confirmation:
    """What a descent that began close to an attractor came to.

    `stayed` says whether it is still on the attractor's tokens, `correlation` how close its last weights are to the
    direction, and `lead` how far the nearest token of another score is behind, in logits.
    """

    stayed: bool
    correlation: float
    lead: float


@dataclass(frozen=True, eq=False)
class Attractor:
    """A direction that attracts descent, and the tokens on which training then ends.

    `kind` is "whole" if every query has a best token and "partial" otherwise. `held` are the queries that have one (the
    set S), and `deficits` names for each of the others (query, token, size): the nearest better token and how far it is
    behind, in units of the margin. `W` is the max-margin solution over worse tokens (a vector for a prompt), `lambda_` its
    multipliers and `gap` its certificate. `least_deficit` is above 1 by more than `deficit_error`, what the gap leaves open.
    `locally_optimal` says whether the tokens are also locally optimal as in the papers, which demand a margin over tokens
    of equal score, too. `starts` counts the random starts that end here; `plain`, `normalized` and `flow` are the descents
    that began close to it, and `confirmed` says whether all of them stayed.
    """

    kind: str
    tokens: Ints
    held: Ints
    deficits: list[tuple[int, int, float]]
    W: Floats = field(repr=False)
    lambda_: Floats = field(repr=False)
    norm: float
    gap: float
    least_margin: float
    least_deficit: float
    deficit_error: float
    certified: bool
    locally_optimal: bool
    starts: int | None
    confirmed: bool | None
    plain: Confirmation | None = field(repr=False)
    normalized: Confirmation | None = field(repr=False)
    flow: Confirmation | None = field(repr=False)


@dataclass(frozen=True)
class GlobalCondition:
    """Whether no two sequences compete: then gradient flow selects the best tokens from every start.

    `holds` needs all the others: it `applies` to W and prompts, each query has a `unique_best` token, all others have
    `equal_scores`, some weights select all best tokens (`feasible`), and what favors one best token never counts against
    another (`least_cosine` is not negative).
    """

    holds: bool
    applies: bool
    unique_best: bool
    equal_scores: bool
    feasible: bool
    least_cosine: float


@dataclass(frozen=True, eq=False)
class Attractors(Sequence[Attractor]):
    """The attractors of a dataset, the whole one first, then by margin.

    `complete` says that all choices of tokens were examined, so there are no others. `ends` is the place in this list of
    each random start's end; -1 where its attention is decided on other tokens, -2 where it is not decided. `conclusion` is
    the result in one sentence, and `notes` says more.
    """

    members: list[Attractor]
    complete: bool
    norm: Norm
    candidates: float
    examined: int
    infeasible: int
    undecided: int
    starts: int
    start_std: float
    ends: Ints = field(repr=False)
    condition: GlobalCondition
    conclusion: str
    notes: Sequence[str] = field(repr=False)

    @property
    def whole(self) -> Attractor | None:
        """The one on the best tokens, if some weights select them."""
        return next((one for one in self.members if one.kind == "whole"), None)

    @property
    def partial(self) -> Sequence[Attractor]:
        """Those that leave the best tokens of some queries behind."""
        return [one for one in self.members if one.kind == "partial"]

    @overload
    def __getitem__(self, index: int) -> Attractor: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Attractor]: ...

    def __getitem__(self, index: int | slice) -> Attractor | Sequence[Attractor]:
        return self.members[index]

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Attractor]:
        return iter(self.members)

    def _rows(self) -> Sequence[Sequence[str]]:
        return [[one.kind, " ".join(str(token) for token in one.tokens.flat), f"{one.norm:.6g}",
                 "–" if one.kind == "whole" else f"{one.least_deficit:.6g}", f"{one.gap:.1e}",
                 "–" if one.starts is None else str(one.starts)] for one in self.members]

    def __repr__(self) -> str:
        rows = [["attractor", "tokens", "norm", "deficit", "gap", "starts"], *self._rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(6)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, self.conclusion])

    def _repr_html_(self) -> str:
        return _html.table(self.conclusion, ["attractor", "tokens", "norm", "deficit", "gap", "starts"], self._rows())


def _confirmation(values: Any) -> Confirmation | None:
    return None if values is None else Confirmation(**values)


def attractors(
    data: Dataset,
    *,
    params: str = "W",
    p: float = 2.0,
    starts: int = 1000,
    start_std: float | None = None,
    seed: int = 0,
    max_candidates: int | None = None,
    search_starts: int | None = None,
    confirm: bool = True,
    rank: int | None = None,
    key_weights: Any = None,
    loss: str = "logistic",
    mask: str | None = None,
    threads: int = 0,
    progress: bool = False,
) -> Attractors:
    """Finds the directions that training can converge to, and how often it does.

    >>> am.attractors(data, params="prompt").partial

    Parameters
    ----------
    data : Dataset
        With a decoder, whose scores say which tokens are better.
    params : "W", "KQ" or "prompt"
        What is trained; `rank` is that of K and Q, `key_weights` those of a prompt.
    p : float
        The geometry of mirror descent; 2 is gradient descent, and K, Q take no other.
    starts : int
        Random starts to train from, with entries N(0, start_std²), by default such that a typical logit is 1.
    max_candidates, search_starts : int
        Up to so many choices of tokens are all examined (20,000); otherwise a search begins at so many random
        directions (1,000).
    confirm : bool
        Whether plain and normalized descent and the flow to time 1e300 start near each attractor.
    """
    settings = {"params": params, "p": p, "starts": starts, "start_std": start_std, "seed": seed,
                "max_candidates": max_candidates, "search_starts": search_starts, "confirm": confirm, "rank": rank,
                "loss": loss, "mask": mask}
    bar = Progress("attractors") if progress else None
    try:
        found = _core.attractors(data._handle, settings, None if key_weights is None else floats(key_weights, "key_weights"),
                                 threads, bar.update if bar else None)
    finally:
        if bar is not None:
            bar.close()
    if found.pop("interrupted"):
        raise KeyboardInterrupt
    members = [Attractor(**{**one, **{name: _confirmation(one[name]) for name in ("plain", "normalized", "flow")}})
               for one in found.pop("list")]
    return Attractors(members=members, condition=GlobalCondition(**found.pop("condition")), **found)
