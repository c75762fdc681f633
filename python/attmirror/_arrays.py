"""What users give as arrays, as the compiled part wants it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Norm = Union[float, int, str]
PathLike = Union[str, "os.PathLike[str]"]


def numbers(values: Any, name: str) -> npt.NDArray[Any]:
    """An array of numbers in C order, of the type it has: what is not exact in a double is refused later."""
    array = np.asarray(values)
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} has the type {array.dtype}: expected an array of numbers")
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def floats(values: Any, name: str) -> Floats:
    """Doubles in C order; no copy where they are that already."""
    if type(values) is np.ndarray and values.dtype == np.float64 and values.flags.c_contiguous:
        return values
    return np.ascontiguousarray(numbers(values, name), dtype=np.float64)


def token_indices(values: Any, name: str = "tokens") -> Ints:
    """Token numbers, one per query."""
    if type(values) is np.ndarray and values.dtype == np.int64 and values.flags.c_contiguous:
        return values
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} has the type {array.dtype}: expected whole numbers, a token for each query")
    return np.ascontiguousarray(array, dtype=np.int64)


def blocks(values: Mapping[str, Any]) -> dict[str, Floats]:
    """Weights by name."""
    return {name: floats(block, name) for name, block in values.items()}


def path_text(path: PathLike) -> str:
    return os.fspath(path)


def norm_value(norm: Norm) -> Norm:
    """A number stands for an entrywise norm, a text for any: both go through as they are."""
    if isinstance(norm, (int, float, str)):
        return norm
    return float(norm)


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
