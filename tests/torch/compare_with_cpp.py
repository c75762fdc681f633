#!/usr/bin/env python3
"""compare_with_cpp.py torch|optax FOLDER: takes the steps that attmirror_optimizer_cases wrote to FOLDER, and compares.

attmirror.torch must have the bits of the C++ classes, in every type. attmirror.optax, in float64, may differ by 1e-12 of the
norm of a tensor. Exits with 0 if all cases agree, with 1 if one does not.
"""

import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "deep" / "twin"))

import safetensors_file  # noqa: E402
from torch_cases import distance, same_bits  # noqa: E402

OPTAX_TOLERANCE = 1e-12


def numbered(tensors, name):
    return [tensors[f"{name} {i}"] for i in range(sum(key.startswith(name) for key in tensors))]


def by_torch(tensors, metadata):
    import attmirror.torch

    make = getattr(attmirror.torch, metadata["optimizer"])
    params = [torch.nn.Parameter(before.clone()) for before in numbered(tensors, "before")]
    optimizer = make(params, **json.loads(metadata["options"]))
    for step in range(int(metadata["steps"])):
        for param, gradients in zip(params, numbered(tensors, "gradients")):
            param.grad = gradients[step].clone()
        optimizer.step()
    return [param.detach() for param in params]


def by_optax(tensors, metadata):
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import optax

    import attmirror.optax

    make = {"MirrorDescent": attmirror.optax.mirror_descent, "SteepestDescent": attmirror.optax.steepest_descent}
    options = json.loads(metadata["options"])
    sign = -1 if options.pop("maximize", False) else 1
    optimizer = make[metadata["optimizer"]](options.pop("lr"), **options)
    params = [jnp.asarray(before.numpy()) for before in numbered(tensors, "before")]
    gradients = [sign * jnp.asarray(own.numpy()) for own in numbered(tensors, "gradients")]
    state, update = optimizer.init(params), jax.jit(optimizer.update)
    for step in range(int(metadata["steps"])):
        updates, state = update([own[step] for own in gradients], state, params)
        params = optax.apply_updates(params, updates)
    return [torch.tensor(param.tolist(), dtype=torch.float64) for param in params]


def check(which, path):
    """What is wrong, or None; False for a case that optax does not have."""
    tensors, metadata = safetensors_file.load(path)
    expected = numbered(tensors, "after")
    if all(same_bits(a, b) for a, b in zip(expected, numbered(tensors, "before"))):
        return "the C++ class has not moved"
    if which == "torch":
        got = by_torch(tensors, metadata)
        wrong = [i for i, (a, b) in enumerate(zip(got, expected)) if not same_bits(a, b)]
        return f"tensors {wrong} differ in their bits" if wrong else None
    if expected[0].dtype != torch.float64 or "dual_state" in metadata["options"]:
        return False
    worst = max(distance(a, b) for a, b in zip(by_optax(tensors, metadata), expected))
    return None if worst <= OPTAX_TOLERANCE else f"differs by {worst:.3g}: expected at most {OPTAX_TOLERANCE:g}"


def main(which, folder):
    results = {path.name: check(which, path) for path in sorted(pathlib.Path(folder).glob("*.safetensors"))}
    compared = {name: wrong for name, wrong in results.items() if wrong is not False}
    for name, wrong in compared.items():
        if wrong is not None:
            print(f"{name}: {wrong}")
    failed = sum(wrong is not None for wrong in compared.values())
    print(f"attmirror.{which} against C++: {len(compared)} cases, {failed} differ")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
