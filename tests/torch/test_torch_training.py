"""attmirror.torch in a training: saving and loading, copies, schedulers, autograd, loss scaling, hooks, profilers."""

import copy
import io
import pickle
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")

import attmirror.torch as at  # noqa: E402
from attmirror import _torch_parameters  # noqa: E402
from attmirror._errors import InputError  # noqa: E402
from torch_cases import devices, distance, parameters, same_bits, set_gradients, train  # noqa: E402

SHAPES = [(7, 5), (40,), (3, 4, 5), (), (1,)]
ENGINES = [{}, {"foreach": True}]


@pytest.fixture(params=devices())
def device(request):
    return request.param


def test_states_survive_saving(device):
    def make(seed):
        params = parameters(SHAPES, torch.bfloat16, device, seed) + parameters([(9,)], torch.float32, device, seed)
        return params, at.MirrorDescent(params, lr=0.01, p=1.1, momentum=0.9)

    params, optimizer = make(0)
    train(optimizer, params, 3)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    others, other = make(5)
    with torch.no_grad():
        for a, b in zip(others, params):
            a.copy_(b)
    file.seek(0)
    # PyTorch 1.13 reads no numbers this way, and so no optimizer's state.
    saved = torch.load(file, weights_only=True) if int(torch.__version__[0]) >= 2 else torch.load(file)
    other.load_state_dict(saved)
    assert other.state[others[0]]["dual"].dtype == torch.float32
    assert other.state[others[0]]["momentum_buffer"].dtype == torch.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for which, own in ((optimizer, params), (other, others)):
            train(which, own, 3, first_seed=200)
    for a, b in zip(params, others):
        assert same_bits(a, b)
        assert same_bits(optimizer.state[a]["momentum_buffer"], other.state[b]["momentum_buffer"])
    # What was loaded is not shared with where it came from.
    value = saved["state"][0]["momentum_buffer"]
    assert value.data_ptr() != other.state[others[0]]["momentum_buffer"].data_ptr()


def test_states_of_other_shapes_are_refused():
    a, b = parameters([(4,)]), parameters([(5,)])
    first, second = (at.MirrorDescent(w, lr=0.1, momentum=0.9) for w in (a, b))
    train(first, a, 1)
    with pytest.raises(InputError, match=r"the momentum_buffer of parameter 0 of group 0 to be loaded has the shape \(4,\)"):
        second.load_state_dict(first.state_dict())
    assert not second.state


def test_a_dual_state_that_is_not_the_parameters_is_made_anew():
    _torch_parameters._warned.clear()
    params = parameters([(64,)], torch.bfloat16)
    optimizer = at.MirrorDescent(params, lr=0.01, p=1.1)
    train(optimizer, params, 2)
    others = parameters([(64,)], torch.bfloat16, seed=8)
    other = at.MirrorDescent(others, lr=0.01, p=1.1)
    other.load_state_dict(optimizer.state_dict())
    fresh = parameters([(64,)], torch.bfloat16, seed=8)
    with pytest.warns(UserWarning, match="are not those of its parameters"):
        train(other, others, 1)
    train(at.MirrorDescent(fresh, lr=0.01, p=1.1), fresh, 1)
    assert same_bits(others[0], fresh[0])


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_copies_go_on_with_the_same_bits(copier):
    params = parameters(SHAPES, torch.bfloat16)
    optimizer = at.MirrorDescent(params, lr=0.01, p=1.1, momentum=0.9)
    train(optimizer, params, 3)
    other = copier(optimizer)
    others = other.param_groups[0]["params"]
    assert others[0].data_ptr() != params[0].data_ptr()
    train(optimizer, params, 2, first_seed=300)
    train(other, others, 2, first_seed=300)
    assert all(same_bits(a, b) for a, b in zip(params, others))


