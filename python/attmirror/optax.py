"""l_p mirror descent and steepest descent as optax transformations, in plain JAX.

    import attmirror.optax

    optimizer = attmirror.optax.mirror_descent(learning_rate=0.08, p=1.1)
    state = optimizer.init(params)
    updates, state = optimizer.update(grads, state, params)
    params = optax.apply_updates(params, updates)

The update is that of `attmirror.torch`. An optax update is added to the parameters, so it is w' - w, rounded; the mirror step
needs the parameters (`update(grads, state, params)`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax  # type: ignore[import-not-found,unused-ignore]
import jax.numpy as jnp  # type: ignore[import-not-found,unused-ignore]
import optax  # type: ignore[import-not-found,import-untyped,unused-ignore]

from ._step_rules import check_decay, check_lr, check_momentum, check_p, exponents, number, read_norm
from ._errors import InputError

__all__ = ["StepState", "mirror_descent", "steepest_descent"]


class StepState(NamedTuple):
    count: Any  # steps so far, for schedules
    momentum: Any  # as the parameters; () without momentum


def _power(x: Any, exponent: float) -> Any:
    if exponent == 1:
        return x
    # 0^r has an infinite derivative for r < 1, and no use.
    safe = jnp.where(x == 0, 1, jnp.abs(x))
    return jnp.where(x == 0, 0, jnp.sign(x) * safe**exponent).astype(x.dtype)


def _dual_norm(d: Any, q: float) -> Any:
    largest = jnp.max(jnp.abs(d), initial=0)
    unit = jnp.where(largest == 0, 1, largest)
    return unit * jnp.sum((jnp.abs(d) / unit) ** q) ** (1 / q)


def _normalized(d: Any, q: float) -> Any:
    norm = _dual_norm(d, q)
    return jnp.where(norm == 0, jnp.zeros_like(d), d / jnp.where(norm == 0, 1, norm))


def _wide(x: Any) -> Any:
    """float16 and bfloat16 are computed with in 32 bits."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def _transformation(
    learning_rate: Any,
    momentum: float,
    nesterov: bool,
    weight_decay: float,
    move: Callable[[Any, Any, Any, Any], Any],
) -> optax.GradientTransformation:
    """`move(w, d, lr, keep)` gives the new weights of one array."""
    momentum, weight_decay = number("momentum", momentum), number("weight_decay", weight_decay)
    check_momentum(momentum, nesterov)
    lr_now = None
    if not callable(learning_rate) and not isinstance(learning_rate, jax.Array):
        lr_now = number("learning_rate", learning_rate)
        try:
            check_lr(lr_now)
        except InputError:
            raise InputError(
                f"learning_rate is {lr_now:g}: expected a finite number, 0 or more", "learning_rate"
            ) from None
    check_decay(weight_decay, lr_now)

    def init(params: Any) -> StepState:
        zeros = jax.tree_util.tree_map(lambda w: jnp.zeros_like(_wide(w)), params) if momentum > 0 else ()
        return StepState(jnp.zeros([], jnp.int32), zeros)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, StepState]:
        if params is None:
            raise InputError("params is None: expected update(grads, state, params)", "params")
        lr = learning_rate(state.count) if callable(learning_rate) else learning_rate
        directions, sums = jax.tree_util.tree_map(_wide, updates), state.momentum
        if momentum > 0:
            sums = jax.tree_util.tree_map(lambda m, d: momentum * m + d, sums, directions)
            directions = jax.tree_util.tree_map(lambda m, d: d + momentum * m if nesterov else m, sums, directions)

        def step(w: Any, d: Any) -> Any:
            wide = _wide(w)
            rate = jnp.asarray(lr, wide.dtype)
            moved = move(wide, d.astype(wide.dtype), rate, 1 - rate * weight_decay)
            # What is not pushed does not move, not even by rounding there and back.
            change = moved - wide
            return (jnp.where(d == 0, 0, change) if weight_decay == 0 else change).astype(w.dtype)

        changes = jax.tree_util.tree_map(step, params, directions)
        return changes, StepState(state.count + 1, sums)

    return optax.GradientTransformation(init, update)


def mirror_descent(
    learning_rate: float | Callable[[Any], Any],
    p: float = 2.0,
    normalized: bool = False,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
) -> optax.GradientTransformation:
    """y <- y - lr d with y = sign(w) |w|^{p-1}; see `attmirror.torch.MirrorDescent`. `learning_rate` may be a schedule."""
    p = number("p", p)
    check_p(p)
    e = exponents(p)

    def move(w: Any, d: Any, lr: Any, keep: Any) -> Any:
        if normalized:
            d = _normalized(d, e.dual)
        return _power(keep**e.map * _power(w, e.map) - lr * d, e.inverse)

    return _transformation(learning_rate, momentum, nesterov, weight_decay, move)


def steepest_descent(
    learning_rate: float | Callable[[Any], Any],
    norm: str | float = "l2",
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
) -> optax.GradientTransformation:
    """Steps of length lr in an l_p norm ("l1.5", "l2", "linf" or "sign"); see `attmirror.torch.SteepestDescent`."""
    p = read_norm(norm)
    if p is None:
        raise InputError('norm is "spectral": expected an l_p norm (optax.contrib.muon has spectral steps)', "norm")
    is_sign = p == float("inf")
    e = exponents(2.0 if is_sign else p)

    def move(w: Any, d: Any, lr: Any, keep: Any) -> Any:
        return keep * w - lr * (jnp.sign(d) if is_sign else _power(_normalized(d, e.dual), e.inverse))

    return _transformation(learning_rate, momentum, nesterov, weight_decay, move)
