"""What descend() and its relatives read: starts, schedules of records, run folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from ._arrays import Floats, PathLike, blocks, path_text

Init = Union[str, npt.ArrayLike, Mapping[str, Any]]


@dataclass(frozen=True)
class Record:
    """What a run was at one step: the argument of a callback."""

    step: int
    loss: float
    max_softmax: float
    norm: float
    parameters: dict[str, Floats]
    metrics: dict[str, float]


def start_of(init: Init | None, params: str | None) -> tuple[str | None, dict[str, Floats] | None]:
    """A word, or blocks: one array stands for W, or for p of a prompt."""
    if init is None or isinstance(init, str):
        return init, None
    if isinstance(init, Mapping):
        return None, blocks(init)
    if params == "KQ":
        raise TypeError("init is an array, but params is KQ: expected a dict with K and Q, or a word")
    return None, blocks({"p" if params == "prompt" else "W": init})


def train_word(train: str | Sequence[str] | None) -> str | None:
    return train if train is None or isinstance(train, str) else ",".join(train)


def record_word(record: str | int | Sequence[int] | None) -> str | None:
    """A schedule in words, every so many steps, or a list of steps."""
    if record is None or isinstance(record, str):
        return record
    if isinstance(record, (int, np.integer)):
        return f"every:{int(record)}"
    return ",".join(str(int(step)) for step in record)


def is_file(key_weights: Any) -> bool:
    return isinstance(key_weights, str) or hasattr(key_weights, "__fspath__")


def folder_options(out: PathLike | None, resume: bool, overwrite: bool, checkpoint_every: float | None) -> Any:
    if resume and overwrite:
        raise ValueError("both resume and overwrite are given: expected one of them")
    if out is None:
        for name, value in {"resume": resume, "overwrite": overwrite, "checkpoint_every": checkpoint_every}.items():
            if value:
                raise ValueError(f"{name} is given without a run folder: expected out")
        return None
    seconds = 30.0 if checkpoint_every is None else float(checkpoint_every)
    if not seconds >= 0:
        raise ValueError(f"checkpoint_every is {seconds:g}: expected 0 or more seconds")
    return (path_text(out), resume, overwrite, seconds)
