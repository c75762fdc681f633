#!/usr/bin/env python3
"""Checks attmirror.torch on the GPU of this machine, without pytest: what tests/torch checks on the CPU, where it differs.

Ends with 0 if all is well, 1 if not, 77 where there is no GPU.
"""

import itertools
import pathlib
import sys
import traceback

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "torch"))

import attmirror.torch as at  # noqa: E402
from attmirror import _step_library as library  # noqa: E402
from torch_cases import Reference, captured_steps, distance, parameters, same_bits, set_gradients, train  # noqa: E402

SHAPES = [(70, 50), (4000,), (3, 4, 5), (), (1,), (0,)]
ALL_P = (1.1, 1.5, 1.75, 2, 3)
KINDS = (
    {},
    {"momentum": 0.9},
    {"normalized": True},
    {"momentum": 0.9, "nesterov": True, "normalized": True, "weight_decay": 0.1},
    {"weight_decay": 0.1, "maximize": True},
    {"dual_state": True},
)


def check_the_formula():
    for p, kind in itertools.product(ALL_P, KINDS):
        (w,) = parameters([(301,)], torch.float64, "cuda", scale=0.5)
        reference = Reference(w, p, 0.01, **{k: v for k, v in kind.items() if k != "dual_state"})
        optimizer = at.MirrorDescent([w], lr=0.01, p=p, fused=True, **kind)
        for i in range(100):
            set_gradients([w], i)
            optimizer.step()
            reference.step(w.grad)
        assert distance(w, reference.w) < 1e-12, (p, kind, distance(w, reference.w))


def check_kernels_match_tensor_operations():
    bounds = {torch.float64: 1e-13, torch.float32: 3e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}
    for dtype, p, kind in itertools.product(bounds, (1.1, 1.75, 2, 3), KINDS):
        ours, theirs = parameters(SHAPES, dtype, "cuda"), parameters(SHAPES, dtype, "cuda")
        train(at.MirrorDescent(ours, lr=0.01, p=p, fused=True, **kind), ours, 5)
        train(at.MirrorDescent(theirs, lr=0.01, p=p, foreach=True, **kind), theirs, 5)
        for a, b in zip(ours, theirs):
            assert a.numel() == 0 or distance(a, b) < bounds[dtype], (dtype, p, kind, distance(a, b))
    for dtype, norm in itertools.product(bounds, ("l1.5", "l2", 3, "sign")):
        ours, theirs = parameters(SHAPES, dtype, "cuda"), parameters(SHAPES, dtype, "cuda")
        train(at.SteepestDescent(ours, lr=0.01, norm=norm, fused=True), ours, 5)
        train(at.SteepestDescent(theirs, lr=0.01, norm=norm, foreach=True), theirs, 5)
        for a, b in zip(ours, theirs):
            assert a.numel() == 0 or distance(a, b) < bounds[dtype], (dtype, norm, distance(a, b))


def check_layouts():
    base = 0.1 * torch.randn(8, 6, 5, 4, device="cuda")
    kinds = {
        "transposed": base.transpose(0, 3).contiguous().transpose(0, 3),
        "channels last": base.contiguous(memory_format=torch.channels_last),
        "gaps": torch.stack([base, base], dim=-1)[..., 0],
    }
    for kind, weights in kinds.items():
        plain, other = torch.nn.Parameter(base.clone()), torch.nn.Parameter(weights)
        optimizers = [at.MirrorDescent([w], lr=0.01, p=1.1, momentum=0.9, normalized=True) for w in (plain, other)]
        for i in range(3):
            set_gradients([plain], i)
            other.grad = plain.grad.clone()
            version = other._version
            for optimizer in optimizers:
                optimizer.step()
            assert other._version > version, kind
        assert distance(other, plain) < 1e-6, kind


def check_grad_scaler():
    scaler = torch.amp.GradScaler("cuda")
    (w,), (twin,) = parameters([(2000,)], device="cuda"), parameters([(2000,)], device="cuda")
    optimizer, plain = (at.MirrorDescent([own], lr=0.1, p=1.1, momentum=0.5) for own in (w, twin))
    for factor in (1.0, float("inf"), 1.0):
        before = w.detach().clone()
        for own, which in ((w, optimizer), (twin, plain)):
            which.zero_grad()
            loss = (own**2).sum() * (factor if own is w else 1.0)
            (scaler.scale(loss) if own is w else loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if factor == 1.0:
            plain.step()
            assert distance(w, twin) < 1e-6
        else:
            assert same_bits(w, before)


def check_tensor_rates():
    for p, kind in itertools.product((1.1, 1.75, 3), KINDS):
        ours, theirs = parameters(SHAPES, device="cuda"), parameters(SHAPES, device="cuda")
        train(at.MirrorDescent(ours, lr=torch.tensor(0.125, device="cuda"), p=p, **kind), ours, 3)
        train(at.MirrorDescent(theirs, lr=0.125, p=p, **kind), theirs, 3)
        for a, b in zip(ours, theirs):
            assert a.numel() == 0 or distance(a, b) < 1e-6, (p, kind, distance(a, b))


def check_graphs():
    for normalized, dtype in itertools.product((False, True), (torch.float32, torch.bfloat16)):
        options = {"p": 1.1, "momentum": 0.9, "weight_decay": 0.01, "normalized": normalized}
        captured, plain = captured_steps(at.MirrorDescent, dtype, **options)
        assert all(same_bits(a, b) for a, b in zip(captured, plain)), (normalized, dtype)


def check_saving():
    params = parameters(SHAPES, torch.bfloat16, "cuda")
    optimizer = at.MirrorDescent(params, lr=0.01, p=1.1, momentum=0.9)
    train(optimizer, params, 3)
    others = [torch.nn.Parameter(w.detach().clone()) for w in params]
    other = at.MirrorDescent(others, lr=0.01, p=1.1, momentum=0.9)
    other.load_state_dict(optimizer.state_dict())
    assert other.state[others[0]]["dual"].dtype == torch.float32
    train(optimizer, params, 2, first_seed=300)
    train(other, others, 2, first_seed=300)
    assert all(same_bits(a, b) for a, b in zip(params, others))


def main():
    if not torch.cuda.is_available():
        print("there is no GPU")
        return 77
    assert library.cuda_library() is not None, f"set {library.FOLDER_VARIABLE} to the folder of libattmirror_cuda_step.so"
    failed = 0
    for name, check in sorted(globals().items()):
        if not name.startswith("check_"):
            continue
        try:
            check()
            print(f"{name[6:].replace('_', ' ')}: well")
        except Exception:
            failed += 1
            print(f"{name[6:].replace('_', ' ')}: FAILED\n{traceback.format_exc()}")
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
