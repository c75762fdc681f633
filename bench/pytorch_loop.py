#!/usr/bin/env python3
"""What a training step costs in PyTorch, with which attmirror's speed is compared.

    python3 bench/pytorch_loop.py [--p 1.75 2 3] [--samples 6] [--tokens 8] [--dim 10] [--steps 2000] [--threads 1]
                                  [--json]

Two loops run the same normalized l_p mirror descent (double precision, logits x^T W z, mean logistic loss,
    y = sign(w)|w|^(p-1) - lr g / (||g||_q + eps),   w = sign(y)|y|^(1/(p-1)),   q = p/(p-1)):

  autograd     the loop researchers write: a module with a weight, loss.backward(), the update from torch operations
  closed_form  the same step with the gradient written out and no autograd graph: about as fast as a per-step loop in
               PyTorch gets without compiling it

Neither records anything, so that only training is timed.

Data and start are drawn by torch from --seed. Time is microseconds per step, the median over --repeats runs of --steps
steps after one warm-up run. If the two loops differ after 5 steps, the program says so and exits 1. Exit 3: no torch.
"""

import argparse
import json
import statistics
import sys
import time

try:
    import torch
except ImportError as error:
    print(f"pytorch_loop: PyTorch is not there ({error}); on Debian it is the package python3-torch", file=sys.stderr)
    sys.exit(3)

EPS = torch.finfo(torch.float64).eps


class Attention(torch.nn.Module):
    """One softmax attention layer with a fixed linear decoder v; weight is W transposed, as in torch.nn.Linear."""

    def __init__(self, W, v):
        super().__init__()
        self.key_query = torch.nn.Linear(*W.shape, bias=False, dtype=W.dtype)
        self.key_query.weight.data.copy_(W.T)
        self.register_buffer("v", v)

    def forward(self, X, Z):
        s = torch.softmax(torch.bmm(self.key_query(X), Z.unsqueeze(2)).squeeze(2), dim=1)
        return torch.bmm(s.unsqueeze(1), X).squeeze(1) @ self.v


def mirror_step(w, g, p, lr):
    """One normalised step on the tensor w, in place."""
    g = g / (torch.norm(g, p=p / (p - 1)) + EPS)
    y = torch.sign(w) * torch.abs(w).pow(p - 1) - lr * g
    w.copy_(torch.sign(y) * torch.abs(y).pow(1 / (p - 1)))


def run_autograd(X, Y, Z, v, W0, p, lr, steps):
    model = Attention(W0, v)
    weight = model.key_query.weight
    for _ in range(steps):
        loss = torch.log(1 + torch.exp(-Y * model(X, Z))).mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            mirror_step(weight, weight.grad, p, lr)
    return weight.detach().T


@torch.no_grad()
def run_closed_form(X, Y, Z, v, W0, p, lr, steps):
    W = W0.clone()
    n, tokens, dim = X.shape
    gamma = Y[:, None] * (X @ v)
    flat = X.reshape(n * tokens, dim)
    q = p / (p - 1)
    for _ in range(steps):
        s = torch.softmax(torch.einsum("itd,id->it", X, Z @ W.T), dim=1)
        m = (s * gamma).sum(1, keepdim=True)
        g = s * (gamma - m) * (torch.sigmoid(-m) / -n)
        G = flat.T @ (g.unsqueeze(2) * Z.unsqueeze(1)).reshape(n * tokens, dim)
        G *= lr / (torch.norm(G, p=q) + EPS)
        if p == 2:  # the mirror map is the identity
            W -= G
        else:
            y = torch.sign(W) * W.abs().pow_(p - 1) - G
            W = torch.sign(y) * y.abs_().pow_(1 / (p - 1))
    return W


def draw(samples, tokens, dim, seed):
    """Unit-sphere data and a normal start; the sphere is where the published synthetic sets live."""
    random = torch.Generator().manual_seed(seed)

    def sphere(*shape):
        return torch.nn.functional.normalize(torch.randn(*shape, generator=random, dtype=torch.float64), dim=-1)

    v = sphere(dim)
    Y = torch.where(torch.randn(samples, generator=random) > 0, 1.0, -1.0).double()
    X, Z = sphere(samples, tokens, dim), sphere(samples, dim)
    return X, Y, Z, v, torch.randn(dim, dim, generator=random, dtype=torch.float64)


def microseconds_per_step(run, data, p, options):
    times = []
    for repeat in range(options.repeats + 1):
        start = time.perf_counter()
        run(*data, p, options.lr, options.steps)
        if repeat:  # the first run warms caches and allocator
            times.append((time.perf_counter() - start) / options.steps * 1e6)
    return {"median": statistics.median(times), "min": min(times), "max": max(times)}


def disagreement(data, p, lr):
    """Relative difference of the two loops after 5 steps: near p = 1 the softmax saturates by step 15 or so,
    and what is left of the gradient is rounding, in which the two may differ."""
    a, b = run_autograd(*data, p, lr, 5), run_closed_form(*data, p, lr, 5)
    return ((a - b).abs().max() / a.abs().max()).item()


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value


def exponent(text):
    value = float(text)
    if not 1 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{value} is not an exponent p > 1")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--p", type=exponent, nargs="+", default=[1.75, 2.0, 3.0])
    parser.add_argument("--samples", type=positive, default=6)
    parser.add_argument("--tokens", type=positive, default=8)
    parser.add_argument("--dim", type=positive, default=10)
    parser.add_argument("--steps", type=positive, default=2000)
    parser.add_argument("--repeats", type=positive, default=5)
    parser.add_argument("--threads", type=positive, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    data = draw(options.samples, options.tokens, options.dim, options.seed)
    rows = []
    for p in options.p:
        apart = disagreement(data, p, options.lr)
        if not apart < 1e-10:
            print(f"pytorch_loop: at p = {p} the two loops differ by {apart:.1e} after 5 steps", file=sys.stderr)
            sys.exit(1)
        rows.append({"p": p, "autograd_us": microseconds_per_step(run_autograd, data, p, options),
                     "closed_form_us": microseconds_per_step(run_closed_form, data, p, options)})

    if options.json:
        settings = {k: value for k, value in vars(options).items() if k not in ("p", "json")}
        print(json.dumps({"torch": torch.__version__, **settings, "results": rows}))
        return
    print(f"PyTorch {torch.__version__}, {options.threads} thread(s), n={options.samples} T={options.tokens} "
          f"d={options.dim}, {options.steps} steps, median of {options.repeats} (min..max), microseconds per step")
    for row in rows:
        cells = (f"{name} {us['median']:.1f} ({us['min']:.1f}..{us['max']:.1f})"
                 for name, us in (("autograd", row["autograd_us"]), ("closed form", row["closed_form_us"])))
        print(f"  p = {row['p']:g}: " + ", ".join(cells))


if __name__ == "__main__":
    main()
