"""What the optimizers of `attmirror.torch` have in common: their step is one call of a kernel for all parameters of a group
that have the same type and device.

PyTorch hands an optimizer tensors: of any type, with or without a gradient, with gaps in memory, changed by others between
two steps. The kernels want arrays. `FusedOptimizer` stands between: it looks at every parameter before it writes to any,
keeps what a parameter needs from one step to the next, and tells autograd what was changed.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]

from . import _step_library as library
from ._errors import InputError
from ._step_rules import StepRule, check_decay, check_lr, check_momentum, number
from ._torch_parameters import Batch, Entry, choose_engine, current_stream, has_layout_of, state_type, warn_once
from ._torch_shards import local, whole_norms
from ._torch_tensor_step import StepTensors, fill_master, is_master_of, tensor_steps

_TORCH_2 = int(torch.__version__.split(".")[0]) >= 2


class _Group:
    """The batches of a parameter group, kept from step to step."""

    def __init__(self, key: tuple[Any, ...], rule: StepRule, parameters: list[torch.Tensor]) -> None:
        self.key, self.rule, self.parameters = key, rule, parameters
        self.batches: list[Batch] = []
        self.idle: list[torch.Tensor] = []  # parameters without a gradient

    def is_current(self, key: tuple[Any, ...], parameters: list[torch.Tensor], master_key: str) -> bool:
        return (
            key == self.key
            and len(parameters) == len(self.parameters)
            and all(map(operator.is_, parameters, self.parameters))
            and all([parameter.grad is None for parameter in self.idle])
            and all([batch.refresh(master_key) for batch in self.batches])
        )


class FusedOptimizer(torch.optim.Optimizer):  # type: ignore[misc,unused-ignore]
    """The base of `MirrorDescent` and `SteepestDescent`."""

    # GradScaler of PyTorch 2 leaves scale and verdict to the step, by the attributes grad_scale and found_inf.
    _step_supports_amp_scaling = _TORCH_2

    _master_key = "master"
    _options_of: Callable[[dict[str, Any]], tuple[Any, ...]]  # those that a _Group depends on: all but lr

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any], process_group: Any = None) -> None:
        self._groups: dict[int, _Group] = {}
        self._seen: dict[torch.Tensor, tuple[int, int]] = {}
        self._process_group = process_group
        super().__init__(params, defaults)
        # PyTorch 1.13 would print a warning at every capturable step that is not captured.
        self._warned_capturable_if_run_uncaptured = True

    # ---- options ------------------------------------------------------------------------------------------------------

    def _rule(self, group: dict[str, Any]) -> StepRule:
        """Raises InputError where the options make no sense."""
        raise NotImplementedError

    def _checked_rule(self, index: int, group: dict[str, Any]) -> StepRule:
        try:
            rule = self._rule(group)
            check_momentum(rule.momentum, rule.nesterov)
            if rule.foreach and rule.fused:
                raise InputError("foreach and fused are both True: expected one of them", "fused")
            lr = self._lr(group)
            if isinstance(lr, float):
                check_lr(lr)
            check_decay(rule.weight_decay, lr if isinstance(lr, float) else None)
            return rule
        except InputError as error:
            raise InputError(f"group {index}: {error}", error.field) from None

    @staticmethod
    def _lr(group: dict[str, Any]) -> float | torch.Tensor:
        """A number, or a tensor of one number on a GPU, which nobody need wait for."""
        lr = group["lr"]
        if type(lr) is float:
            return lr
        if isinstance(lr, torch.Tensor):
            if lr.numel() != 1:
                raise InputError(f"lr has {lr.numel()} numbers: expected one", "lr")
            if lr.device.type != "cpu":
                return lr
        return number("lr", lr)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if isinstance(param_group, dict) and not isinstance(param_group.get("params"), (torch.Tensor, set, type(None))):
            param_group["params"] = list(param_group["params"])
            places: dict[int, int] = {}
            for i, parameter in enumerate(param_group["params"]):
                # Parameters may come with names.
                tensor = parameter[1] if isinstance(parameter, tuple) and len(parameter) == 2 else parameter
                first = places.setdefault(id(tensor), i)
                if first != i:
                    g = len(self.param_groups)
                    raise InputError(
                        f"parameter {i} of group {g} is the same tensor as parameter {first} of group {g}: give it once"
                    )
        super().add_param_group(param_group)
        try:
            self._checked_rule(len(self.param_groups) - 1, self.param_groups[-1])
        except InputError:
            del self.param_groups[-1]
            raise

    # ---- a step -------------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override,unused-ignore]
        """One step. Raises InputError in one sentence, with the group and the index of the parameter, before anything is
        written: for parameters that are sparse, complex or of integers, for gradients of another type or shape."""
        # A class with a step() of its own is observed there, as PyTorch does it.
        if (_is_profiled() or _has_hooks(self)) and type(self).step is FusedOptimizer.step:
            return _observed_step(self) if closure is None else _observed_step(self, closure)
        return self._step(closure)

    # For PyTorch: hooks and profilers are seen to. Its wrapper takes a quarter of the time of a step, also where there are none.
    step.hooked = True  # type: ignore[attr-defined]

    def _step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        work: list[tuple[Batch, float | torch.Tensor]] = []
        for g, group in enumerate(self.param_groups):
            batches = self._batches(g, group)
            if batches:
                lr = self._lr(group)
                if isinstance(lr, float) and not (0 <= lr < float("inf") and lr * group["weight_decay"] < 1):
                    self._checked_rule(g, group)
                work.extend((batch, lr) for batch in batches)
        scale, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        # A step is skipped as a whole. The kernels of a GPU read the verdict there; all others wait for it.
        if found is not None and any(batch.engine != "cuda" for batch, _ in work) and float(found) != 0:
            return loss
        for batch, lr in work:
            self._run(batch, lr, scale, found)
            batch.finish()
        # Parameters that are views of one tensor have one counter of changes: all have been counted.
        for batch, _ in work:
            batch.remember()
        return loss

    def _batches(self, g: int, group: dict[str, Any]) -> list[Batch]:
        key = self._options_of(group)
        parameters = group["params"]
        known = self._groups.get(g)
        if known is None or not known.is_current(key, parameters, self._master_key):
            known = self._make_group(g, group, key, list(parameters))
        return known.batches

    @torch.no_grad()  # type: ignore[misc,untyped-decorator,unused-ignore]
    def _make_group(self, g: int, group: dict[str, Any], key: tuple[Any, ...], parameters: list[torch.Tensor]) -> _Group:
        known = self._groups.pop(g, None)
        for batch in known.batches if known is not None else ():
            for entry, version in zip(batch.entries, batch.seen_versions):
                self._seen[entry.parameter] = (version, entry.data)
        made = _Group(key, self._checked_rule(g, group), parameters)
        batches: dict[tuple[torch.dtype, torch.device], Batch] = {}
        for i, parameter in enumerate(parameters):
            gradient = parameter.grad
            if gradient is None:
                made.idle.append(parameter)
                continue
            entry = Entry(parameter, gradient, f"parameter {i} of group {g}")
            if made.rule.capturable and entry.device.type != "cuda":
                raise InputError(f"capturable is True, and {entry.where} is on {entry.device}: expected a GPU")
            if self._process_group is not None and not entry.groups:
                entry.groups = (self._process_group,)
            if entry.groups and made.rule.direction is not None:
                raise InputError(f"{entry.where} is sharded, and a spectral step needs all of a matrix")
            # Empty parts take part in the exchange of norms.
            if parameter.numel() == 0 and not entry.groups:
                continue
            kind = (entry.dtype, entry.device)
            if kind not in batches:
                batches[kind] = Batch(made.rule, choose_engine(made.rule, entry.device), *kind)
                made.batches.append(batches[kind])
            batches[kind].entries.append(entry)
        for batch in made.batches:
            self._prepare_states(batch)
            self._close(batch)
            batch.remember()
        self._groups[g] = made
        return made

    # ---- what is kept between steps -----------------------------------------------------------------------------------

    def _prepare_states(self, batch: Batch) -> None:
        """Masters and momentum of all parameters, made where they are missing or out of date."""
        rule, key, outdated = batch.rule, self._master_key, []
        for entry in batch.entries:
            parameter = entry.parameter
            if rule.momentum == 0 and not batch.wants_master and parameter not in self.state:
                continue
            state = entry.state = self.state[parameter]
            if rule.momentum > 0:
                entry.momentum = state["momentum_buffer"] = self._fitting(entry, state.get("momentum_buffer"))
            if not batch.wants_master:
                state.pop(key, None)
                state.pop(key + "_p", None)
                continue
            before = state.get(key)
            entry.master = state[key] = self._fitting(entry, before)
            if before is None or before.shape != parameter.shape or not self._is_current(entry, state, rule):
                outdated.append(entry)
            state[key + "_p"] = rule.master_p
        self._fill(batch, outdated)

    @staticmethod
    def _fitting(entry: Entry, state: torch.Tensor | None) -> torch.Tensor:
        """The state where it has type, device and layout of the parameter; else one that has, with the same numbers."""
        kind = state_type(entry.dtype)
        if state is not None:
            here = local(state)
            if here.dtype == kind and here.device == entry.device and has_layout_of(entry.weights, here):
                return state
        if entry.is_distributed:
            fresh = torch.zeros_like(entry.parameter, dtype=kind, requires_grad=False)
            if not has_layout_of(entry.weights, local(fresh)):
                raise InputError(f"{entry.where} is a DTensor whose part has gaps in memory: expected a contiguous one")
        else:
            weights = entry.weights
            fresh = torch.empty_strided(weights.shape, weights.stride(), dtype=kind, device=weights.device).zero_()
        if state is not None and state.shape == fresh.shape:
            fresh.copy_(state)
        return fresh

    def _is_current(self, entry: Entry, state: dict[str, Any], rule: StepRule) -> bool:
        """Whether the master still belongs to the parameter."""
        if state.get(self._master_key + "_p", rule.master_p) != rule.master_p:
            return False
        seen = self._seen.get(entry.parameter)
        if seen is not None:
            return seen == (entry.parameter._version, entry.data)
        assert entry.master is not None
        if is_master_of(entry.weights, local(entry.master), rule):
            return True
        warn_once(
            "the master weights that attmirror's optimizer loaded are not those of its parameters: they are made anew "
            "from the parameters"
        )
        return False

    def _fill(self, batch: Batch, outdated: list[Entry]) -> None:
        if not outdated:
            return
        if batch.engine == "tensors":
            for entry in outdated:
                assert entry.master is not None
                fill_master(entry.weights, local(entry.master), batch.rule)
            return
        part = Batch(batch.rule, batch.engine, batch.dtype, batch.device)
        part.entries = outdated
        self._close(part)
        if batch.engine == "cuda":
            self._set_stream(part)
            self._cuda().fill_masters(part.options, part.tensors, part.cuda)
        else:
            part.options.threads = torch.get_num_threads()
            self._cpu().fill_masters(part.options, part.tensors)

    def _close(self, batch: Batch) -> None:
        """Once all parameters are there, with their states."""
        batch.close()
        if batch.engine == "cuda":
            batch.step = self._cuda().prepared_step(batch.options, batch.tensors, batch.cuda)
        elif batch.engine == "cpu":
            batch.step = self._cpu().prepared_step(batch.options, batch.tensors)

    # ---- kernels ------------------------------------------------------------------------------------------------------

    @staticmethod
    def _cpu() -> library.CpuLibrary:
        found = library.cpu_library()
        assert found is not None
        return found

    @staticmethod
    def _cuda() -> library.CudaLibrary:
        found = library.cuda_library()
        assert found is not None
        return found

    @staticmethod
    def _set_stream(batch: Batch) -> int:
        index = batch.cuda.device = batch.device.index
        stream = batch.cuda.stream = current_stream(index)
        return stream

    def _run(self, batch: Batch, lr: float | torch.Tensor, scale: Any, found: Any) -> None:
        if batch.engine == "cuda":
            self._run_cuda(batch, lr, scale, found)
        elif batch.engine == "cpu":
            self._run_cpu(batch, float(lr), scale)
        else:
            self._run_tensors(batch, lr, scale)

    def _whole(self, batch: Batch, norms: torch.Tensor) -> torch.Tensor:
        return whole_norms(norms, batch.rule.exponents.dual, [entry.groups for entry in batch.entries])

    def _run_cpu(self, batch: Batch, lr: float, scale: Any) -> None:
        options = batch.options
        options.rate, options.threads = lr, torch.get_num_threads()
        options.gradient_scale = 1.0 if scale is None else float(scale)
        if not (batch.is_sharded and batch.rule.needs_norm):
            batch.step()
            return
        kernels, norms = self._cpu(), torch.empty(len(batch.entries), dtype=torch.float64)
        kernels.measure(options, batch.tensors, norms.data_ptr())
        norms = self._whole(batch, norms)
        kernels.step(options, batch.tensors, norms.data_ptr())

    def _run_cuda(self, batch: Batch, lr: float | torch.Tensor, scale: Any, found: Any) -> None:
        options, device, rule = batch.options, batch.cuda, batch.rule
        is_captured = torch.cuda.is_current_stream_capturing()
        if is_captured and not rule.capturable:
            raise InputError("a CUDA graph captures this step, and capturable is False: expected True", "capturable")
        stream = self._set_stream(batch)
        # Kept until the call returns; what the stream still reads is not given to others by PyTorch's allocator.
        on_device = [batch.on_device(tensor) for tensor in (lr if isinstance(lr, torch.Tensor) else None, scale, found)]
        device.rate, device.gradient_scale, device.found_nonfinite = [
            None if tensor is None else tensor.data_ptr() for tensor in on_device
        ]
        options.rate = 0.0 if isinstance(lr, torch.Tensor) else lr
        device.norms = device.workspace = None
        workspace = norms = None
        if rule.needs_norm or device.rate is not None:
            workspace = self._workspace(batch, stream, is_captured)
            device.workspace = workspace.data_ptr()
        if rule.needs_norm and batch.is_sharded:
            norms = torch.empty(len(batch.entries), dtype=torch.float64, device=batch.device)
            self._cuda().measure(options, batch.tensors, norms.data_ptr(), device)
            norms = self._whole(batch, norms)
            device.norms = norms.data_ptr()
        batch.step()

    def _workspace(self, batch: Batch, stream: int, is_captured: bool) -> torch.Tensor:
        """Memory for the norms of a step, kept from one to the next of the same stream. A graph gets its own, which lives as
        long as the graph."""
        known = batch.workspaces.get(stream)
        if known is not None and not is_captured:
            return known
        bytes_needed = self._cuda().workspace_bytes(batch.options, batch.tensors, batch.cuda)
        made = torch.empty(bytes_needed, dtype=torch.uint8, device=batch.device)
        if not is_captured:
            batch.workspaces = {stream: made}
        return made

    @torch.no_grad()  # type: ignore[misc,untyped-decorator,unused-ignore]
    def _run_tensors(self, batch: Batch, lr: float | torch.Tensor, scale: Any) -> None:
        if isinstance(lr, torch.Tensor):
            # Without dimensions, which would be those of the step as well.
            lr = lr.detach().reshape(()).to(batch.device) if batch.device.type != "cpu" else float(lr)
        tensors = [
            StepTensors(
                entry.weights,
                entry.taken_gradient(),
                None if entry.master is None else local(entry.master),
                None if entry.momentum is None else local(entry.momentum),
            )
            for entry in batch.entries
        ]
        divisor: Any = 1.0 if scale is None else scale.to(batch.device)
        tensor_steps(tensors, batch.rule, lr, divisor, lambda norms: self._whole(batch, norms))

    # ---- saving and loading -------------------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As PyTorch's own, but momentum and masters stay in 32 bits where the parameter has 16, and a state whose shape is
        not that of its parameter is refused."""
        saved_ids = list(itertools.chain.from_iterable(group["params"] for group in state_dict["param_groups"]))
        places = [
            (parameter, f"parameter {i} of group {g}")
            for g, group in enumerate(self.param_groups)
            for i, parameter in enumerate(group["params"])
        ]
        loaded: list[tuple[torch.Tensor, str, torch.Tensor]] = []
        if len(saved_ids) == len(places):  # PyTorch says it otherwise
            for saved_id, (parameter, where) in zip(saved_ids, places):
                saved = state_dict["state"].get(saved_id, {})
                for key in ("momentum_buffer", self._master_key):
                    value = saved.get(key)
                    if not isinstance(value, torch.Tensor):
                        continue
                    if value.shape != parameter.shape:
                        shapes = f"{tuple(value.shape)}, and the parameter {tuple(parameter.shape)}"
                        raise InputError(f"the {key} of {where} to be loaded has the shape {shapes}")
                    loaded.append((parameter, key, value))
        super().load_state_dict(state_dict)
        for parameter, key, value in loaded:
            kind = state_type(parameter.dtype)
            self.state[parameter][key] = value.detach().to(device=parameter.device, dtype=kind, copy=True)
        self._forget()

    def _forget(self) -> None:
        self._groups, self._seen = {}, {}

    def __getstate__(self) -> dict[str, Any]:
        if self._process_group is not None:
            raise TypeError("an optimizer with a process_group cannot be pickled or copied: save its state_dict()")
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("_groups", "_seen", "_process_group")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # States that are older than an option lack it. (The default of "differentiable" is PyTorch's, not one of ours.)
        for group in self.param_groups:
            for name, value in self.defaults.items():
                if name != "differentiable":
                    group.setdefault(name, value)
        if "_process_group" not in self.__dict__:
            self._process_group = None
        self._warned_capturable_if_run_uncaptured = True
        self._forget()


_is_profiled: Callable[[], bool] = getattr(torch.autograd, "_profiler_enabled")  # noqa: B009
_all_hooks = [
    hooks
    for name in ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")
    if (hooks := getattr(sys.modules.get(torch.optim.Optimizer.__module__), name, None)) is not None
]


def _has_hooks(optimizer: FusedOptimizer) -> bool:
    """PyTorch 1.13 has none."""
    own = optimizer.__dict__
    return bool(own.get("_optimizer_step_pre_hooks") or own.get("_optimizer_step_post_hooks") or any(_all_hooks))


def _step_with_record(optimizer: FusedOptimizer, *arguments: Any) -> Any:
    with torch.autograd.profiler.record_function(f"Optimizer.step#{type(optimizer).__name__}.step"):
        return optimizer._step(*arguments)


# PyTorch's own wrapper, which calls the hooks and names the step to a profiler.
_wrapper = getattr(torch.optim.Optimizer, "profile_hook_step", None)
_observed_step: Callable[..., Any] = _step_with_record if _wrapper is None else _wrapper(FusedOptimizer._step)
