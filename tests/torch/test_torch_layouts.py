"""attmirror.torch and the many shapes of memory that parameters have: layouts, types, threads, processes, graphs."""

import multiprocessing

import pytest

torch = pytest.importorskip("torch")

import attmirror.torch as at  # noqa: E402
from attmirror._errors import InputError  # noqa: E402
from torch_cases import captured_steps, devices, distance, parameters, same_bits, set_gradients, train  # noqa: E402

OPTIONS = {"lr": 0.01, "p": 1.1, "momentum": 0.9, "normalized": True, "dual_state": True}


@pytest.fixture(params=devices())
def device(request):
    return request.param


def laid_out(kind, device):
    base = torch.randn(8, 6, 5, 4, generator=torch.Generator().manual_seed(3)).to(device) * 0.1
    return {
        "contiguous": lambda: base.clone(),
        "transposed": lambda: base.clone().transpose(0, 3).contiguous().transpose(0, 3),
        "channels_last": lambda: base.clone().contiguous(memory_format=torch.channels_last),
        "gaps": lambda: torch.stack([base, base], dim=-1)[..., 0],
    }[kind]()


@pytest.mark.parametrize("kind", ["transposed", "channels_last", "gaps"])
@pytest.mark.parametrize("gradients_like_weights", [False, True])
def test_layouts_do_not_matter(kind, gradients_like_weights, device):
    plain, other = torch.nn.Parameter(laid_out("contiguous", device)), torch.nn.Parameter(laid_out(kind, device))
    assert other.stride() != plain.stride()
    optimizers = [at.MirrorDescent([w], **OPTIONS) for w in (plain, other)]
    for i in range(3):
        set_gradients([plain], i)
        other.grad = plain.grad.clone()
        if gradients_like_weights and kind != "gaps":
            other.grad = torch.empty_strided(other.shape, other.stride(), device=device).copy_(plain.grad)
        version = other._version
        for optimizer in optimizers:
            optimizer.step()
        assert other._version > version
    # The norm is a sum in the order of memory.
    assert distance(other, plain) < 1e-6
    assert other.stride() == laid_out(kind, device).stride()


def test_what_lies_between_the_weights_is_left_alone():
    memory = torch.arange(20.0).reshape(10, 2)
    w = torch.nn.Parameter(memory[:, 0])
    w.grad = torch.ones(10)
    at.MirrorDescent([w], lr=0.5).step()
    assert torch.equal(memory[:, 0], torch.arange(0.0, 20, 2) - 0.5)
    assert torch.equal(memory[:, 1], torch.arange(1.0, 21, 2))


@pytest.mark.parametrize("make, sentence", [
    (lambda: torch.ones(1).expand(4), r"parameter 1 of group 0 has several entries in one place of memory"),
    (lambda: torch.ones(4, dtype=torch.complex64), "parameter 1 of group 0 is of type complex64: expected float32"),
    (lambda: torch.eye(3).to_sparse(), "parameter 1 of group 0 is sparse: expected a dense tensor"),
])  # fmt: skip
def test_parameters_that_cannot_be_trained(make, sentence):
    good, bad = torch.nn.Parameter(torch.ones(3)), make().detach().requires_grad_()
    optimizer = at.MirrorDescent([good, bad], lr=0.1)
    good.grad = torch.ones(3)
    bad.grad = bad.detach().clone()
    with pytest.raises(InputError, match=sentence):
        optimizer.step()
    assert torch.equal(good, torch.ones(3)), "nothing is written before all have been looked at"


def test_sparse_gradients_are_refused():
    layer = torch.nn.Embedding(5, 3, sparse=True)
    optimizer = at.MirrorDescent(layer.parameters(), lr=0.1)
    layer(torch.tensor([1])).sum().backward()
    for _ in range(2):
        with pytest.raises(InputError, match="the gradient of parameter 0 of group 0 is sparse: expected a dense one"):
            optimizer.step()
    # Also where the gradients of the steps before were dense.
    layer.weight.grad = torch.ones(5, 3)
    optimizer.step()
    layer.weight.grad = None
    layer(torch.tensor([1])).sum().backward()
    with pytest.raises(InputError, match="is sparse"):
        optimizer.step()


def test_gradients_are_found_in_new_memory_each_time():
    params, twins = parameters([(100,)]), parameters([(100,)])
    ours, theirs = at.MirrorDescent(params, lr=0.1), torch.optim.SGD(twins, lr=0.1)
    kept = []
    for i in range(5):
        for own in (params, twins):
            set_gradients(own, i)
            kept.append(own[0].grad)
        ours.step()
        theirs.step()
    assert distance(params[0], twins[0]) < 1e-6


@pytest.mark.parametrize("how", ["in place", "new memory", "another type", "another layout"])
def test_parameters_that_others_change(how):
    (w,) = parameters([(6, 6)])
    optimizer = at.MirrorDescent([w], **OPTIONS)
    train(optimizer, [w], 2)
    momentum = optimizer.state[w]["momentum_buffer"].clone()
    new = 0.3 * torch.ones(6, 6) + 0.01 * torch.arange(36.0).reshape(6, 6)
    if how == "in place":
        with torch.no_grad():
            w.copy_(new)
    elif how == "new memory":
        w.data = new.clone()
    elif how == "another type":
        w.grad = None
        w.data = new.double()
    else:
        w.data = new.t().contiguous().t()
    fresh = torch.nn.Parameter(w.detach().clone())
    if how == "another layout":
        assert fresh.stride() == w.stride() == (1, 6)
    twin = at.MirrorDescent([fresh], **OPTIONS)
    set_gradients([fresh], 0)
    twin.step()
    fresh.data.copy_(w.detach())
    twin.state[fresh]["momentum_buffer"].copy_(momentum)
    with torch.no_grad():
        fresh.add_(0)  # noticed: the dual state is made anew from the parameter
    for optimizer_, own in ((optimizer, w), (twin, fresh)):
        set_gradients([own], 50)
        optimizer_.step()
    assert same_bits(w, fresh)
    assert optimizer.state[w]["dual"].dtype == w.dtype


