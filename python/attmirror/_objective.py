"""Models of your own: a loss and its gradient on NumPy arrays, trained by any optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _core, _html
from ._arrays import Floats, PathLike, floats, numbers
from ._progress import Progress
from ._settings import Init, Record, folder_options, record_word, start_of
from .optimizers import Optimizer

Gradients = Union[npt.ArrayLike, Mapping[str, npt.ArrayLike]]


class Objective:
    """A model of your own: what any optimizer minimizes in place of attention.

    >>> def logistic(w):
    ...     margins = y * (X @ w)
    ...     return np.logaddexp(0, -margins).mean(), -(X.T @ (y / (1 + np.exp(margins)))) / len(y)
    >>> run = am.Objective(logistic, {"w": (3,)}, data={"X": X, "y": y}).descend(am.GradientDescent(), steps=100)

    Parameters
    ----------
    function : callable
        Takes the blocks as arrays, in the order of `blocks`, and returns the loss and its gradient: one array for one
        block, else a tuple or a dict with one for each.
    blocks : dict
        The shape of each block: (n,) or (n, m).
    data : dict of arrays, optional
        The numbers that the loss is made of, so that a run is resumed with the same ones only.
    kind : str
        What config.json of a run calls the model.
    bounded : bool
        Whether the loss has the lower bound 0, which Polyak's step aims at.
    """

    def __init__(
        self,
        function: Callable[..., tuple[float, Gradients]],
        blocks: Mapping[str, tuple[int, ...] | int],
        *,
        data: Mapping[str, npt.ArrayLike] | None = None,
        kind: str = "own objective",
        bounded: bool = False,
    ) -> None:
        self._function = function
        self._shapes = {name: (shape,) if isinstance(shape, int) else tuple(shape) for name, shape in blocks.items()}
        self._data = {name: numbers(values, name) for name, values in (data or {}).items()}
        self._kind = kind
        self._bounded = bounded

    def _evaluate(self, weights: dict[str, Floats]) -> tuple[float, dict[str, Floats]]:
        loss, gradients = self._function(*weights.values())
        if isinstance(gradients, Mapping):
            by_name = dict(gradients)
        elif isinstance(gradients, tuple):
            by_name = dict(zip(self._shapes, gradients))
        else:
            by_name = {next(iter(self._shapes)): gradients}
        for name in self._shapes:
            if name not in by_name:
                raise ValueError(f"the objective returned no gradient of {name}")
        return float(loss), {name: floats(values, name) for name, values in by_name.items()}

    def descend(
        self,
        optimizer: Optimizer,
        steps: int | None = None,
        *,
        init: Init | None = None,
        init_seed: int | None = None,
        max_seconds: float | None = None,
        record: str | int | Sequence[int] | None = None,
        keep: str | None = None,
        callback: Callable[[Record], object] | None = None,
        progress: bool = False,
        out: PathLike | None = None,
        resume: bool = False,
        overwrite: bool = False,
        checkpoint_every: float | None = None,
    ) -> ObjectiveRun:
        """Trains it; the arguments are those of attmirror.descend()."""
        word, start = start_of(init, None)
        settings = {"steps": steps, "init": word, "init_seed": init_seed, "max_seconds": max_seconds,
                    "record": record_word(record), "keep": keep}
        on_record = None if callback is None else (lambda fields: callback(Record(*fields)))
        bar = Progress("descend") if progress else None
        on_pulse = None
        if bar is not None:
            shown, total = bar, 1000 if steps is None else max(int(steps), 1)
            on_pulse = lambda now: shown.update(now[0] / total, f"loss {now[1]:.3g}")  # noqa: E731
        try:
            return ObjectiveRun(_core.descend_objective(
                self._evaluate, self._shapes, self._kind, self._data, self._bounded, optimizer._handle, settings, start,
                on_record, on_pulse, folder_options(out, resume, overwrite, checkpoint_every)), optimizer)
        finally:
            if bar is not None:
                bar.close()


class ObjectiveRun:
    """A training of an Objective: status, steps, loss, norm, parameters by name, and the trace."""

    def __init__(self, outcome: Any, optimizer: Optimizer) -> None:
        self.status: str = outcome[0]
        self.steps: int = outcome[1]
        self.loss: float = outcome[2]
        self.norm: float = outcome[3]
        self.seconds: float = outcome[4]
        self.parameters: dict[str, Floats] = outcome[5]
        self.optimizer = optimizer
        records = outcome[6]
        self.trace: dict[str, npt.NDArray[Any]] = {
            "step": np.array([record[0] for record in records], dtype=np.int64),
            "loss": np.array([record[1] for record in records]),
            "norm": np.array([record[2] for record in records]),
        }
        for name in self.parameters:
            if all(name in record[3] for record in records):
                self.trace[name] = np.array([record[3][name] for record in records])

    def __getitem__(self, name: str) -> Floats:
        return self.parameters[name]

    def __repr__(self) -> str:
        return f"<attmirror.ObjectiveRun: {self.status} after {self.steps} steps, loss {self.loss:.6g}>"

    def _repr_html_(self) -> str:
        rows = [("optimizer", repr(self.optimizer)), ("status", self.status), ("steps", self.steps), ("loss", self.loss)]
        return _html.facts("Run of an objective", rows)
