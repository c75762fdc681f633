"""l_p mirror descent and steepest descent as optimizers for PyTorch: one line to change.

    import attmirror.torch

    optimizer = attmirror.torch.MirrorDescent(model.parameters(), lr=0.08, p=1.1)

Steps run at the speed of memory, on the CPU and on NVIDIA GPUs, by kernels that know nothing of PyTorch's version. Elsewhere
(`foreach=True`) they are made of tensor operations. Parameter groups, closures, schedulers, `state_dict()`, GradScaler,
hooks and CUDA graphs work as with PyTorch's own optimizers.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]

from ._errors import InputError
from ._step_rules import StepRule, check_p, number, read_norm
from ._torch_optimizer import FusedOptimizer
from ._torch_tensor_step import polar_factor

__all__ = ["MirrorDescent", "SteepestDescent"]

_COMMON = ("momentum", "nesterov", "weight_decay", "maximize", "foreach", "fused", "capturable")


class MirrorDescent(FusedOptimizer):
    r"""Mirror descent with the potential :math:`\frac1p \|w\|_p^p`::

        y <- y - lr d,   y = sign(w) |w|^{p-1},   w = sign(y) |y|^{1/(p-1)}

    p = 2 is SGD. p near 1 makes most weights small and a few large, p > 2 evens them out. The step lives in the space of y: a
    weight of size s moves by about lr d s^{2-p}/(p-1), so that lr is chosen anew for each p.

    Parameters
    ----------
    params : iterable
        Parameters, or dicts of groups, which may have options of their own.
    lr : float or Tensor
        The step in the space of y. A tensor on the GPU is read there: a captured step follows a scheduler.
    p : float
        Any number greater than 1.
    normalized : bool
        Divides each tensor's direction by its dual norm, ||d||_q with q = p/(p-1), after momentum.
    momentum, nesterov
        As those of SGD, without dampening.
    weight_decay : float
        Decoupled, as in AdamW: w <- (1 - lr weight_decay) w.
    maximize : bool
        Steps go up the gradient.
    foreach : bool, optional
        True: steps of tensor operations, for devices without a kernel and to check against.
    fused : bool, optional
        True: an error where there is no kernel. False: tensor operations.
    capturable : bool
        The step may be captured into a CUDA graph, after a first one that was not.
    dual_state : bool, optional
        Whether y is kept in 32 bits (64 for float64), from which steps continue. None: for bfloat16 and float16, whose 8 or
        11 bits lose small steps.
    process_group : torch.distributed.ProcessGroup, optional
        Parameters are parts of tensors that lie with the processes of this group: norms are those of the whole. DTensors
        (FSDP2) know that themselves.
    """

    _master_key = "dual"
    _options_of = itemgetter("p", "normalized", "dual_state", *_COMMON)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | torch.Tensor,
        p: float = 2,
        normalized: bool = False,
        momentum: float = 0,
        nesterov: bool = False,
        weight_decay: float = 0,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        capturable: bool = False,
        dual_state: bool | None = None,
        process_group: Any = None,
    ) -> None:
        defaults = {
            "lr": lr, "p": p, "normalized": normalized, "momentum": momentum, "nesterov": nesterov,
            "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach, "fused": fused,
            "capturable": capturable, "dual_state": dual_state,
        }  # fmt: skip
        super().__init__(params, defaults, process_group)

    def _rule(self, group: dict[str, Any]) -> StepRule:
        p = number("p", group["p"])
        check_p(p)
        return StepRule(
            rule="mirror",
            p=p,
            normalized=bool(group["normalized"]),
            master=group["dual_state"],
            **_common_options(group),
        )


class SteepestDescent(FusedOptimizer):
    """Steepest descent in a norm: w <- w - lr D, where D of norm 1 has the largest product with d.

    ==================  =================================================================================
    norm                D
    ==================  =================================================================================
    "l1.5", "l2", 3     sign(d) (abs(d) / ||d||_q)^{1/(p-1)}, q = p/(p-1); "l2" is normalized gradient descent
    "linf", "sign"      sign(d): signSGD
    "spectral"          U V^T of the singular value decomposition d = U S V^T: Muon
    ==================  =================================================================================

    Each parameter takes a step of length lr, whatever its gradient, so lr must decrease for the loss to settle. Spectral steps
    are made of tensor operations; a tensor of more dimensions is read as a matrix of its first by the rest.

    The other options are those of `MirrorDescent`; `polar` is "newton_schulz" (Muon's polynomial, `iterations` times) or "svd",
    and `master_weights` what `dual_state` is there: w in 32 bits.
    """

    _master_key = "master"
    _options_of = itemgetter("norm", "polar", "iterations", "master_weights", *_COMMON)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | torch.Tensor,
        norm: str | float = "l2",
        momentum: float = 0,
        nesterov: bool = False,
        weight_decay: float = 0,
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        capturable: bool = False,
        polar: str = "newton_schulz",
        iterations: int = 5,
        master_weights: bool | None = None,
        process_group: Any = None,
    ) -> None:
        defaults = {
            "lr": lr, "norm": norm, "momentum": momentum, "nesterov": nesterov, "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "fused": fused, "capturable": capturable, "polar": polar,
            "iterations": iterations, "master_weights": master_weights,
        }  # fmt: skip
        super().__init__(params, defaults, process_group)

    def _rule(self, group: dict[str, Any]) -> StepRule:
        p, polar, iterations = read_norm(group["norm"]), group["polar"], group["iterations"]
        if polar not in ("newton_schulz", "svd"):
            raise InputError(f'polar is "{polar}": expected newton_schulz or svd', "polar")
        if not isinstance(iterations, int) or iterations < 1:
            raise InputError(f"iterations is {iterations}: expected a whole number from 1", "iterations")
        is_lp = p is not None and p != float("inf")
        return StepRule(
            rule="steepest" if is_lp else "sign",
            p=p if is_lp and p is not None else 2.0,
            normalized=False,
            master=group["master_weights"],
            direction=(lambda d: polar_factor(d, polar, iterations)) if p is None else None,
            **_common_options(group),
        )


def _common_options(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "momentum": number("momentum", group["momentum"]),
        "nesterov": bool(group["nesterov"]),
        "weight_decay": number("weight_decay", group["weight_decay"]),
        "maximize": bool(group["maximize"]),
        "foreach": group["foreach"],
        "fused": group["fused"],
        "capturable": bool(group["capturable"]),
    }
