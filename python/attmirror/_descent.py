"""Training: descend() and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core, _html
from ._arrays import Floats, Ints, Norm, PathLike, floats, path_text, token_indices
from ._data import Dataset
from ._progress import Progress
from ._settings import Init, Record, folder_options, is_file, record_word, start_of, train_word
from .optimizers import Optimizer

if TYPE_CHECKING:
    from ._margin import MarginSolution


class Trace(Mapping[str, npt.NDArray[Any]]):
    """The records of a run by name: step, loss, max_softmax, norm and the weights, first axis = record.

    trace.loss is the same as trace["loss"].
    """

    def __init__(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name]

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if not name.startswith("_") and name in self._arrays:
            return self._arrays[name]
        raise AttributeError(f"the trace has no {name}: it has {', '.join(self._arrays)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def to_frame(self) -> Any:
        """The numbers of each record as a pandas frame; without the weights."""
        import pandas  # type: ignore[import-untyped, unused-ignore]

        return pandas.DataFrame({name: values for name, values in self._arrays.items() if values.ndim == 1})

    def __repr__(self) -> str:
        return f"<attmirror.Trace: {len(self._arrays['step'])} records of {', '.join(self._arrays)}>"


class Run:
    """A training that has ended, by itself or because it was stopped.

    Attributes
    ----------
    status : str
        "completed", "saturated", "out_of_time", "interrupted" or "diverged".
    W : array (d, d)
        The attention weights; K Q^T where K and Q were trained.
    selected_tokens : array
        The token that each query attends to most.
    trace : Trace
        The records.
    """

    def __init__(self, handle: _core.Run) -> None:
        self._handle = handle

    @property
    def status(self) -> str:
        """How it ended."""
        return self._handle.status

    @property
    def steps(self) -> int:
        """Steps taken."""
        return self._handle.steps

    @property
    def loss(self) -> float:
        """The loss at the last weights."""
        return self._handle.loss

    @property
    def max_softmax(self) -> float:
        """Mean over queries of the largest attention probability."""
        return self._handle.max_softmax

    @property
    def norm(self) -> float:
        """Of the attention weights, in the geometry of the optimizer."""
        return self._handle.norm

    @property
    def seconds(self) -> float:
        """How long the run took, all its parts together."""
        return self._handle.seconds

    @property
    def folder(self) -> str:
        """Where it was kept; empty where it was not."""
        return self._handle.folder

    @cached_property
    def data(self) -> Dataset:
        """What it was trained on."""
        return Dataset._of(self._handle.data)

    @cached_property
    def optimizer(self) -> Optimizer:
        return Optimizer._of(self._handle.optimizer)

    @property
    def params(self) -> str:
        """"W", "KQ" or "prompt"."""
        return self._handle.params

    @cached_property
    def parameters(self) -> dict[str, Floats]:
        """All weights by name: W, or K and Q, or p; and v."""
        return self._handle.parameters()

    @cached_property
    def W(self) -> Floats:
        """The attention weights; K Q^T of a KQ model."""
        if self.params == "prompt":
            raise AttributeError("a prompt has no W: its weights are p")
        return self._handle.W()  # type: ignore[no-any-return]

    def _block(self, name: str) -> Floats:
        if name not in self.parameters:
            raise AttributeError(f"the run has no {name}: its weights are {', '.join(self.parameters)}")
        return self.parameters[name]

    @property
    def K(self) -> Floats:
        """The trained keys, where K and Q were trained."""
        return self._block("K")

    @property
    def Q(self) -> Floats:
        """The trained queries, where K and Q were trained."""
        return self._block("Q")

    @property
    def p(self) -> Floats:
        """The trained prompt."""
        return self._block("p")

    @property
    def v(self) -> Floats:
        """The trained decoder, where it was trained along."""
        return self._block("v")

    @cached_property
    def selected_tokens(self) -> Ints:
        """The token that each query attends to most; empty where the run diverged."""
        return self._handle.selected()  # type: ignore[no-any-return]

    @cached_property
    def optimal_tokens(self) -> Ints:
        """The token with the best score, for the run's v."""
        return self._handle.optimal()  # type: ignore[no-any-return]

    @cached_property
    def trace(self) -> Trace:
        return Trace(self._handle.trace())

    def attention(self, data: Dataset | None = None) -> Any:
        """Attention probabilities, a row per query: of the run's data, or of others of the same dimension."""
        return self._handle.probabilities(None if data is None else data._handle)

    def select(self, data: Dataset) -> Ints:
        """The tokens that the trained weights select in other data."""
        return self._handle.selected_on(data._handle)  # type: ignore[no-any-return]

    def margin(self, tokens: Any = None) -> float:
        """The smallest difference of logits between a selected token and another of its sequence; not normalized."""
        return self._handle.margin(token_indices(self.selected_tokens if tokens is None else tokens))

    def compare(self, solution: MarginSolution | Run, p: float | None = None, norm: Norm | None = None) -> Any:
        """compare(self, solution): how near the weights are to a max-margin solution, or to another run's."""
        from ._compare import compare

        return compare(self, solution, p=p, norm=norm)

    def plot(self, solution: MarginSolution | None = None, axes: Any = None) -> Any:
        """Loss, largest attention probability and norm; with a solution, the divergence from it. Returns a figure."""
        from .plots import plot_run

        return plot_run(self, solution=solution, axes=axes)

    def plot_attention(self, ax: Any = None) -> Any:
        """Attention over the tokens of each query; the tokens with the best score are outlined."""
        from .plots import plot_attention

        return plot_attention(self, ax=ax)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Run, (self._handle,))

    def __repr__(self) -> str:
        return f"<attmirror.Run: {self._handle.summary()}>"

    def _repr_html_(self) -> str:
        rows = [("optimizer", repr(self.optimizer)), ("status", self.status), ("steps", self.steps),
                ("loss", self.loss), ("largest probability", self.max_softmax), ("norm", self.norm),
                ("selected tokens", np.array2string(self.selected_tokens, threshold=24)), ("seconds", self.seconds)]
        return _html.facts("Run", rows)


