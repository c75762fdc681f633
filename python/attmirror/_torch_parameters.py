"""The parameters of one step: looked at, brought into a common layout, and sorted into calls of a kernel.

A kernel sees arrays, so weights, gradient and state of a parameter must lie in memory in the same order. Where the weights
fill their memory without gaps, in whatever order (a transposed matrix, channels last), the others take that order. Weights
with gaps (every second column of a matrix) are stood in for by a copy, which goes back after the step.

Batches are kept from step to step. `Batch.refresh()` takes the gradients of the next one and notices whatever would make
the addresses of the last one wrong: new memory, another layout or type, another state, a gradient that came or went.
"""

# Types of PyTorch differ between its versions, and it need not be there.
# mypy: ignore-errors
from __future__ import annotations

import warnings
from typing import Any

import torch

from . import _step_library as library
from ._errors import InputError
from ._step_rules import StepRule
from ._torch_shards import is_sharded_type, local, shard_groups

ELEMENTS = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2, torch.float64: 3}
BRIEF = (torch.bfloat16, torch.float16)


def state_type(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the numbers fill their memory without gaps, in some order."""
    expected = 1
    for stride, size in sorted((stride, size) for size, stride in zip(tensor.shape, tensor.stride()) if size != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def has_layout_of(like: torch.Tensor, tensor: torch.Tensor) -> bool:
    return tensor.shape == like.shape and (
        tensor.stride() == like.stride() or (like.is_contiguous() and tensor.is_contiguous())
    )


def in_layout_of(like: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` with its numbers in the order in memory that `like` has: itself, or a copy."""
    if has_layout_of(like, tensor) and not tensor.is_neg():
        return tensor
    result = torch.empty_strided(like.shape, like.stride(), dtype=tensor.dtype, device=tensor.device)
    return result.copy_(tensor)


def check_parameter(parameter: torch.Tensor, where: str) -> None:
    if parameter.layout != torch.strided:
        raise InputError(f"{where} is sparse: expected a dense tensor")
    if parameter.dtype not in ELEMENTS:
        kind = f"{parameter.dtype}".replace("torch.", "")
        raise InputError(f"{where} is of type {kind}: expected float32, float64, bfloat16 or float16")
    if parameter.is_inference():
        raise InputError(f"{where} was made in inference mode, and such tensors are not trained")
    if any(stride == 0 and size > 1 for stride, size in zip(parameter.stride(), parameter.shape)):
        raise InputError(f"{where} has several entries in one place of memory (expanded): clone() it first")


def check_gradient(parameter: torch.Tensor, gradient: torch.Tensor, where: str) -> None:
    if gradient.layout != torch.strided:
        raise InputError(f"the gradient of {where} is sparse: expected a dense one")
    for name in ("dtype", "device"):
        own, other = getattr(gradient, name), getattr(parameter, name)
        if own != other:
            raise InputError(f"the gradient of {where} has the {name} {own}, and the parameter {other}")
    if gradient.shape != parameter.shape:
        raise InputError(
            f"the gradient of {where} has the shape {tuple(gradient.shape)}, and the parameter {tuple(parameter.shape)}"
        )


class Entry:
    """One parameter with a gradient."""

    __slots__ = (
        "data", "device", "dtype", "gradient", "groups", "has_gaps", "is_distributed", "master", "momentum", "nothing",
        "parameter", "seen_data", "seen_version", "shape", "state", "stride", "weights", "where",
    )  # fmt: skip

    parameter: torch.Tensor
    weights: torch.Tensor  # the parameter (the part that is here), or a copy without gaps
    gradient: torch.Tensor  # in the layout of the weights
    master: torch.Tensor | None
    momentum: torch.Tensor | None

    def __init__(self, parameter: torch.Tensor, gradient: torch.Tensor, where: str) -> None:
        self.parameter, self.where = parameter, where
        self.is_distributed = is_sharded_type(parameter)
        here = local(parameter.detach())
        check_parameter(here, where)
        try:
            self.groups: tuple[Any, ...] = shard_groups(parameter)
        except ValueError as error:
            raise InputError(f"{where} {error}") from None
        self.data = here.data_ptr()
        self.dtype, self.device, self.shape, self.stride = here.dtype, here.device, here.shape, here.stride()
        self.has_gaps = not is_dense(here)
        self.weights = here.contiguous() if self.has_gaps else here
        # No numbers of the parameter, by which autograd is told that it has changed.
        self.nothing = torch.as_strided(here, (0,), (1,))
        self.state: dict[str, Any] = {}
        self.master = self.momentum = None
        self.seen_version = self.seen_data = -1
        self.take(gradient)

    def take(self, gradient: torch.Tensor) -> None:
        if self.is_distributed:
            if gradient.placements != self.parameter.placements:  # type: ignore[attr-defined]
                gradient = gradient.redistribute(placements=self.parameter.placements)  # type: ignore[attr-defined]
            gradient = local(gradient)
        check_gradient(local(self.parameter), gradient, self.where)
        self.gradient = in_layout_of(self.weights, gradient)

    def is_as_before(self) -> bool:
        """Whether the parameter still lies where it lay."""
        here = local(self.parameter) if self.is_distributed else self.parameter
        return (
            here.data_ptr() == self.data
            and here.dtype is self.dtype
            and here.stride() == self.stride
            and here.shape == self.shape
        )

    def remember(self) -> None:
        """The parameter as we leave it, to notice what others do to it."""
        self.seen_version = self.parameter._version
        self.seen_data = self.data


class Batch:
    """The parameters of one group with one type and device."""

    def __init__(self, rule: StepRule, engine: str, dtype: torch.dtype, device: torch.device) -> None:
        self.rule, self.engine, self.dtype, self.device = rule, engine, dtype, device
        self.entries: list[Entry] = []
        self.options = library.Options()
        self.tensors = library.tensor_array(0)
        self.cuda = library.Device()

    @property
    def wants_master(self) -> bool:
        return self.dtype in BRIEF if self.rule.master is None else self.rule.master

    def is_sharded(self) -> bool:
        return any(entry.groups for entry in self.entries)

    def close(self) -> None:
        """Once all parameters are there, with their states: the structs that the kernels read."""
        options, rule = self.options, self.rule
        options.element, options.rule = ELEMENTS[self.dtype], library.RULES.index(rule.rule)
        options.p, options.momentum, options.weight_decay = rule.p, rule.momentum, rule.weight_decay
        options.nesterov, options.normalized, options.maximize = rule.nesterov, rule.normalized, rule.maximize
        options.exact, options.gradient_scale = rule.exact, 1.0
        self.tensors = library.tensor_array(len(self.entries))
        for i, entry in enumerate(self.entries):
            self.write(i, entry)

    def write(self, i: int, entry: Entry) -> None:
        at = library.FIELDS * i
        self.tensors[at] = entry.weights.data_ptr()
        self.tensors[at + 1] = entry.gradient.data_ptr()
        self.tensors[at + 2] = 0 if entry.master is None else local(entry.master).data_ptr()
        self.tensors[at + 3] = 0 if entry.momentum is None else local(entry.momentum).data_ptr()
        self.tensors[at + 4] = entry.weights.numel()

    def refresh(self, master_key: str) -> bool:
        """Takes the gradients of the next step; False where the batch must be made anew."""
        tensors, at = self.tensors, 1
        for entry in self.entries:
            parameter = entry.parameter
            gradient = parameter.grad
            if gradient is None or not entry.is_as_before():
                return False
            if (
                entry.has_gaps
                or entry.is_distributed
                or gradient.layout is not torch.strided
                or gradient.dtype is not entry.dtype
                or gradient.shape != entry.shape
                or gradient.stride() != entry.stride
                or gradient.device != entry.device
                or gradient.is_neg()
            ):
                if entry.has_gaps:
                    entry.weights = local(parameter.detach()).contiguous()
                    tensors[at - 1] = entry.weights.data_ptr()
                entry.take(gradient)
            else:
                entry.gradient = gradient
            tensors[at] = entry.gradient.data_ptr()
            momentum, master = entry.momentum, entry.master
            if momentum is not None:
                if entry.state.get("momentum_buffer") is not momentum:
                    return False
                tensors[at + 2] = local(momentum).data_ptr()
            if master is not None and (
                entry.state.get(master_key) is not master or parameter._version != entry.seen_version
            ):
                return False
            at += library.FIELDS
        return True


_warned: set[str] = set()


def warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, stacklevel=6)


def choose_engine(rule: StepRule, device: torch.device) -> str:
    """ "cpu", "cuda" or "tensors"."""
    if rule.direction is not None or rule.foreach or rule.fused is False:
        if rule.fused and rule.direction is not None:
            raise InputError("fused is True, and there is no kernel for spectral steps: expected None or False", "fused")
        return "tensors"
    if device.type == "cpu" and library.cpu_library() is not None:
        return "cpu"
    if device.type == "cuda" and torch.version.hip is None and library.cuda_library() is not None:
        return "cuda"
    if rule.fused:
        raise InputError(f"fused is True, and attmirror has no kernel for {device} in this build", "fused")
    warn_once(
        f"attmirror has no kernel for {device} in this build: its steps are made of tensor operations, which are "
        "many times slower (foreach=True asks for that, without this warning)"
    )
    return "tensors"
