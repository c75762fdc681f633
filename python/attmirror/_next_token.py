"""P4's next-token prediction: attention learns which token of a sentence decides the next one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _html
from ._arrays import Floats, PathLike, floats, path_text
from ._progress import Progress
from ._settings import record_word
from .optimizers import Optimizer


class Sentences:
    """Sentences and their successors, read from text or generated.

    A line of two words "x y" says that y is the successor of x; more words "a b q y" are the sentence a b q, followed
    by y. With skip_unexplained, sentences that attention cannot explain are left out: of those that contradict each
    other the first stay. `skipped` counts the lines by reason.
    """

    def __init__(self, text: str | Sequence[str], collocations: str = "auto", *, skip_unexplained: bool = False) -> None:
        lines = text if isinstance(text, str) else "\n".join(text) + "\n"
        self._handle = _core.parse_sentences(lines, "sentences", collocations, skip_unexplained)

    @classmethod
    def _of(cls, handle: Any) -> Sentences:
        made = cls.__new__(cls)
        made._handle = handle
        return made

    @classmethod
    def load(cls, path: PathLike, collocations: str = "auto", *, skip_unexplained: bool = False) -> Sentences:
        """Reads a file with one sentence per line."""
        with open(path, encoding="utf-8") as file:
            return cls._of(_core.parse_sentences(file.read(), path_text(path), collocations, skip_unexplained))

    @classmethod
    def generate(cls, vocab: int = 20, sentences: int = 100, *, min_length: int = 4, max_length: int = 6,
                 order: str = "three-class", optimal: int = 0, non_optimal: int = 0, successor: str = "permutation",
                 repetition: str = "allowed", seed: int = 1) -> Sentences:
        """Random sentences that a partial order for each query explains."""
        return cls._of(_core.generate_sentences(vocab, sentences, min_length, max_length, order, optimal, non_optimal,
                                                successor, repetition, seed))

    @property
    def words(self) -> list[str]:
        """The vocabulary, in the order of the tokens."""
        return self._handle.words

    @property
    def skipped(self) -> dict[str, int]:
        """Lines that were left out, by reason; empty without skip_unexplained."""
        return dict(self._handle.skipped)

    @property
    def text(self) -> str:
        """As a file has them."""
        return self._handle.text()

    @property
    def contradiction(self) -> str:
        """Why no attention can learn them, in a sentence; empty where it can."""
        return self._handle.contradiction()

    def __len__(self) -> int:
        return self._handle.count

    def __repr__(self) -> str:
        return f"<attmirror.Sentences: {len(self)} sentences of {len(self.words)} words>"


@dataclass(frozen=True)
class Stage:
    """A stage of the training: how it ended, and its records by name."""

    status: str
    steps: int
    loss: float
    norm: float
    seconds: float
    trace: dict[str, npt.NDArray[Any]] = field(repr=False)


@dataclass(frozen=True)
class Target:
    """The max-margin solution that a block of weights goes to."""

    status: str
    kind: Any
    W: Floats = field(repr=False)
    lambda_: Floats = field(repr=False)
    norm: float
    dual: float
    gap: float
    method: str


@dataclass(frozen=True)
class NextTokenRun:
    """Two trained blocks, W_ov and W_kq, their stages and their targets.

    stages["W_kq"].trace["W_kq_gap"] is 1 - cos of the angle to the target, as far as that was solved.
    """

    sentences: Sentences
    stages: dict[str, Stage]
    targets: dict[str, Target]
    blocks: dict[str, Floats] = field(repr=False)
    embedding: Floats = field(repr=False)
    accuracy: float

    @property
    def status(self) -> str:
        """How the last stage ended."""
        return list(self.stages.values())[-1].status

    @property
    def W_ov(self) -> Floats:
        """The weights that say what follows the attended token."""
        return self.blocks["W_ov"]

    @property
    def W_kq(self) -> Floats:
        """The weights that say which token is attended to."""
        return self.blocks["W_kq"]

    def correlation(self, block: str = "W_kq") -> float:
        """The cosine of the angle between trained weights and their max-margin target."""
        a, b = self.blocks[block], self.targets[block].W
        return float((a * b).sum() / (np.linalg.norm(a) * np.linalg.norm(b)))

    def predict(self, text: str | Sequence[str]) -> tuple[list[str], float]:
        """The predicted next words of lines "a b q y", and the share of them that is y."""
        lines = text if isinstance(text, str) else "\n".join(text) + "\n"
        words, share = self.sentences._handle.predict(self.embedding, self.blocks, lines)
        return list(words), share

    def unseen_accuracy(self, kind: str = "same-order", count: int = 100) -> float:
        """On sentences that the training has not seen: same-order, non-comparable or longer."""
        return float(self.sentences._handle.unseen_accuracy(self.embedding, self.blocks, kind, count))

    def _repr_html_(self) -> str:
        rows = [(name, stage.status, stage.steps, stage.loss, stage.norm) for name, stage in self.stages.items()]
        return _html.table("Next-token training", ["stage", "status", "steps", "loss", "norm"], rows)


def next_token(
    sentences: Sentences | PathLike | Sequence[str] | int = 100,
    *,
    optimizer: Optimizer | None = None,
    ov_optimizer: Optimizer | None = None,
    steps: int = 1000,
    ov_steps: int = 1000,
    stages: str = "two",
    embedding: Any = "one-hot",
    dim: int = 0,
    embedding_seed: int = 0,
    targets: str = "auto",
    record: str | int | Sequence[int] | None = None,
    max_seconds: float | None = None,
    threads: int = 1,
    progress: bool = False,
    **generator: Any,
) -> NextTokenRun:
    """Trains next-token prediction in two stages (W_ov on the collocations, then W_kq), or both at once.

    >>> run = am.next_token(vocab=20, sentences=100, seed=1, steps=5000)

    Parameters
    ----------
    sentences : Sentences, file, list of lines or int
        A number: as many are generated, by vocab, min_length, max_length, order, optimal, non_optimal, successor,
        repetition and seed (see Sentences.generate()).
    optimizer, ov_optimizer : Optimizer
        Of W_kq and of W_ov; normalized gradient descent with P4's step sizes without them.
    embedding : "one-hot", "orthonormal", "gaussian", "file:E.npy" or an array (words, d)
    targets : "auto" or "off"
        Whether to solve the max-margin problems.
    """
    if isinstance(sentences, (int, np.integer)):
        corpus = Sentences.generate(sentences=int(sentences), **generator)
    elif generator:
        raise TypeError(f"{next(iter(generator))} is given, but sentences are given: expected one of them")
    elif isinstance(sentences, Sentences):
        corpus = sentences
    elif isinstance(sentences, (str, os.PathLike)):
        corpus = Sentences.load(sentences)
    else:
        corpus = Sentences(sentences)
    bar = Progress("next_token") if progress else None
    on_pulse = None
    if bar is not None:
        shown = bar
        on_pulse = lambda now: shown.update(  # noqa: E731
            now[1] / max(ov_steps if now[0] == "W_ov" else steps, 1), f"{now[0]}, loss {now[2]:.3g}")
    settings = {"steps": steps, "record": record_word(record), "max_seconds": max_seconds}
    try:
        result = _core.next_token(
            corpus._handle, embedding if isinstance(embedding, str) else floats(embedding, "embedding"), dim,
            embedding_seed, stages, None if ov_optimizer is None else ov_optimizer._handle,
            None if optimizer is None else optimizer._handle, settings, ov_steps, targets, threads, on_pulse)
    finally:
        if bar is not None:
            bar.close()
    return NextTokenRun(
        sentences=corpus,
        stages={name: Stage(**stage) for name, stage in result["runs"].items()},
        targets={name: Target(**target) for name, target in result["targets"].items()},
        blocks=result["blocks"],
        embedding=result["embedding"],
        accuracy=result["accuracy"],
    )