def descend(
    data: Dataset,
    optimizer: Optimizer,
    steps: int | None = None,
    params: str | None = None,
    *,
    rank: int | None = None,
    key_weights: Any = None,
    loss: str | None = None,
    head: str | None = None,
    mask: str | None = None,
    scaled: bool | None = None,
    penalty: float | None = None,
    train: str | Sequence[str] | None = None,
    init: Init | None = None,
    init_seed: int | None = None,
    saturation: float | None = None,
    max_seconds: float | None = None,
    record: str | int | Sequence[int] | None = None,
    keep: str | None = None,
    data_path: str | None = None,
    storage: str | None = None,
    threads: int = 1,
    callback: Callable[[Record], object] | None = None,
    progress: bool = False,
    out: PathLike | None = None,
    resume: bool = False,
    overwrite: bool = False,
    checkpoint_every: float | None = None,
) -> Run:
    """Trains softmax attention on a dataset. (Objective.descend() trains a model of your own.)

    >>> run = am.descend(data, am.MirrorDescent(p=1.1, lr=0.1, normalized=True), steps=2000)
    >>> run.W, run.selected_tokens, run.trace["loss"], run.status

    Parameters
    ----------
    data : Dataset
    optimizer : Optimizer
    steps : int
        Stop after this many (1000).
    params : "W", "KQ" or "prompt"
        Logits X W z, X K Q^T z or X A^T p.
    rank : int
        Columns of K and Q.
    key_weights : array (d, d) or file
        A of the prompt; the identity without it.
    loss : "logistic", "exponential", "linear" or "sigmoid"
    head : "linear", "relu" or "quadratic:LAMBDA"
    mask : "none" or "causal"
    scaled : bool
        Divide the logits by sqrt(d), by sqrt(rank) for KQ.
    penalty : float
        LAMBDA of the penalty LAMBDA |W|^2.
    train : str or list of str
        Blocks to train: "W,v" or ["W", "v"]. All but v without it.
    init : str, array or dict of arrays
        The start: "zero", "normal:STD", "uniform", "file:W0.npy", or the weights themselves.
    init_seed : int
        Of a random start.
    saturation : float
        Stop once the mean largest attention probability reaches this.
    max_seconds : float
        Stop after this time.
    record : str, int or list of int
        The steps to record: "log", "log:PER_DECADE", "none", every so many, or a list.
    keep : "parameters" or "metrics"
        What to keep of a record.
    data_path : "auto", "block" or "stream"
    storage : "float64" or "float32"
    threads : int
        0: as many as the machine has. Results do not depend on it.
    callback : function of a Record
        Called for each record. Raise StopIteration to end the run; it returns with status "interrupted".
    progress : bool
        Show a progress bar.
    out : path
        Keep the run in this folder, as the command does; it survives Ctrl-C and kill -9.
    resume, overwrite : bool
        Go on with the run that is in the folder, or replace it.
    checkpoint_every : float
        Seconds between checkpoints (30).

    Notes
    -----
    Ctrl-C ends the training within a tenth of a second and raises KeyboardInterrupt; with `out`, the folder has a
    checkpoint from which the same call with resume=True goes on.
    """
    word, start = start_of(init, params)
    settings: dict[str, Any] = {
        "steps": steps, "params": params, "rank": rank, "loss": loss, "head": head, "mask": mask, "scaled": scaled,
        "penalty": penalty, "train": train_word(train), "init": word, "init_seed": init_seed,
        "saturation": saturation, "max_seconds": max_seconds, "record": record_word(record), "keep": keep,
        "data_path": data_path, "storage": storage,
    }
    if key_weights is not None and is_file(key_weights):
        settings["key_weights"] = key_weights
        key_weights = None
    folder = folder_options(out, resume, overwrite, checkpoint_every)
    on_record = None if callback is None else (lambda fields: callback(Record(*fields)))
    bar = Progress("descend") if progress else None
    on_pulse = None
    if bar is not None:
        shown, total = bar, 1000 if steps is None else max(int(steps), 1)
        on_pulse = lambda now: shown.update(now[0] / total, f"loss {now[1]:.3g}")  # noqa: E731
    try:
        if not isinstance(data, Dataset):
            raise TypeError(f"data is a {type(data).__name__}: expected an attmirror.Dataset")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"optimizer is {optimizer!r}: expected one of attmirror's, such as MirrorDescent(p=3)")
        matrix = None if key_weights is None else floats(key_weights, "key_weights")
        return Run(_core.descend(data._handle, optimizer._handle, settings, start, matrix, threads, on_record, on_pulse,
                                 folder))
    finally:
        if bar is not None:
            bar.close()


