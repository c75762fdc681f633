#!/usr/bin/env python3
"""One gradient of W on large data, in PyTorch and in attmirror: milliseconds and their ratio.

    python3 bench/large_data_pytorch.py build/release/bin/attmirror [--samples 4096] [--tokens 128] [--dim 128]
                                        [--threads 1 2] [--rounds 7] [--json]

Mean logistic loss, logits x^T W z, fixed decoder v, double precision, the same number of threads for all:

  autograd     the published code's style: a linear layer on all tokens, batched products, loss.backward()
  einsum       the gradient written out, with the queries moved through W first (so that nothing of size n T d is formed)
               and einsum for the sums over tokens
  bmm          the same with batched matrix products

The contestants take turns; the table has medians over the rounds. attmirror's time is the difference of two runs of
gradient descent on the same data, of 1 and of 1 + STEPS steps, as the command reports them: a step is a gradient and an
update of d x d numbers. Before that, all gradients are compared (attmirror's by the weights after one step);
if they differ by more than 1e-10 relative, the program says so and exits 1. Exit 3: no torch.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pytorch_loop import Attention, draw, positive

import torch

STEPS = 10


def by_autograd(X, Y, Z, v, W):
    model = Attention(W, v)
    torch.log(1 + torch.exp(-Y * model(X, Z))).mean().backward()
    return model.key_query.weight.grad.T


def coefficients(logits, gamma):
    """dL/da of all logits."""
    s = torch.softmax(logits, dim=1)
    m = (s * gamma).sum(1, keepdim=True)
    return s * (gamma - m) * (torch.sigmoid(-m) / -len(logits))


@torch.no_grad()
def by_einsum(X, Z, W, gamma):
    g = coefficients(torch.einsum("itd,id->it", X, Z @ W.T), gamma)
    return torch.einsum("itd,it->id", X, g).T @ Z


@torch.no_grad()
def by_bmm(X, Z, W, gamma):
    g = coefficients(torch.bmm(X, (Z @ W.T).unsqueeze(2)).squeeze(2), gamma)
    return torch.bmm(g.unsqueeze(1), X).squeeze(1).T @ Z


def train(binary, folder, steps, threads, extra=()):
    command = [binary, "train", str(folder / "data.npz"), "--optimizer", "gd", "--steps", str(steps), "--record", "none",
               "--threads", str(threads), "--json", "--quiet", *extra]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["seconds"]


def attmirror_ms(binary, folder, threads, extra=()):
    short = train(binary, folder, 1, threads, extra)
    return (train(binary, folder, 1 + STEPS, threads, extra) - short) / STEPS * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the command attmirror")
    parser.add_argument("--samples", type=positive, default=4096)
    parser.add_argument("--tokens", type=positive, default=128)
    parser.add_argument("--dim", type=positive, default=128)
    parser.add_argument("--threads", type=positive, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=positive, default=7)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    X, Y, Z, v, _ = problem = draw(options.samples, options.tokens, options.dim, 1)
    W = torch.zeros(options.dim, options.dim, dtype=torch.float64)
    gamma = Y[:, None] * (X @ v)
    torch_forms = {"autograd": lambda: by_autograd(X, Y, Z, v, W), "einsum": lambda: by_einsum(X, Z, W, gamma),
                   "bmm": lambda: by_bmm(X, Z, W, gamma)}
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "data.npz", X=X.numpy(), Y=Y.numpy(), Z=Z.numpy(), v=v.numpy())
        # The comparison is at W != 0, where all of the softmax matters, by a step so long that little of it is rounded off.
        start = 3 * problem[4]
        np.save(folder / "W0.npy", start.numpy())
        train(options.binary, folder, 1, 1,
              ["--lr", "1e6", "--init", f"file:{folder / 'W0.npy'}", "-o", str(folder / "run")])
        ours = (start - torch.from_numpy(np.load(folder / "run" / "final.npz")["W"])) / 1e6
        for kind, gradient in (("autograd", by_autograd(X, Y, Z, v, start)), ("einsum", by_einsum(X, Z, start, gamma)),
                               ("bmm", by_bmm(X, Z, start, gamma))):
            apart = ((gradient - ours).norm() / gradient.norm()).item()
            if not apart < 1e-10:
                print(f"large_data_pytorch: the gradient by {kind} differs by {apart:.1e}", file=sys.stderr)
                sys.exit(1)
        for threads in options.threads:
            torch.set_num_threads(threads)
            times = {kind: [] for kind in (*torch_forms, "attmirror", "attmirror, float32")}
            for measured in range(options.rounds + 1):
                for kind, run in torch_forms.items():
                    begin = time.perf_counter()
                    run()
                    times[kind].append((time.perf_counter() - begin) * 1e3)
                times["attmirror"].append(attmirror_ms(options.binary, folder, threads))
                times["attmirror, float32"].append(
                    attmirror_ms(options.binary, folder, threads, ["--storage", "float32"]))
                if not measured:  # the first round warms up
                    times = {kind: [] for kind in times}
            rows.append({"threads": threads, **{kind: statistics.median(values) for kind, values in times.items()}})

    if options.json:
        sizes = {"samples": options.samples, "tokens": options.tokens, "dim": options.dim}
        print(json.dumps({"torch": torch.__version__, **sizes, "rounds": options.rounds, "ms_per_gradient": rows}))
        return
    print(f"milliseconds per gradient, n={options.samples} T={options.tokens} d={options.dim}, double precision, "
          f"median of {options.rounds} rounds; PyTorch {torch.__version__}")
    print("| threads | autograd | einsum | bmm | attmirror | attmirror, float32 | best of PyTorch / attmirror |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        best = min(row[kind] for kind in torch_forms)
        print(f"| {row['threads']} | {row['autograd']:.0f} | {row['einsum']:.0f} | {row['bmm']:.0f} | "
              f"{row['attmirror']:.1f} | {row['attmirror, float32']:.1f} | {best / row['attmirror']:.1f}x |")


if __name__ == "__main__":
    main()
