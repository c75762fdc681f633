"""Regularization paths and mirror flow: what theory compares training with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _core, _html
from ._arrays import Floats, Ints, Norm, PathLike, blocks, floats, path_text
from ._data import Dataset
from ._progress import Progress
from ._settings import Init, is_file, start_of, train_word

Radii = Union[str, npt.ArrayLike, None]


@dataclass(frozen=True)
class Path:
    """The least loss within balls of growing radius; arrays have one entry per radius.

    `blocks` has the weights, first axis = radius; `W` is blocks["W"]. `status` says of each radius whether it
    converged; `gap` is its stationarity gap.
    """

    norm: Norm
    radius: Floats
    loss: Floats
    log_loss: Floats
    max_softmax: Floats
    gap: Floats
    status: list[str]
    selected: list[Ints]
    blocks: dict[str, Floats]
    start: Ints
    evaluations: Ints
    decoder_radius: Floats
    converged: bool
    interrupted: bool
    data: Dataset = field(repr=False)

    @property
    def W(self) -> Floats:
        """(radii, d, d); K Q^T of a KQ path."""
        if "K" in self.blocks:
            return np.asarray(np.einsum("rim,rjm->rij", self.blocks["K"], self.blocks["Q"]))
        return self.blocks["W"]

    def plot(self, solution: Any = None, axes: Any = None) -> Any:
        """Loss over the radius; with a solution, the distance of each direction from it. Returns a figure."""
        from .plots import plot_path

        return plot_path(self, solution=solution, axes=axes)

    def __len__(self) -> int:
        return len(self.radius)

    def _repr_html_(self) -> str:
        rows = list(zip(self.radius, self.loss, self.max_softmax, (f"{gap:.1e}" for gap in self.gap), self.status))
        return _html.table("Regularization path", ["radius", "loss", "largest probability", "gap", "status"], rows)


def _model_settings(**settings: Any) -> dict[str, Any]:
    settings["train"] = train_word(settings.get("train"))
    return {name: value for name, value in settings.items() if value is not None}


def path(
    data: Dataset,
    norm: Norm = 2.0,
    radii: Radii = None,
    *,
    kind: str = "global",
    start: Any = None,
    starts: int = 8,
    seed: int = 0,
    decoder_scale: float = 1.0,
    decoder_power: float = 1.0,
    tol: float = 1e-8,
    max_evaluations: int = 20_000,
    threads: int = 1,
    progress: bool = False,
    out: PathLike | None = None,
    overwrite: bool = False,
    params: str | None = None,
    rank: int | None = None,
    key_weights: Any = None,
    loss: str | None = None,
    head: str | None = None,
    mask: str | None = None,
    scaled: bool | None = None,
    penalty: float | None = None,
    train: str | Sequence[str] | None = None,
) -> Path:
    """Follows argmin { L(W) : ||W|| <= R } over growing radii R.

    Parameters
    ----------
    radii : "FROM:TO:COUNT" or an ascending array
        16 radii from 1 to 1000 without it.
    kind : "global" or "local"
        The best of several starts at each radius; or the one that follows `start`.
    start : array, dict of arrays or MarginSolution
        A direction to follow (local), or one more to try (global).
    starts, seed : int
        Random directions tried at each radius.
    out : path
        Keep the path in this folder, as the command does.

    Notes
    -----
    The other arguments are those of descend().
    """
    settings = _model_settings(params=params, rank=rank, loss=loss, head=head, mask=mask, scaled=scaled,
                               penalty=penalty, train=train)
    if key_weights is not None and is_file(key_weights):
        settings["key_weights"] = key_weights
        key_weights = None
    given: list[dict[str, Floats]] = []
    if start is not None:
        weights = getattr(start, "W", start)
        name = "p" if params == "prompt" else "W"
        given = [blocks(weights) if isinstance(weights, Mapping) else {name: floats(weights, name)}]
    where = radii if radii is None or isinstance(radii, str) else floats(radii, "radii")
    bar = Progress("path") if progress else None
    try:
        result = _core.path(
            data._handle, settings, None if key_weights is None else floats(key_weights, "key_weights"), norm, where,
            kind, decoder_scale, decoder_power, starts, seed, given, tol, max_evaluations, threads,
            bar.update if bar else None, None if out is None else (path_text(out), overwrite))
    finally:
        if bar is not None:
            bar.close()
    return Path(norm=norm, data=data, **result)


@dataclass(frozen=True)
class Flow:
    """Mirror flow at the recorded times; arrays have one entry for each."""

    status: str
    time: Floats
    loss: Floats
    max_softmax: Floats
    norm: Floats
    blocks: dict[str, Floats]
    final: dict[str, Floats]
    selected: Ints
    evaluations: int
    p: float
    data: Dataset = field(repr=False)

    @property
    def W(self) -> Floats:
        """(times, d, d)."""
        return self.blocks["W"]


def mirror_flow(
    data: Dataset,
    p: float = 2.0,
    times: Any = None,
    *,
    geometry: str = "lp",
    entropy_beta: float = 1.0,
    tol: float = 1e-8,
    plain_steps: int = 0,
    lr: float = 1.0,
    init: Init | None = None,
    init_seed: int | None = None,
    max_evaluations: int = 1_000_000,
    threads: int = 1,
    params: str | None = None,
    rank: int | None = None,
    key_weights: Any = None,
    loss: str | None = None,
    head: str | None = None,
    mask: str | None = None,
    scaled: bool | None = None,
    penalty: float | None = None,
) -> Flow:
    """Mirror descent to times that no loop reaches: the flow dy/dt = -grad L, in the logarithm of time.

    >>> flow = am.mirror_flow(data, p=1.5, times=am.log_times(1, 1e12))

    Parameters
    ----------
    times : ascending array
        When to record, in units of lr x steps; ten per decade from 1 to 1e6 without it.
    plain_steps, lr : int, float
        Steps of descent before the flow.
    """
    word, start = start_of(init, params)
    settings = _model_settings(params=params, rank=rank, loss=loss, head=head, mask=mask, scaled=scaled,
                               penalty=penalty, init=word, init_seed=init_seed)
    when = log_times(1, 1e6) if times is None else floats(times, "times")
    result = _core.mirror_flow(
        data._handle, settings, None if key_weights is None else floats(key_weights, "key_weights"), start, p, geometry,
        entropy_beta, when, tol, plain_steps, lr, max_evaluations, threads)
    return Flow(p=p, data=data, **result)


def log_times(first: float, last: float, per_decade: int = 10) -> Floats:
    """From `first` to `last`, `per_decade` for each factor of ten."""
    return _core.log_times(first, last, per_decade)  # type: ignore[no-any-return]
