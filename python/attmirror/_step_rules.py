"""What a step does to the parameters of one group: the options, checked, and the exponents that they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from ._errors import InputError


class Exponents(NamedTuple):
    """y = sign(w) |w|^map, w = sign(y) |y|^inverse, and q of the dual norm."""

    map: float
    inverse: float
    dual: float


def exponents(p: float) -> Exponents:
    """Of the fraction that a p such as 1.1 stands for: 1/(p - 1) is 10, not 9.99...91."""
    exact = Fraction(p).limit_denominator(64)
    if float(exact) != p:
        exact = Fraction(p)
    return Exponents(float(exact - 1), float(1 / (exact - 1)), float(exact / (exact - 1)))


@dataclass(frozen=True)
class StepRule:
    """The options of one group, as a step needs them. `lr` is not among them where it is a tensor on a GPU."""

    rule: str  # "mirror", "steepest" or "sign"
    p: float
    momentum: float
    nesterov: bool
    weight_decay: float
    normalized: bool
    maximize: bool
    master: bool | None  # None: for float16 and bfloat16
    foreach: bool | None
    fused: bool | None
    capturable: bool
    exact: bool = False
    # Where set, steps go along direction(d), by tensor operations.
    direction: Callable[[Any], Any] | None = None

    @property
    def is_mirror(self) -> bool:
        return self.rule == "mirror" and self.direction is None

    @property
    def needs_norm(self) -> bool:
        return self.direction is None and (self.rule == "steepest" or (self.rule == "mirror" and self.normalized))

    @property
    def master_p(self) -> float:
        """The p whose mirror image the master is: w itself for 2."""
        return self.p if self.is_mirror else 2.0

    @property
    def exponents(self) -> Exponents:
        return exponents(self.p) if self.rule != "sign" and self.direction is None else exponents(2.0)


def number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}: expected a number", name) from None


def check_p(p: float) -> None:
    if not (p > 1 and math.isfinite(p)):
        raise InputError(f"p is {p:g}: expected a finite number greater than 1", "p")


def check_lr(lr: float) -> None:
    if not (lr >= 0 and math.isfinite(lr)):
        raise InputError(f"lr is {lr:g}: expected a finite number, 0 or more", "lr")


def check_momentum(momentum: float, nesterov: bool) -> None:
    if not 0 <= momentum < 1:
        raise InputError(f"momentum is {momentum:g}: expected a number from 0 to 1, without 1", "momentum")
    if nesterov and momentum == 0:
        raise InputError("nesterov needs a momentum greater than 0, and momentum is 0", "nesterov")


def check_decay(weight_decay: float, lr: float | None) -> None:
    """`lr` is None where only the GPU knows it."""
    if not (weight_decay >= 0 and math.isfinite(weight_decay)):
        raise InputError(f"weight_decay is {weight_decay:g}: expected a finite number, 0 or more", "weight_decay")
    if lr is not None and not lr * weight_decay < 1:
        raise InputError(
            f"weight_decay is {weight_decay:g} at an lr of {lr:g}: expected lr * weight_decay below 1", "weight_decay"
        )


def read_norm(norm: Any) -> float | None:
    """The p of an l_p norm, infinite for "linf"; None for "spectral"."""
    text = norm if isinstance(norm, str) else f"{norm}"
    if text == "spectral":
        return None
    if text in ("sign", "linf", "inf"):
        return math.inf
    if text == "frobenius":
        return 2.0
    try:
        p = float(text[1:] if text.startswith("l") else text)
    except ValueError:
        p = math.nan
    if p > 1:
        return p
    raise InputError(
        f'norm is "{text}": expected l and a number greater than 1 (l1.5), linf (or sign), or spectral', "norm"
    )
