"""attmirror.optax against the update in three lines of float64 (NumPy)."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402

import attmirror.optax as ao  # noqa: E402
from attmirror._errors import InputError  # noqa: E402


def run(optimizer, w, steps, dtype, jit):
    params = {"a": jnp.asarray(w, dtype), "b": jnp.zeros((0,), dtype)}
    state = optimizer.init(params)
    update = jax.jit(optimizer.update) if jit else optimizer.update
    for i in range(steps):
        g = np.random.default_rng(i).normal(0, 0.1, w.shape)
        updates, state = update({"a": jnp.asarray(g, dtype), "b": params["b"]}, state, params)
        params = optax.apply_updates(params, updates)
    assert params["a"].dtype == dtype
    return np.asarray(params["a"], np.float64)


def reference(w, steps, p, lr, momentum=0.0, nesterov=False, weight_decay=0.0, normalized=False):
    m = np.zeros_like(w)
    for i in range(steps):
        d = np.random.default_rng(i).normal(0, 0.1, w.shape)
        rate = lr(i) if callable(lr) else lr
        m = momentum * m + d
        d = (d + momentum * m if nesterov else m) if momentum > 0 else d
        if normalized:
            q = p / (p - 1)
            d = d / np.sum(np.abs(d) ** q) ** (1 / q)
        y = (1 - rate * weight_decay) ** (p - 1) * np.sign(w) * np.abs(w) ** (p - 1) - rate * d
        w = np.sign(y) * np.abs(y) ** (1 / (p - 1))
    return w


KINDS = [
    {},
    {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    {"normalized": True, "momentum": 0.9},
]


@pytest.mark.parametrize("p", [1.1, 1.5, 1.75, 2, 3])
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("jit", [False, True])
def test_a_hundred_steps_follow_the_formula(p, kind, jit):
    w = np.random.default_rng(99).normal(0, 0.5, 301)
    steps = 100 if jit else 5
    expected = reference(w, steps, p, 0.01, **kind)
    got = run(ao.mirror_descent(0.01, p=p, **kind), w, steps, jnp.float64, jit)
    assert np.linalg.norm(got - expected) < 1e-12 * np.linalg.norm(expected)
    assert np.linalg.norm(got - w) > 1e-3
    single = run(ao.mirror_descent(0.01, p=p, **kind), w, steps, jnp.float32, jit)
    assert np.linalg.norm(single - expected) < 1e-4 * np.linalg.norm(expected)


def test_schedules():
    w = np.random.default_rng(99).normal(0, 0.5, 301)
    schedule = optax.exponential_decay(0.1, 1, 0.5)
    got = run(ao.mirror_descent(schedule, p=1.5), w, 10, jnp.float64, True)
    expected = reference(w, 10, 1.5, lambda i: 0.1 * 0.5**i)
    assert np.linalg.norm(got - expected) < 1e-7 * np.linalg.norm(expected)  # schedules are float32


@pytest.mark.parametrize("norm, p", [("l1.5", 1.5), ("l2", 2.0), (3, 3.0), ("sign", None)])
def test_steepest_steps(norm, p):
    w, g = np.random.default_rng(1).normal(0, 0.5, 50), np.random.default_rng(0).normal(0, 0.1, 50)
    got = run(ao.steepest_descent(0.1, norm=norm), w, 1, jnp.float64, False)
    if p is None:
        d = np.sign(g)
    else:
        q = p / (p - 1)
        d = np.sign(g) * (np.abs(g) / np.sum(np.abs(g) ** q) ** (1 / q)) ** (1 / (p - 1))
    assert np.allclose(got, w - 0.1 * d, rtol=1e-13)


def test_what_is_not_pushed_does_not_move():
    params = {"w": jnp.asarray([0.3, 0.0, -0.1], jnp.float32)}
    for optimizer in (ao.mirror_descent(0.1, p=1.1, normalized=True), ao.steepest_descent(0.1, "l1.5")):
        updates, _ = optimizer.update({"w": jnp.zeros(3, jnp.float32)}, optimizer.init(params), params)
        assert np.array_equal(np.asarray(updates["w"]), np.zeros(3))


def test_what_makes_no_sense():
    for make, sentence in [
        (lambda: ao.mirror_descent(0.1, p=1), "p is 1: expected a finite number greater than 1"),
        (lambda: ao.mirror_descent(-1.0), "learning_rate is -1: expected a finite number, 0 or more"),
        (lambda: ao.mirror_descent(0.1, nesterov=True), "nesterov needs a momentum"),
        (lambda: ao.steepest_descent(0.1, "spectral"), 'norm is "spectral"'),
    ]:
        with pytest.raises(InputError, match=sentence):
            make()
    optimizer = ao.mirror_descent(0.1)
    with pytest.raises(InputError, match="params is None"):
        optimizer.update({"w": jnp.ones(2)}, optimizer.init({"w": jnp.ones(2)}))
