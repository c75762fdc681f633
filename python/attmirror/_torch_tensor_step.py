"""The step in tensor operations: for devices without a kernel, for directions that need all of a matrix, and as the text
that kernels are checked against. Arithmetic is in float64, or in float32 on devices that have no float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch  # type: ignore[import-not-found,unused-ignore]

from ._step_rules import StepRule


@dataclass
class StepTensors:
    """The tensors of one parameter, in one layout. `master` and `momentum` where there are any."""

    weights: torch.Tensor
    gradient: torch.Tensor
    master: torch.Tensor | None
    momentum: torch.Tensor | None


def widened(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float64 if x.device.type in ("cpu", "cuda") else torch.float32)


def signed_power(x: torch.Tensor, exponent: float) -> torch.Tensor:
    return x if exponent == 1 else x.sign() * x.abs().pow(exponent)


def dual_norm(d: torch.Tensor, q: float) -> torch.Tensor:
    """||d||_q without over- or underflow of the powers."""
    if d.numel() == 0:
        return d.new_zeros(())
    largest = d.abs().max()
    unit = torch.where(largest == 0, torch.ones_like(largest), largest)
    return unit * (d / unit).abs().pow(q).sum().pow(1 / q)


def _divided(d: torch.Tensor, norm: torch.Tensor) -> torch.Tensor:
    # A gradient of zeros has no direction.
    return torch.where(norm == 0, torch.zeros_like(d), d / norm)


def tensor_steps(
    tensors: Sequence[StepTensors],
    rule: StepRule,
    lr: float | torch.Tensor,
    scale: float | torch.Tensor,
    whole: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    """`whole` takes the norms of all tensors and gives those of what they are parts of."""
    directions = []
    for tensor in tensors:
        d = widened(tensor.gradient) / scale
        if rule.maximize:
            d = -d
        if rule.momentum > 0:
            assert tensor.momentum is not None
            tensor.momentum.copy_(rule.momentum * widened(tensor.momentum) + d)
            m = widened(tensor.momentum)
            d = d + rule.momentum * m if rule.nesterov else m
        directions.append(d)

    e = rule.exponents
    if rule.needs_norm:
        norms = whole(torch.stack([dual_norm(d, e.dual) for d in directions]))
        directions = [_divided(d, norm) for d, norm in zip(directions, norms)]
    for tensor, d in zip(tensors, directions):
        if rule.direction is not None:
            d = widened(rule.direction(d))
        elif rule.rule == "steepest":
            d = signed_power(d, e.inverse)
        elif rule.rule == "sign":
            d = d.sign()
        _move(tensor, d, rule, lr)


def _move(tensor: StepTensors, d: torch.Tensor, rule: StepRule, lr: float | torch.Tensor) -> None:
    e = rule.exponents
    map_power, inverse = (e.map, e.inverse) if rule.is_mirror else (1.0, 1.0)
    keep: float | torch.Tensor = (1 - lr * rule.weight_decay) ** map_power if rule.weight_decay > 0 else 1.0
    w = widened(tensor.weights)
    y = keep * (signed_power(w, map_power) if tensor.master is None else widened(tensor.master)) - lr * d
    # What is not pushed does not move, not even by rounding there and back.
    rests = d == 0 if rule.weight_decay == 0 else None
    if tensor.master is not None:
        if rests is not None:
            y = torch.where(rests, widened(tensor.master), y)
        tensor.master.copy_(y)
        y = widened(tensor.master)
    moved = signed_power(y, inverse)
    if rests is not None:
        moved = torch.where(rests, w, moved)
    tensor.weights.copy_(moved)


def fill_master(weights: torch.Tensor, master: torch.Tensor, rule: StepRule) -> None:
    master.copy_(signed_power(widened(weights), rule.exponents.map if rule.is_mirror else 1.0))


def is_master_of(weights: torch.Tensor, master: torch.Tensor, rule: StepRule) -> bool:
    """Whether `weights` is what steps leave beside this master, or what it was made from, up to rounding."""
    e = rule.exponents
    map_power, inverse = (e.map, e.inverse) if rule.is_mirror else (1.0, 1.0)
    w, y = widened(weights), widened(master)
    expected = widened(signed_power(y, inverse).to(weights.dtype))
    # One unit in the last place of the weights, and what the rounding of the master (2 units of its own) makes of them.
    unit, state_unit = torch.finfo(weights.dtype).eps, torch.finfo(master.dtype).eps
    relative = unit + 4 * max(1.0, inverse) * state_unit
    absolute = 2.0**-23 if weights.dtype == torch.float16 else 4 * 2.0**-149
    near = (w - expected).abs() <= relative * w.abs() + absolute
    # A weight that has never moved need not come back from its image, which may be 0 or infinite (p = 10, 1e-6).
    image = widened(signed_power(w, map_power).to(master.dtype))
    untouched = (y == image) | ((y - image).abs() <= 4 * state_unit * image.abs() + absolute)
    return bool((near | untouched | (w == expected) | (w.isnan() & expected.isnan())).all())


def polar_factor(d: torch.Tensor, method: str, iterations: int) -> torch.Tensor:
    """U V^T of d = U S V^T, for a tensor read as a matrix of its first dimension by the rest, and a vector as a column."""
    if d.numel() == 0:
        return d
    matrix = d.reshape(-1, 1) if d.dim() < 2 else d.reshape(d.shape[0], -1)
    matrix = matrix.to(d.dtype if d.dtype == torch.float64 else torch.float32)
    largest = matrix.abs().max()
    matrix = matrix / torch.where(largest == 0, torch.ones_like(largest), largest)
    norm = matrix.norm()
    matrix = matrix / torch.where(norm == 0, torch.ones_like(norm), norm)
    if method == "svd" and not bool(torch.isfinite(matrix).all()):
        return torch.full_like(d, float("nan"))
    # A vector is its own polar factor, once it has length 1.
    if min(matrix.shape) > 1:
        matrix = _exact_polar(matrix) if method == "svd" else _newton_schulz(matrix, iterations)
    return matrix.reshape(d.shape)


def _exact_polar(matrix: torch.Tensor) -> torch.Tensor:
    u, values, v = torch.linalg.svd(matrix, full_matrices=False)
    # Directions in which there is nothing but rounding have no sign to step by.
    smallest = torch.finfo(matrix.dtype).eps * max(matrix.shape)
    factor: torch.Tensor = (u * (values > smallest * values.max()).to(matrix.dtype)) @ v
    return factor


def _newton_schulz(matrix: torch.Tensor, iterations: int) -> torch.Tensor:
    a, b, c = 3.4445, -4.7750, 2.0315  # Muon's polynomial
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.t() if is_tall else matrix
    for _ in range(iterations):
        gram = x @ x.t()
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.t() if is_tall else x