CHANGES = {
    "the gradient is a transposed view of the last one": lambda w, state: setattr(w, "grad", w.grad.t()),
    "the gradient is a negated view of the last one": lambda w, state: setattr(w, "grad", torch._neg_view(w.grad)),
    "the gradient is transposed in place": lambda w, state: w.grad.t_(),
    "the gradient has other data": lambda w, state: setattr(w.grad, "data", torch.ones(6, 6)),
    "the parameter is transposed where it lies": lambda w, state: setattr(w, "data", w.data.t()),
    "the momentum has other data": lambda w, state: setattr(state["momentum_buffer"], "data", torch.ones(6, 6)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_that_leave_much_as_it_was(what):
    (w,), (twin,) = parameters([(6, 6)]), parameters([(6, 6)])
    ours, theirs = at.MirrorDescent([w], lr=0.1, momentum=0.9), torch.optim.SGD([twin], lr=0.1, momentum=0.9)
    for own in (w, twin):
        set_gradients([own], 1)
    for optimizer, own in ((ours, w), (theirs, twin)):
        for _ in range(3):
            optimizer.step()
        CHANGES[what](own, optimizer.state[own])
        for _ in range(2):
            optimizer.step()
    assert distance(w, twin) < 1e-6


def test_gradients_of_another_size_are_refused_also_late():
    (w,) = parameters([(6,)])
    optimizer = at.MirrorDescent([w], lr=0.1)
    train(optimizer, [w], 2)
    before = w.detach().clone()
    w.grad.data = torch.ones(3)
    with pytest.raises(InputError, match=r"the gradient of parameter 0 of group 0 has the shape \(3,\)"):
        optimizer.step()
    assert same_bits(w, before)


def test_a_state_that_others_replace_counts():
    (w,), (twin,) = parameters([(5,)]), parameters([(5,)])
    optimizer, other = (at.MirrorDescent([own], lr=0.1, momentum=0.9) for own in (w, twin))
    for which, own in ((optimizer, w), (other, twin)):
        train(which, [own], 2)
    optimizer.state[w]["momentum_buffer"] = torch.zeros(5)
    other.state[twin]["momentum_buffer"].zero_()
    for which, own in ((optimizer, w), (other, twin)):
        train(which, [own], 2, first_seed=400)
    assert same_bits(w, twin)


def test_modules_that_move_to_another_type():
    layer = torch.nn.Linear(4, 4)
    optimizer = at.MirrorDescent(layer.parameters(), lr=0.01, p=1.1)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        optimizer.zero_grad(set_to_none=True)
        layer.to(dtype)
        before = layer.weight.detach().clone()
        layer(torch.ones(2, 4, dtype=dtype)).sum().backward()
        optimizer.step()
        assert not same_bits(layer.weight, before)
        assert ("dual" in optimizer.state[layer.weight]) == (dtype == torch.bfloat16)


def test_bfloat16_takes_small_steps():
    losses = {}
    for dual_state in (None, False):
        w = torch.nn.Parameter(torch.ones(8, dtype=torch.bfloat16))
        optimizer = at.MirrorDescent([w], lr=5e-4, p=1.5, dual_state=dual_state)
        for _ in range(100):
            w.grad = torch.ones_like(w)
            optimizer.step()
        losses[dual_state] = float(w.detach()[0])
    assert losses[False] == 1.0, "8 bits lose the step"
    assert losses[None] == pytest.approx((1 - 0.05) ** 2, rel=1e-2)


def test_the_same_bits_for_any_number_of_threads():
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            params = parameters([(300, 401), (7,)])
            train(at.MirrorDescent(params, **OPTIONS), params, 2)
            results.append(params)
    finally:
        torch.set_num_threads(before)
    assert all(same_bits(a, b) for other in results[1:] for a, b in zip(results[0], other))


def test_forked_processes_have_threads_of_their_own():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        params = parameters([(300, 401)])
        optimizer = at.MirrorDescent(params, **OPTIONS)
        train(optimizer, params, 1)
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe(duplex=False)

        # The child steps, and nothing else: PyTorch's own threads are lost to it.
        def step_in_child():
            optimizer.step()
            theirs.send_bytes(params[0].detach().numpy().tobytes()[-4096:])

        child = context.Process(target=step_in_child)
        child.start()
        assert ours.poll(60), "the child hangs"
        result = ours.recv_bytes()
        child.join()
        optimizer.step()
        assert result == params[0].detach().numpy().tobytes()[-4096:]
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_captured_steps_follow_their_rate(normalized, dtype):
    options = {"p": 1.1, "momentum": 0.9, "weight_decay": 0.01, "normalized": normalized}
    captured, plain = captured_steps(at.MirrorDescent, dtype, **options)
    assert all(same_bits(a, b) for a, b in zip(captured, plain))

    refusing = at.MirrorDescent(captured, lr=0.1)
    refusing.step()
    with pytest.raises(InputError, match="capturable is False"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        refusing.step()
