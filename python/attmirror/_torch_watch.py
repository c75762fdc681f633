"""Whether a batch of parameters may be stepped again by the addresses of its last step.

Between two steps anything may happen to a parameter: its gradient is new, or none; it lies elsewhere; its state was replaced.
Before a kernel may read the addresses of the last step, all of this is looked at, for each parameter, at each step, and that
is most of what a step costs the host. So each property is asked of all parameters at once, by map(), which takes half the time
of a loop, and gradients that are the same objects at the same addresses in the same layout are not looked at any further.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter, is_, itemgetter
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch  # type: ignore[import-not-found,unused-ignore]

from ._step_library import FIELDS

if TYPE_CHECKING:
    from ._torch_parameters import Entry

_gradient: Callable[[Any], Any] = attrgetter("grad")
_dtype: Callable[[Any], Any] = attrgetter("dtype")
_version: Callable[[Any], int] = attrgetter("_version")
_address: Callable[[Any], int] = torch.Tensor.data_ptr
_numel: Callable[[Any], int] = torch.Tensor.numel
_stride: Callable[[Any], Any] = torch.Tensor.stride
_is_contiguous: Callable[[Any], bool] = torch.Tensor.is_contiguous
_is_negated: Callable[[Any], bool] = torch.Tensor.is_neg


def versions(parameters: Sequence[torch.Tensor]) -> list[int]:
    """Autograd's counters of changes in place."""
    return list(map(_version, parameters))


class _WatchedState:
    """Momenta or masters: still in the optimizer's state, and at the same addresses?"""

    __slots__ = ("addresses", "states", "tensor_of", "tensors")

    def __init__(self, key: str, states: list[dict[str, Any]], tensors: list[torch.Tensor]) -> None:
        self.tensor_of: Callable[[dict[str, Any]], Any] = itemgetter(key)
        self.states, self.tensors = states, tensors
        self.addresses = list(map(_address, tensors))

    def is_unchanged(self) -> bool:
        return (
            all(map(is_, map(self.tensor_of, self.states), self.tensors))
            and list(map(_address, self.tensors)) == self.addresses
        )


class Watch:
    """Of parameters that are ordinary tensors without gaps, all of one type and device, with gradients in their layout."""

    def __init__(self, entries: Sequence[Entry], master_key: str) -> None:
        self.parameters = [entry.parameter for entry in entries]
        self.dtype = entries[0].dtype
        self.addresses = [entry.data for entry in entries]
        self.sizes = [entry.weights.numel() for entry in entries]
        all_contiguous = all(map(_is_contiguous, self.parameters))
        self.strides = None if all_contiguous else list(map(_stride, self.parameters))
        # Weak: gradients that were set to None are not kept in memory from one step to the next.
        self.gradients: list[ref[torch.Tensor]] = []
        self.gradient_addresses: list[int] = []
        states = [entry.state for entry in entries]
        self.kept = [
            _WatchedState(key, states, tensors)
            for key, tensors in (
                ("momentum_buffer", [entry.momentum for entry in entries if entry.momentum is not None]),
                (master_key, [entry.master for entry in entries if entry.master is not None]),
            )
            if tensors
        ]
        self.has_masters = entries[0].master is not None

    def take_gradients(self, tensors: ctypes.Array[ctypes.c_int64], seen_versions: list[int]) -> bool:
        """Writes the addresses of the gradients into `tensors`, as the kernels read them. False, and nothing written, where
        something has changed that needs a closer look."""
        parameters = self.parameters
        try:
            if list(map(_address, parameters)) != self.addresses or not self._has_layout(parameters):
                return False
            gradients = list(map(_gradient, parameters))
            addresses: list[Any] = list(map(_address, gradients))
            if not self._has_layout(gradients) or not all([kept.is_unchanged() for kept in self.kept]):
                return False
        except (KeyError, RuntimeError, TypeError):
            # A state was taken away; a gradient is sparse, or None.
            return False
        if self.has_masters and versions(parameters) != seen_versions:
            return False
        if self.gradients and all(map(is_, gradients, [gradient() for gradient in self.gradients])):
            # (gradient.data = ... keeps the object, and may change all else.)
            return addresses == self.gradient_addresses
        if not self._fit(gradients):
            return False
        self.gradients = list(map(ref, gradients))
        if addresses != self.gradient_addresses:
            tensors[1::FIELDS] = addresses
            self.gradient_addresses = addresses
        return True

    def forget_gradients(self) -> None:
        """After others have written their addresses."""
        self.gradients, self.gradient_addresses = [], []

    def _has_layout(self, tensors: list[torch.Tensor]) -> bool:
        if self.strides is None:
            return all(map(_is_contiguous, tensors))
        return list(map(_stride, tensors)) == self.strides

    def _fit(self, gradients: list[torch.Tensor]) -> bool:
        """Whether new gradients can be read as they are. (PyTorch itself refuses one on another device than the parameter.)"""
        return (
            all(map(is_, map(_dtype, gradients), repeat(self.dtype)))
            and list(map(_numel, gradients)) == self.sizes
            and not any(map(_is_negated, gradients))
        )
