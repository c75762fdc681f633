"""Datasets: sequences of tokens, queries, labels and a decoder."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _html
from ._arrays import Floats, Ints, PathLike, numbers, path_text, token_indices
from ._errors import PaddingWarning


def _join_sequences(X: Sequence[Any]) -> dict[str, npt.NDArray[Any]]:
    """A list of (T_i, d) arrays as one array and lengths."""
    parts = [numbers(x, f"X[{i}]") for i, x in enumerate(X)]
    if not parts:
        raise ValueError("X is empty: expected 1 or more sequences")
    for i, part in enumerate(parts):
        if part.ndim != 2 or part.shape[1] != parts[0].shape[-1]:
            raise ValueError(f"X[{i}] has shape {part.shape}: expected (tokens, {parts[0].shape[-1]}) like the others")
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    return {"X": np.ascontiguousarray(np.concatenate(parts)), "lengths": lengths}


def _warn_of_padding(handle: _core.Dataset, name: str = "") -> None:
    """Says that sequences end in zeros, if they do, to whoever made the dataset."""
    text = handle.suspected_padding
    if text is not None:
        warnings.warn(f"{name}{text}", PaddingWarning, stacklevel=3)


class Dataset:
    """What attention learns from: token sequences, queries, labels of -1 or +1, and optionally a decoder.

    Parameters
    ----------
    X : array (n, T, d), or a list of n arrays (T_i, d), or (sum of lengths, d) with `lengths`
        The tokens. Padded sequences are an array (n, T, d) with `lengths`; what stands in the padding, NaN even, does
        not matter. Without `lengths`, sequences that end in rows of zeros are warned of (PaddingWarning): those rows are
        tokens like any other.
    Z : array (n, d) or (n, K, d), optional
        One query for each sequence, or K. Leave it out for self-attention, with `query_index`.
    Y : array (n,) or one label per query
        Each -1 or +1.
    v : array (d,), optional
        The decoder of the linear head. Without it, it must be trained.
    lengths : array (n,), optional
        Tokens of each sequence.
    mask : array (n, T) or (n, K, T), optional
        1 where a query may attend to a token.
    query_index : array (n,) or (n, K), optional
        Self-attention: the query is this token of its sequence.
    query_counts : array (n,), optional
        How many queries each sequence has, where they differ; Z and query_index then have one row per query.
    V : array (d, m), optional
        The weights of the ReLU head.
    causal : bool
        The query at token k attends to the tokens up to k; needs `query_index`.

    Notes
    -----
    The arrays are checked and copied once, and never change. `X` and `Z` of a dataset are read-only views.
    """

    __slots__ = ("_handle",)
    _handle: _core.Dataset

    def __init__(
        self,
        X: Any,
        Z: Any = None,
        Y: Any = None,
        v: Any = None,
        lengths: Any = None,
        mask: Any = None,
        *,
        query_index: Any = None,
        query_counts: Any = None,
        V: Any = None,
        causal: bool = False,
    ) -> None:
        arrays: dict[str, npt.NDArray[Any]] = {}
        ragged = isinstance(X, (list, tuple)) and len({np.shape(x) for x in X}) > 1
        if ragged:
            if lengths is not None:
                raise ValueError("lengths is given, but X is a list of arrays, which have their own: expected one of them")
            arrays.update(_join_sequences(X))
        else:
            tokens = numbers(X, "X")
            if lengths is not None:
                arrays["lengths"] = token_indices(lengths, "lengths")
            arrays["X"] = tokens
        given = {"Z": Z, "Y": Y, "v": v, "mask": mask, "V": V}
        arrays.update({name: numbers(value, name) for name, value in given.items() if value is not None})
        for name, value in {"query_index": query_index, "query_counts": query_counts}.items():
            if value is not None:
                arrays[name] = token_indices(value, name)
        self._handle = _core.Dataset(arrays)
        _warn_of_padding(self._handle)
        if causal:
            self._handle = self._handle.causal()

    @classmethod
    def _of(cls, handle: _core.Dataset) -> Dataset:
        data = cls.__new__(cls)
        data._handle = handle
        return data

    @property
    def X(self) -> Floats:
        """Tokens: (n, T, d), or (sum of lengths, d) where lengths differ. A read-only view."""
        return self._handle.X  # type: ignore[no-any-return]

    @property
    def Z(self) -> Floats:
        """Queries: (n, d), or (n, K, d). A read-only view."""
        return self._handle.Z  # type: ignore[no-any-return]

    @property
    def Y(self) -> Floats:
        """Labels of the queries."""
        return self._handle.Y  # type: ignore[no-any-return]

    @property
    def v(self) -> Floats | None:
        """The decoder, or None."""
        return self._handle.v  # type: ignore[no-any-return]

    @property
    def lengths(self) -> Ints:
        """Tokens of each sequence."""
        return self._handle.lengths  # type: ignore[no-any-return]

    @property
    def samples(self) -> int:
        """The number of sequences, n."""
        return self._handle.samples

    @property
    def dim(self) -> int:
        """The dimension of a token, d."""
        return self._handle.dim

    @property
    def queries(self) -> int:
        """The number of queries in all."""
        return self._handle.total_queries

    @property
    def mask(self) -> str:
        """"none", "causal" or "custom"."""
        return self._handle.mask

    @property
    def optimal_tokens(self) -> Ints:
        """The token with the best score for each query; needs a decoder."""
        return self._handle.optimal_tokens()  # type: ignore[no-any-return]

    @property
    def fingerprint(self) -> int:
        """64 bits of all sizes and values."""
        return self._handle.fingerprint

    @property
    def path(self) -> str:
        """The file that it came from or was saved to; empty where there is none."""
        return self._handle.path

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What save() writes: X, Z, Y, v, lengths, mask, ... as far as there are any."""
        return self._handle.arrays()

    def sequence(self, i: int) -> Floats:
        """The tokens of sequence i, (T_i, d)."""
        if not -self.samples <= i < self.samples:
            raise IndexError(f"sequence {i}: expected 0 to {self.samples - 1}")
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        i %= self.samples
        return self.X.reshape(-1, self.dim)[ends[i] : ends[i + 1]]

    def causal(self) -> Dataset:
        """The same data with a causal mask."""
        return Dataset._of(self._handle.causal())

    def save(self, path: PathLike) -> None:
        """Writes an .npz file that load_dataset() and the command read."""
        self._handle.save(path_text(path))

    def __len__(self) -> int:
        return self.samples

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Dataset._of, (self._handle,))

    def __repr__(self) -> str:
        return f"<attmirror.Dataset: {self._handle.describe()}>"

    def _repr_html_(self) -> str:
        rows = [("sequences", self.samples), ("tokens", f"{self.lengths.min()} to {self.lengths.max()}"),
                ("dimension", self.dim), ("queries", self.queries), ("mask", self.mask),
                ("decoder", "no" if self.v is None else "yes")]
        return _html.facts("Dataset", rows)


def load_dataset(path: PathLike) -> Dataset:
    """Reads an .npz file with the arrays X, Z (or query_index), Y and, if it has them, v, lengths, mask and V."""
    handle = _core.load_dataset(path_text(path))
    _warn_of_padding(handle, f"{path_text(path)}: ")
    return Dataset._of(handle)


def generate(kind: str = "sphere", **settings: Any) -> Dataset:
    """The random data of the papers, from their seeds, and data of the same kinds in other sizes.

    generators() lists the kinds and what each takes; `sphere` has samples, tokens, dim, seed, min_tokens, queries and
    query_from.
    """
    return Dataset._of(_core.generate(kind, settings))


def generators() -> dict[str, dict[str, Any]]:
    """The kinds that generate() knows: a description, and the settings with their defaults."""
    return {
        name: {"description": text, "settings": {key: entry[0] for key, entry in settings.items()}}
        for name, text, settings in _core.generators()
    }


def score_blind_key_weights() -> Floats:
    """diag(1, 1, 0): the key weights of a prompt on P2's three-dimensional data."""
    return _core.score_blind_key_weights()  # type: ignore[no-any-return]
