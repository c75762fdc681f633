"""Max-margin problems: the directions that training converges to, with a proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Union, overload

import numpy as np
import numpy.typing as npt

from . import _core, _html
from ._arrays import Floats, Ints, Norm, PathLike, floats, path_text, token_indices
from ._data import Dataset
from ._descent import Run

Tokens = Union[npt.ArrayLike, Run, str, None]


@dataclass(frozen=True)
class Certificate:
    """What an answer is worth, re-checked from the raw data by code that shares nothing with the solvers.

    No feasible W has a norm below `dual`; `gap` is (norm - dual) / norm. `certified` means that W satisfies the
    constraints and the gap is at most `tol`.
    """

    norm: float
    dual: float
    gap: float
    worst_margin: float
    worst_violation: float
    feasible: bool
    certified: bool
    tol: float


class MarginSolution:
    """The smallest weights that separate the selected tokens from all others, with a certificate.

    Attributes
    ----------
    W : array
        (d, d), or (d,) for a prompt or a decoder; NaN where the problem is infeasible.
    norm, dual, gap : float
        ||W||, the proved lower bound, and (norm - dual) / norm.
    status : str
        "certified", "infeasible" or "stopped".
    support : array (k, 3)
        Sequence, query and token of each constraint that holds with equality.
    """

    def __init__(self, handle: _core.MarginSolution) -> None:
        self._handle = handle

    @cached_property
    def W(self) -> Floats:
        return self._handle.W()  # type: ignore[no-any-return]

    @property
    def status(self) -> str:
        """One of "certified", "infeasible" or "stopped"."""
        return self._handle.status

    @property
    def problem(self) -> str:
        """"attention", "prompt", "decoder", ..."""
        return self._handle.problem

    @property
    def kind(self) -> Norm:
        """Which norm: a number for an entrywise one, or its name."""
        return self._handle.kind  # type: ignore[no-any-return]

    @property
    def norm(self) -> float:
        """The norm of W."""
        return self._handle.norm

    @property
    def dual(self) -> float:
        """The lower bound that lambda proves for the norm of every solution."""
        return self._handle.dual

    @property
    def gap(self) -> float:
        """(norm - dual) / norm: no solution is smaller by more than this share."""
        return self._handle.gap

    @property
    def margin(self) -> float:
        """The largest margin of any direction, 1 / norm."""
        return 1 / self.norm if self.norm else float("inf")

    @property
    def seconds(self) -> float:
        """How long the solver worked."""
        return self._handle.seconds

    @property
    def iterations(self) -> int:
        """Newton steps."""
        return self._handle.iterations

    @property
    def method(self) -> str:
        """Which solver found it."""
        return self._handle.method

    @property
    def reason(self) -> str:
        """Why it stopped, where it did."""
        return self._handle.reason

    @cached_property
    def lambda_(self) -> Floats:
        """A multiplier for each constraint, or the proof of infeasibility."""
        return self._handle.multipliers()  # type: ignore[no-any-return]

    @cached_property
    def tokens(self) -> Ints | None:
        """The selected tokens."""
        return self._handle.tokens()  # type: ignore[no-any-return]

    @cached_property
    def constraints(self) -> Ints:
        """(m, 3): sequence, query and token of each constraint."""
        return self._handle.constraints()  # type: ignore[no-any-return]

    @cached_property
    def support(self) -> Ints:
        """(k, 3): those that hold with equality."""
        return self._handle.support()  # type: ignore[no-any-return]

    @cached_property
    def conflict(self) -> Ints:
        """Of an infeasible problem, (k, 3): the constraints that contradict each other."""
        return self._handle.conflict()  # type: ignore[no-any-return]

    @cached_property
    def singular_values(self) -> Floats:
        return self._handle.singular_values()  # type: ignore[no-any-return]

    @property
    def locally_optimal(self) -> bool | None:
        """Whether training that starts near this direction stays there; None where the question makes no sense."""
        return self._handle.locally_optimal()  # type: ignore[no-any-return]

    @property
    def unique(self) -> bool:
        """False for the norms 1, inf and "spectral", whose problems have many solutions: this is one of them."""
        return self._handle.unique

    @cached_property
    def data(self) -> Dataset:
        return Dataset._of(self._handle.data)

    def verify(self) -> Certificate:
        """Checks it anew, from the raw data."""
        return Certificate(**self._handle.verify())

    def save(self, path: PathLike) -> None:
        """Writes the svm.npz that the command reads."""
        self._handle.save(path_text(path))

    def report(self) -> str:
        """Several lines: how it was found and how good it is."""
        return self._handle.report()

    def __reduce__(self) -> tuple[Any, ...]:
        return (MarginSolution, (self._handle,))

    def __repr__(self) -> str:
        return f"<attmirror.MarginSolution: {self._handle.brief()}>"

    def _repr_html_(self) -> str:
        rows = [("status", self.status), ("norm", str(self.kind)), ("value", self.norm), ("gap", f"{self.gap:.1e}"),
                ("support tokens", len(self.support)), ("found by", self.method), ("seconds", self.seconds)]
        return _html.facts(f"Max-margin solution of the {self.problem} problem", rows)


class MarginSolutions(Sequence[MarginSolution]):
    """The answers of max_margin_many(), in order. `norm`, `gap` and `status` are arrays over all of them."""

    def __init__(self, handles: list[_core.MarginSolution]) -> None:
        self._handles = handles

    @overload
    def __getitem__(self, index: int) -> MarginSolution: ...
    @overload
    def __getitem__(self, index: slice) -> MarginSolutions: ...
    def __getitem__(self, index: int | slice) -> MarginSolution | MarginSolutions:
        if isinstance(index, slice):
            return MarginSolutions(self._handles[index])
        return MarginSolution(self._handles[index])

    def __len__(self) -> int:
        return len(self._handles)

    @property
    def norm(self) -> Floats:
        """The norm of each solution."""
        return np.array([handle.norm for handle in self._handles])

    @property
    def gap(self) -> Floats:
        """The gap of each solution."""
        return np.array([handle.gap for handle in self._handles])

    @property
    def status(self) -> list[str]:
        """The status of each solution."""
        return [handle.status for handle in self._handles]

    @property
    def certified(self) -> int:
        """How many are certified."""
        return sum(handle.status == "certified" for handle in self._handles)

    def __repr__(self) -> str:
        return f"<attmirror.MarginSolutions: {len(self)}, of which {self.certified} are certified>"


def _selection(tokens: Tokens) -> Ints | None:
    """An array, those of a run, or None (or "optimal") for the tokens with the best scores."""
    if tokens is None:
        return None
    if isinstance(tokens, Run):
        return tokens.selected_tokens
    if isinstance(tokens, str):
        if tokens != "optimal":
            raise ValueError(f'tokens is "{tokens}": expected a token for each query, a run, or "optimal"')
        return None
    return token_indices(tokens)


def _matrix(values: Any, name: str) -> Floats | None:
    return None if values is None else floats(values, name)


def max_margin(
    data: Dataset,
    tokens: Tokens = None,
    norm: Norm = 2.0,
    *,
    problem: str = "attention",
    key_weights: Any = None,
    kept: Sequence[npt.ArrayLike] | None = None,
    logits: Sequence[npt.ArrayLike] | None = None,
    tol: float | None = None,
    max_norm: float | None = None,
    max_iterations: int | None = None,
    max_seconds: float | None = None,
    method: str | None = None,
    generation: str | None = None,
    threads: int | None = None,
    max_rank: int | None = None,
    start: MarginSolution | None = None,
    bounds: Any = None,
    decoder_norm: Norm = 2.0,
) -> MarginSolution:
    """The smallest weights that give the selected tokens a margin of 1 over all others.

    >>> svm = am.max_margin(data, run.selected_tokens, norm=1.1)
    >>> svm.W, svm.norm, svm.gap, svm.status

    Parameters
    ----------
    data : Dataset
    tokens : array, Run or "optimal"
        A token for each query; those that a run selected; or (the default) those with the best scores.
    norm : float or str
        1 to inf for an entrywise norm, or "frobenius", "nuclear", "spectral", "schatten:P".
    problem : str
        "attention", "prompt", "decoder"; "relaxed", the problem of what was trained together with v: of W where
        `tokens` is a run of W or of K and Q, and of a prompt otherwise; "general-direction" (with `kept`) and
        "general-finite" (with `kept` and `logits`), where attention keeps several tokens.
    key_weights : array (d, d)
        Of a prompt.
    tol : float
        The relative gap to reach: 1e-10 for l_p with 1 < p < inf, 1e-8 for the others.
    max_norm, max_iterations, max_seconds : float
        Limits, after which the status is "infeasible" (proved) or "stopped".
    method : "auto", "active-set" or "interior-point"
    generation : "auto", "on" or "off"
        Solve with few constraints and add those that are violated.
    threads : int
        For one large problem; 0: as many as the machine has.
    max_rank : int
        For the nuclear norm.
    start : MarginSolution
        The answer for a near norm or selection.
    bounds : array
        For "attention" and "prompt": the bounds of the constraints, one for each query; 1 by default.
    decoder_norm : float or str
        For "relaxed": the norm of the decoder's problem, whose support vectors keep the bound 1.
    """
    if problem == "relaxed" and isinstance(tokens, Run) and tokens.params != "prompt":
        problem = "relaxed-attention"
    options = {"tol": tol, "max_norm": max_norm, "max_iterations": max_iterations, "max_seconds": max_seconds,
               "method": method, "generation": generation, "threads": threads, "max_rank": max_rank}
    kept_list = None if kept is None else [token_indices(row, "kept") for row in kept]
    logits_list = None if logits is None else [floats(row, "logits") for row in logits]
    return MarginSolution(_core.max_margin(data._handle, problem, _selection(tokens), norm, options,
                                           _matrix(key_weights, "key_weights"), kept_list, logits_list,
                                           None if start is None else start._handle,
                                           None if bounds is None else floats(bounds, "bounds"), decoder_norm))


def max_margin_many(
    data: Dataset | Sequence[Dataset],
    tokens: Any = None,
    norm: Norm | Sequence[Norm] = 2.0,
    *,
    problem: str = "attention",
    threads: int = 0,
    tol: float | None = None,
    max_seconds: float | None = None,
    method: str | None = None,
) -> MarginSolutions:
    """Many max-margin problems over threads; each answer has the bits of max_margin().

    `data`, `tokens` and `norm` are each one for all problems or a list with one for each: 1,000 selections of one
    dataset, one selection in ten norms, or the runs of a study with their data.
    """
    many_data = None if isinstance(data, Dataset) else list(data)
    many_norms = None if isinstance(norm, (int, float, str)) else list(norm)
    many_tokens: list[Any] | None = None
    if tokens is not None and not isinstance(tokens, (str, Run)):
        array = isinstance(tokens, np.ndarray)
        queries = data.queries if isinstance(data, Dataset) else -1
        if (array and (tokens.ndim == 1 or (tokens.size == queries and len(tokens) != queries))) or (
                not array and len(tokens) > 0 and isinstance(tokens[0], (int, np.integer))):
            tokens = token_indices(tokens)
        else:
            many_tokens = [_selection(entry) for entry in tokens]
    one = _selection(tokens) if many_tokens is None else None
    counts = {len(entries) for entries in (many_data, many_norms, many_tokens) if entries is not None}
    if len(counts) > 1:
        raise ValueError(f"data, tokens and norm have {sorted(counts)} entries: expected equal numbers, or one for all")
    count = counts.pop() if counts else 1
    tasks = [
        (
            (data if many_data is None else many_data[i])._handle,  # type: ignore[union-attr]
            one if many_tokens is None else many_tokens[i],
            norm if many_norms is None else many_norms[i],
        )
        for i in range(count)
    ]
    options = {"threads": threads, "tol": tol, "max_seconds": max_seconds, "method": method}
    return MarginSolutions(_core.max_margin_many(tasks, problem, options))


def verify(
    data: Dataset | MarginSolution,
    tokens: Tokens = None,
    norm: Norm = 2.0,
    W: Any = None,
    lambda_: Any = None,
    *,
    problem: str = "attention",
    key_weights: Any = None,
    tol: float | None = None,
) -> Certificate:
    """Checks an answer from the raw data, whoever found it: a MarginSolution, or weights with their multipliers.

    >>> am.verify(svm).certified
    >>> am.verify(data, tokens, 1.5, W=W, lambda_=multipliers).gap
    """
    if isinstance(data, MarginSolution):
        return data.verify()
    if W is None or lambda_ is None:
        raise TypeError("verify() needs the weights W and the multipliers lambda_: without multipliers nothing bounds the norm from below")
    return Certificate(**_core.verify(data._handle, problem, _selection(tokens), norm, floats(W, "W"),
                                      floats(lambda_, "lambda_"), _matrix(key_weights, "key_weights"), tol))


def load_solution(path: PathLike, data: Dataset) -> dict[str, Any]:
    """What an svm.npz holds: problem, kind, W, lambda_, tokens and key_weights, None where it has none."""
    names = ("problem", "kind", "W", "lambda_", "tokens", "key_weights")
    return dict(zip(names, _core.load_solution(path_text(path), data._handle)))
