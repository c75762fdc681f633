#!/usr/bin/env python3
"""torch_step_bench.py [--device cpu|cuda] [--rounds N]: times attmirror.torch and PyTorch's own optimizers.

On the CPU: ns per parameter (16.7 million in one tensor), next to the same step by a bare call of the library, in turns, so
that both meet the same machine; the smallest of N rounds counts. Then the host's time for a step of 40 tensors so small that
nothing else counts, with gradients that stay where they are and with new ones for each step.

On a GPU: ms per step by CUDA events, for 268 million parameters in one tensor and 17 million in 40 tensors, the host's time
for a step (the same two ways), and a step replayed as a CUDA graph.

Run it with PYTHONPATH=python and ATTMIRROR_STEP_LIBRARIES=build/release/python/attmirror, or with the package installed.
"""

import argparse
import time

import torch

import attmirror.torch as at
from attmirror import _step_library as library

ALL_P = (1.1, 2, 3)


def make(sizes, device):
    params = [torch.nn.Parameter(0.02 * torch.randn(size, device=device)) for size in sizes]
    for param in params:
        param.grad = 1e-3 * torch.randn_like(param)
    return params


def seconds(f):
    began = time.perf_counter()
    f()
    return time.perf_counter() - began


def bare_step(params, p):
    """The call that the optimizer makes, and nothing else."""
    options = library.Options(p=p, rate=1e-6, gradient_scale=1.0, threads=torch.get_num_threads())
    array = library.tensor_array(len(params))
    for i, param in enumerate(params):
        array[5 * i], array[5 * i + 1], array[5 * i + 4] = param.data_ptr(), param.grad.data_ptr(), param.numel()
    return lambda: library.cpu_library().step(options, array)


def bench_cpu(rounds):
    size = 16_777_216
    params = make([size], "cpu")
    runs = {"torch SGD": torch.optim.SGD(params, lr=1e-6).step}
    for p in ALL_P:
        runs[f"library, p = {p}"] = bare_step(params, p)
        runs[f"MirrorDescent, p = {p}"] = at.MirrorDescent(params, lr=1e-6, p=p).step
    best = dict.fromkeys(runs, float("inf"))
    for f in runs.values():
        f()
    for _ in range(rounds):
        for name, f in runs.items():
            best[name] = min(best[name], seconds(f))
    print(f"{'CPU, ' + str(torch.get_num_threads()) + ' threads':32} ns per parameter")
    for name, took in best.items():
        print(f"{name:32} {took / size * 1e9:8.3f}")
    for p in ALL_P:
        ratio = best[f"MirrorDescent, p = {p}"] / best[f"library, p = {p}"]
        print(f"p = {p}: the optimizer takes {100 * (ratio - 1):+.1f} % of the bare call more")
    bench_host()


def by_events(f, repeats):
    for _ in range(3):
        f()
    torch.cuda.synchronize()
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(repeats):
        f()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / repeats


def by_host(f, params, repeats, moving):
    """The median time until step() returns, with a GPU that has nothing else to do. `moving`: each step finds other tensors as
    gradients, as after zero_grad()."""
    sets = [[param.grad for param in params], [param.grad.clone() if moving else param.grad for param in params]]
    times = []
    for i in range(repeats):
        for param, gradient in zip(params, sets[i % 2] if moving else ()):
            param.grad = gradient
        if params[0].is_cuda:
            torch.cuda.synchronize()
        times.append(seconds(f))
    for param, gradient in zip(params, sets[0]):
        param.grad = gradient
    return sorted(times)[len(times) // 2] * 1e3


def bench_host():
    params = make([8] * 40, "cpu")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    optimizers = {
        "torch SGD(foreach)": torch.optim.SGD(params, lr=1e-6, foreach=True),
        "MirrorDescent, p = 1.1": at.MirrorDescent(params, lr=1e-6, p=1.1),
        "- with momentum": at.MirrorDescent(params, lr=1e-6, p=1.1, momentum=0.9),
        "- with momentum and dual state": at.MirrorDescent(params, lr=1e-6, p=1.1, momentum=0.9, dual_state=True),
    }
    print(f"\n{'Host, 40 tensors of 8 numbers':32} {'us':>8} {'us, new gradients':>18}")
    for name, optimizer in optimizers.items():
        optimizer.step()
        stay, move = (1e3 * by_host(optimizer.step, params, 2000, moving) for moving in (False, True))
        print(f"{name:32} {stay:8.1f} {move:18.1f}")
    torch.set_num_threads(threads)


def captured(f):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            f()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        f()
    return graph.replay


def bench_cuda(rounds):
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    for what, sizes, repeats in (("268 M in one tensor", [2**28], 20), ("17 M in 40 tensors", [2**24 // 40] * 40, 200)):
        params = make(sizes, "cuda")
        lr = torch.tensor(1e-6, device="cuda")
        optimizers = {"torch SGD(fused)": lambda: torch.optim.SGD(params, lr=1e-6, fused=True)}
        optimizers["torch AdamW(fused)"] = lambda: torch.optim.AdamW(params, lr=1e-6, fused=True, capturable=True)
        for p in ALL_P:
            optimizers[f"MirrorDescent p = {p}"] = lambda p=p: at.MirrorDescent(params, lr=1e-6, p=p, capturable=True)
        optimizers["- normalized, p = 1.1"] = lambda: at.MirrorDescent(
            params, lr=1e-6, p=1.1, normalized=True, capturable=True
        )
        optimizers["- lr on the GPU, p = 1.1"] = lambda: at.MirrorDescent(params, lr=lr, p=1.1, capturable=True)
        print(f"\n{what:28} {'ms, events':>12} {'ms, host':>12} {'- new grad.':>12} {'ms, graph':>12}")
        for name, make_optimizer in optimizers.items():
            step = make_optimizer().step
            best = min(by_events(step, repeats) for _ in range(rounds))
            host, moving = by_host(step, params, 100, False), by_host(step, params, 100, True)
            try:
                replayed = f"{min(by_events(captured(step), repeats) for _ in range(rounds)):12.3f}"
            except RuntimeError as error:
                torch.cuda.synchronize()
                replayed = f"{'-':>12}  ({str(error).splitlines()[0][:60]})"
            print(f"{name:28} {best:12.3f} {host:12.3f} {moving:12.3f} {replayed}", flush=True)
            del step
            torch.cuda.empty_cache()
        del params


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    (bench_cuda if arguments.device == "cuda" else bench_cpu)(arguments.rounds)
