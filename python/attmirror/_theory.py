"""Which assumptions of the papers' theorems hold on a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import _core, _html
from ._arrays import Ints, Norm, floats
from ._data import Dataset
from ._margin import Tokens, _selection


@dataclass(frozen=True)
class Assumption:
    """One assumption on one dataset: `status` is "holds", "fails", "open" or "does not apply".

    `value` is the number that decides (NaN where there is none), `meaning` the version that was checked, in one
    sentence, and `detail` says where the value is attained.
    """

    name: str
    status: str
    value: float
    meaning: str
    detail: str

    @property
    def holds(self) -> bool:
        """Whether it was proved to hold."""
        return self.status == "holds"


@dataclass(frozen=True)
class Theory(Mapping[str, Assumption]):
    """The assumptions by name: "unique best", "equal scores", "separable", "all support", "initial gradient",
    "label margin" and "small step".

    `tokens` are those that are to be selected, `norm` is that of their max-margin problem, and `lipschitz` the constant
    L of the gradient, or None.
    """

    tokens: Ints
    norm: Norm
    lipschitz: float | None
    assumptions: tuple[Assumption, ...]

    def __getitem__(self, name: str) -> Assumption:
        for one in self.assumptions:
            if one.name == name:
                return one
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (one.name for one in self.assumptions)

    def __len__(self) -> int:
        return len(self.assumptions)

    def __repr__(self) -> str:
        return "\n".join(f"{one.name:<17} {one.status:<15} {one.value:>11.4g}  {one.detail}" for one in self.assumptions)

    def _repr_html_(self) -> str:
        rows = [[one.name, one.status, f"{one.value:.4g}", one.detail] for one in self.assumptions]
        return _html.table("Assumptions of the theorems", ["assumption", "", "value", "detail"], rows)


def theory(
    data: Dataset,
    tokens: Tokens = None,
    params: str = "W",
    *,
    key_weights: Any = None,
    loss: str = "logistic",
    lr: float | None = None,
    start: Mapping[str, Any] | None = None,
    threads: int = 1,
) -> Theory:
    """Checks the assumptions of the papers' theorems on data, in versions that can be decided.

    >>> checks = am.theory(data, lr=0.1)
    >>> checks["separable"].holds, checks["small step"].value

    Parameters
    ----------
    data : Dataset
    tokens : array, Run or "optimal"
        The tokens that are to be selected; by default those with the best scores.
    params : "W", "KQ" or "prompt"
        What is trained. The max-margin problem of K and Q is that of the nuclear norm.
    key_weights : array (d, d)
        Of a prompt.
    loss : str
        "logistic", "exponential", "linear" or "sigmoid".
    lr : float
        The step size of plain gradient descent, to be compared with 1/L.
    start : dict
        The blocks from which descent starts, {"W": ...}; 0 by default.
    threads : int
        For the max-margin problem.
    """
    blocks = None if start is None else {name: floats(values, name) for name, values in start.items()}
    found = _core.theory(data._handle, _selection(tokens), params,
                         None if key_weights is None else floats(key_weights, "key_weights"), loss, lr, blocks, threads)
    return Theory(found["tokens"], found["norm"], found["lipschitz"], tuple(Assumption(**one) for one in found["checks"]))
