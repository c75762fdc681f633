"""The parameters of one step: looked at, brought into a common layout, and sorted into calls of a kernel.

A kernel sees arrays, so weights, gradient and state of a parameter must lie in memory in the same order. Where the weights
fill their memory without gaps, in whatever order (a transposed matrix, channels last), the others take that order. Weights
with gaps (every second column of a matrix) are stood in for by a copy, which goes back after the step.

Batches are kept from step to step. `Batch.refresh()` takes the gradients of the next one and notices whatever would make
the addresses of the last one wrong: new memory, another layout or type, another state, a gradient that came or went. Where
nothing is out of the ordinary, a `Watch` does this in a fraction of the time.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]

from . import _step_library as library
from ._errors import InputError
from ._step_rules import StepRule
from ._torch_shards import is_sharded_type, local, shard_groups
from ._torch_watch import Watch, versions

ELEMENTS = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2, torch.float64: 3}
BRIEF = (torch.bfloat16, torch.float16)

# increment_version() takes lists since PyTorch 2.5.
_INCREMENTS_LISTS = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 5)
_raw_stream: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)


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
    return bool(
        tensor.shape == like.shape
        and (tensor.stride() == like.stride() or (like.is_contiguous() and tensor.is_contiguous()))
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
        "parameter", "shape", "state", "stride", "weights", "where",
    )  # fmt: skip

    parameter: torch.Tensor
    weights: torch.Tensor  # the parameter (the part that is here), or a copy without gaps
    gradient: torch.Tensor | None  # in the layout of the weights; None between steps
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
        self.take(gradient)

    def take(self, gradient: torch.Tensor) -> None:
        if self.is_distributed:
            if gradient.placements != self.parameter.placements:  # type: ignore[attr-defined,unused-ignore]
                gradient = gradient.redistribute(placements=self.parameter.placements)  # type: ignore[attr-defined,unused-ignore]
            gradient = local(gradient)
        check_gradient(local(self.parameter), gradient, self.where)
        self.gradient = in_layout_of(self.weights, gradient)

    def taken_gradient(self) -> torch.Tensor:
        assert self.gradient is not None
        return self.gradient

    @torch.no_grad()  # type: ignore[misc,untyped-decorator,unused-ignore]
    def finish(self) -> None:
        """After a step."""
        if self.has_gaps:
            local(self.parameter.detach()).copy_(self.weights)
        self.gradient = None

    def is_as_before(self) -> bool:
        """Whether the parameter still lies where it lay."""
        here = local(self.parameter) if self.is_distributed else self.parameter
        return (
            here.data_ptr() == self.data
            and here.dtype is self.dtype
            and here.stride() == self.stride
            and here.shape == self.shape
        )


def version_bump(entries: list[Entry]) -> Callable[[], object]:
    """A call that tells autograd that the parameters have changed, as an operation in place would."""
    if not entries:
        return lambda: None
    increment = getattr(torch.autograd.graph, "increment_version", None)
    if increment is None:
        # The views have no numbers, and the version counter of their parameter.
        nothings = [entry.nothing for entry in entries]
        return lambda: [nothing.zero_() for nothing in nothings]
    parameters = [entry.parameter for entry in entries]
    if _INCREMENTS_LISTS:
        return functools.partial(increment, parameters)
    return lambda: [increment(parameter) for parameter in parameters]


def current_stream(device: int) -> int:
    """The address of the stream that work of this thread goes to."""
    return int(_raw_stream(device) if _raw_stream is not None else torch.cuda.current_stream(device).cuda_stream)


class Batch:
    """The parameters of one group with one type and device."""

    def __init__(self, rule: StepRule, engine: str, dtype: torch.dtype, device: torch.device) -> None:
        self.rule, self.engine, self.dtype, self.device = rule, engine, dtype, device
        self.entries: list[Entry] = []
        self.options = library.Options()
        self.tensors = library.tensor_array(0)
        self.cuda = library.Device()
        self.step: Callable[[], object] = lambda: None  # the kernels, on these structs
        self.workspaces: dict[int, torch.Tensor] = {}  # by stream
        self.parameters: list[torch.Tensor] = []
        self.seen_versions: list[int] = []  # of parameters with masters, as the last step left them
        self.is_plain = False  # ordinary tensors without gaps
        self.is_sharded = False
        self._changed: list[Entry] = []  # whose changes autograd does not see
        self._watch: Watch | None = None
        self._holds_gradients = True

    @property
    def wants_master(self) -> bool:
        return self.dtype in BRIEF if self.rule.master is None else self.rule.master

    def close(self) -> None:
        """Once all parameters are there, with their states: the structs that the kernels read."""
        options, rule = self.options, self.rule
        options.element, options.rule = ELEMENTS[self.dtype], library.RULES.index(rule.rule)
        options.p, options.momentum, options.weight_decay = rule.p, rule.momentum, rule.weight_decay
        options.nesterov, options.normalized, options.maximize = rule.nesterov, rule.normalized, rule.maximize
        options.exact, options.gradient_scale = rule.exact, 1.0
        tensors = self.tensors = library.tensor_array(len(self.entries))
        for i, entry in enumerate(self.entries):
            at = library.FIELDS * i
            tensors[at] = entry.weights.data_ptr()
            tensors[at + 1] = entry.taken_gradient().data_ptr()
            tensors[at + 2] = 0 if entry.master is None else local(entry.master).data_ptr()
            tensors[at + 3] = 0 if entry.momentum is None else local(entry.momentum).data_ptr()
            tensors[at + 4] = entry.weights.numel()
        self.parameters = [entry.parameter for entry in self.entries]
        is_kernel = self.engine != "tensors"
        self.is_plain = is_kernel and not any(entry.has_gaps or entry.is_distributed for entry in self.entries)
        self.is_sharded = any(entry.groups for entry in self.entries)
        self._changed = [
            entry for entry in self.entries if (is_kernel and not entry.has_gaps) or entry.is_distributed
        ]
        self._bump = version_bump(self._changed)

    def remember(self) -> None:
        """The parameters as we leave them, to notice what others do to them."""
        if self.entries[0].master is not None:
            self.seen_versions = versions(self.parameters)

    def finish(self) -> None:
        """After the arrays have changed: copies go back, autograd is told, and gradients are not ours to keep."""
        if self._holds_gradients:
            for entry in self.entries:
                entry.finish()
            self._holds_gradients = False
        self._bump()

    def on_device(self, tensor: Any) -> torch.Tensor | None:
        """A number that the kernels of a GPU read there, as a float32."""
        if tensor is None or (tensor.dtype is torch.float32 and tensor.device == self.device):
            return tensor  # type: ignore[no-any-return,unused-ignore]
        return tensor.detach().to(device=self.device, dtype=torch.float32)  # type: ignore[no-any-return,unused-ignore]

    def refresh(self, master_key: str) -> bool:
        """Takes the gradients of the next step; False where the batch must be made anew."""
        if self.is_plain:
            if self._watch is None:
                self._watch = Watch(self.entries, master_key)
            if self._watch.take_gradients(self.tensors, self.seen_versions):
                return True
        if not self._refresh_each(master_key):
            return False
        # Addresses of states are as they were: for new ones the batch is made anew.
        if self._watch is not None:
            self._watch.forget_gradients()
        return True

    @torch.no_grad()  # type: ignore[misc,untyped-decorator,unused-ignore]
    def _refresh_each(self, master_key: str) -> bool:
        tensors, at = self.tensors, 1
        self._holds_gradients = True
        for i, entry in enumerate(self.entries):
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
            tensors[at] = entry.taken_gradient().data_ptr()
            for key, tensor, place in (("momentum_buffer", entry.momentum, at + 2), (master_key, entry.master, at + 1)):
                if tensor is not None and (
                    local(tensor).data_ptr() != tensors[place] or entry.state.get(key) is not tensor
                ):
                    return False
            if entry.master is not None and parameter._version != self.seen_versions[i]:
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