def test_schedulers_and_tensor_rates(device):
    rates = [0.1, 0.05, 0.025]
    params = {kind: parameters([(30,)], torch.float64, device) for kind in ("scheduler", "tensor", "option")}
    scheduled = at.MirrorDescent(params["scheduler"], lr=0.1, p=1.5, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(scheduled, 1, gamma=0.5)
    lr = torch.tensor(0.1, device=device)
    tensor = at.MirrorDescent(params["tensor"], lr=lr, p=1.5, weight_decay=0.1)
    for i, rate in enumerate(rates):
        lr.fill_(rate)
        for own in params.values():
            set_gradients(own, i)
        scheduled.step()
        scheduler.step()
        tensor.step()
        at.MirrorDescent(params["option"], lr=rate, p=1.5, weight_decay=0.1).step()
    assert same_bits(params["scheduler"][0], params["option"][0])
    assert distance(params["tensor"][0], params["option"][0]) < 1e-8, "a float32 rate"


def test_normalized_with_momentum_warm_up_and_cosine():
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    x = torch.randn(128, 6)
    target = x[:, :1] * x[:, 1:2]
    optimizer = at.MirrorDescent(model.parameters(), lr=0.05, p=1.5, normalized=True, momentum=0.9)
    schedulers = [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=10),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 90),
    ]
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, schedulers, milestones=[10])
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_autograd_notices_steps(device):
    (w,) = parameters([(4,)], device=device)
    for engine in ENGINES:
        optimizer = at.MirrorDescent([w], lr=0.1, p=1.5, **engine)
        loss = (w**2).sum()
        w.grad = torch.ones_like(w)
        before = w._version
        optimizer.step()
        assert w._version > before
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_skipped_steps_leave_no_trace(device):
    for engine in ENGINES:
        for dtype in (torch.float32, torch.bfloat16):
            params, twins = parameters(SHAPES, dtype, device), parameters(SHAPES, dtype, device)
            scaled = at.MirrorDescent(params, lr=0.1, p=1.1, momentum=0.9, **engine)
            plain = at.MirrorDescent(twins, lr=0.1, p=1.1, momentum=0.9, **engine)
            train(scaled, params, 1)
            train(plain, twins, 1)
            before = [w.detach().clone() for w in params]
            # What GradScaler of PyTorch 2 does.
            set_gradients(params, 7)
            scaled.found_inf = torch.tensor(1.0, device=device)
            scaled.grad_scale = torch.tensor(64.0, device=device)
            params[0].grad[0] = float("inf")
            scaled.step()
            assert all(same_bits(a, b) for a, b in zip(params, before))
            set_gradients(params, 8)
            set_gradients(twins, 8)
            for w in params:
                w.grad *= 64
            scaled.found_inf = torch.tensor(0.0, device=device)
            scaled.step()
            plain.step()
            del scaled.found_inf, scaled.grad_scale
            for a, b in zip(params, twins):
                assert same_bits(a, b)
                assert same_bits(scaled.state[a]["momentum_buffer"], plain.state[b]["momentum_buffer"])


def test_grad_scaler(device):
    if device == "cpu" and not hasattr(getattr(torch, "amp", None), "GradScaler"):
        pytest.skip("this PyTorch has no GradScaler for the CPU")
    scaler = torch.amp.GradScaler(device) if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()
    (w,), (twin,) = parameters([(20,)], device=device), parameters([(20,)], device=device)
    optimizer, plain = (at.MirrorDescent([own], lr=0.1, p=1.1) for own in (w, twin))
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
    assert not hasattr(optimizer, "found_inf")


@pytest.mark.skipif(not hasattr(torch.optim.Optimizer, "register_step_pre_hook"), reason="this PyTorch has no step hooks")
def test_hooks_run():
    params = parameters([(3,)])
    optimizer = at.MirrorDescent(params, lr=0.1)
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    train(optimizer, params, 2)
    assert calls == ["before", "after"] * 2
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    handle = register_optimizer_step_pre_hook(lambda *_: calls.append("global"))
    train(optimizer, params, 1)
    handle.remove()
    assert calls[4:] == ["global", "before", "after"]
    if hasattr(optimizer, "register_load_state_dict_post_hook"):
        optimizer.register_load_state_dict_post_hook(lambda *_: calls.append("loaded"))
        optimizer.load_state_dict(optimizer.state_dict())
        assert calls[-1] == "loaded"


def test_a_class_of_ones_own_is_observed_once():
    class Counting(at.MirrorDescent):
        def step(self, closure=None):
            calls.append("own")
            return super().step(closure)

    params, calls = parameters([(3,)]), []
    optimizer = Counting(params, lr=0.1)
    if hasattr(optimizer, "register_step_pre_hook"):
        optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    train(optimizer, params, 1)
    assert calls in (["before", "own"], ["own"])


@pytest.mark.parametrize("make", [at.MirrorDescent, at.SteepestDescent])
def test_profilers_see_steps(make):
    params = parameters([(3,)])
    optimizer = make(params, lr=0.1)
    train(optimizer, params, 1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        optimizer.step()
    assert f"Optimizer.step#{make.__name__}.step" in [event.key for event in profile.key_averages()]


def test_gradients_are_not_kept():
    """Their memory is free for the next backward pass once they are set to None."""
    params = parameters([(5,), (4, 4)])
    params.append(torch.nn.Parameter(torch.zeros(6, 6)[:, ::2]))
    optimizer = at.MirrorDescent(params, lr=0.1, momentum=0.9)
    for i in range(3):
        set_gradients(params, i)
        references = [weakref.ref(w.grad) for w in params]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        assert all(reference() is None for reference in references), i
