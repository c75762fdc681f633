"""What the tests of attmirror.torch share: the update in three lines of float64, and the devices of this machine."""

import torch


def devices():
    return ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


class Reference:
    """The step as the documentation writes it, for one tensor in float64."""

    def __init__(self, w, p, lr, momentum=0.0, nesterov=False, weight_decay=0.0, normalized=False, maximize=False):
        self.w, self.m = w.detach().double().cpu().clone(), torch.zeros(w.shape, dtype=torch.float64)
        self.p, self.lr, self.momentum, self.nesterov = p, lr, momentum, nesterov
        self.weight_decay, self.normalized, self.maximize = weight_decay, normalized, maximize

    def step(self, gradient):
        d = gradient.double().cpu() * (-1 if self.maximize else 1)
        self.m = self.momentum * self.m + d
        if self.momentum > 0:
            d = d + self.momentum * self.m if self.nesterov else self.m
        if self.normalized and bool((d != 0).any()):
            q = self.p / (self.p - 1)
            d = d / (d.abs() ** q).sum() ** (1 / q)
        s, keep = self.p - 1, 1 - self.lr * self.weight_decay
        y = keep**s * self.w.sign() * self.w.abs() ** s - self.lr * d
        self.w = y.sign() * y.abs() ** (1 / s)


def distance(a, b):
    a, b = a.detach().double().cpu(), b.detach().double().cpu()
    return float((a - b).norm() / b.norm())


def same_bits(a, b):
    a, b = (x.detach().contiguous().cpu().reshape(-1).view(torch.uint8) for x in (a, b))
    return a.shape == b.shape and bool((a == b).all())


def parameters(shapes, dtype=torch.float32, device="cpu", seed=0, scale=0.1):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.nn.Parameter((scale * torch.randn(shape, generator=generator)).to(dtype).to(device)) for shape in shapes
    ]


def set_gradients(params, seed, scale=0.05):
    generator = torch.Generator().manual_seed(seed)
    for param in params:
        gradient = (scale * torch.randn(param.shape, generator=generator)).to(param.dtype).to(param.device)
        param.grad = gradient


def captured_steps(make, dtype, **options):
    """Parameters after a step that was captured into a CUDA graph and replayed at three rates, and after the same steps without
    a graph. `make` is MirrorDescent or SteepestDescent."""
    made = []
    for _ in range(2):
        params, lr = parameters([(64, 33), (100,)], dtype, "cuda"), torch.tensor(0.1, device="cuda")
        made.append((params, lr, make(params, lr=lr, capturable=True, **options)))
    (captured, rate, optimizer), (plain, plain_rate, other) = made
    gradients = [torch.empty_like(w) for w in captured]

    def fill(seed):
        set_gradients(plain, seed)
        for w, gradient, source in zip(captured, gradients, plain):
            gradient.copy_(source.grad)
            w.grad = gradient

    fill(0)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    other.step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.step()
    for i, lr in enumerate((0.1, 0.05, 0.01), start=1):
        fill(i)
        rate.fill_(lr)
        graph.replay()
        plain_rate.fill_(lr)
        other.step()
    return captured, plain


def train(optimizer, params, steps, first_seed=100):
    for i in range(steps):
        set_gradients(params, first_seed + i)
        optimizer.step()