def descend_many(
    tasks: Sequence[tuple[Dataset, Optimizer] | tuple[Dataset, Optimizer, Mapping[str, Any]]],
    *,
    threads: int = 0,
    progress: bool = False,
    **settings: Any,
) -> list[Run]:
    """Many trainings at once, in the lanes of vectors and over threads; each has the bits that descend() gives it.

    Tasks are (data, optimizer) or (data, optimizer, settings); `settings` of all tasks are those of descend():
    steps, params, init, record, ... Results are in order.
    """
    prepared = []
    for task in tasks:
        own: dict[str, Any] = {**settings, **(task[2] if len(task) > 2 else {})}
        word, start = start_of(own.pop("init", None), own.get("params"))
        key_weights = own.pop("key_weights", None)
        own["init"] = word
        own["train"] = train_word(own.get("train"))
        own["record"] = record_word(own.get("record"))
        if key_weights is not None and is_file(key_weights):
            own["key_weights"] = key_weights
            key_weights = None
        matrix = None if key_weights is None else floats(key_weights, "key_weights")
        prepared.append((task[0]._handle, task[1]._handle, own, start, matrix))
    bar = Progress("descend_many") if progress else None
    try:
        return [Run(handle) for handle in _core.descend_many(prepared, threads, bar.update if bar else None)]
    finally:
        if bar is not None:
            bar.close()


def load_run(folder: PathLike, data: Dataset | None = None) -> Run:
    """A run from its folder; `data` where those of the run are no longer where they were."""
    return Run(_core.load_run(path_text(folder), None if data is None else data._handle))
