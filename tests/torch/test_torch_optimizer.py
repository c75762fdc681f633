"""attmirror.torch: what its optimizers compute, and what they refuse."""

import ctypes
import pathlib
import warnings

import pytest

torch = pytest.importorskip("torch")

import attmirror.torch as at  # noqa: E402
from attmirror import _step_library as library  # noqa: E402
from attmirror import _torch_parameters  # noqa: E402
from attmirror._errors import InputError  # noqa: E402
from torch_cases import Reference, devices, distance, parameters, same_bits, set_gradients, train  # noqa: E402

SHAPES = [(7, 5), (40,), (3, 4, 5), (), (1,)]
ALL_P = [1.1, 1.5, 1.75, 2, 3]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
KINDS = [
    {},
    {"momentum": 0.9},
    {"normalized": True},
    {"momentum": 0.9, "nesterov": True, "normalized": True, "weight_decay": 0.1},
    {"weight_decay": 0.1, "maximize": True},
]
ENGINES = [{}, {"foreach": True}]


@pytest.fixture(params=devices())
def device(request):
    return request.param


@pytest.mark.parametrize("p", ALL_P)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("engine", ENGINES, ids=["kernels", "tensors"])
def test_a_hundred_steps_follow_the_formula(p, kind, engine, device):
    (w,) = parameters([(301,)], torch.float64, device, scale=0.5)
    reference = Reference(w, p, 0.01, **kind)
    optimizer = at.MirrorDescent([w], lr=0.01, p=p, **kind, **engine)
    for i in range(100):
        set_gradients([w], i)
        optimizer.step()
        reference.step(w.grad)
    assert distance(w, reference.w) < 1e-12


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", [*KINDS, {"dual_state": True}, {"dual_state": False}], ids=str)
@pytest.mark.parametrize("p", [1.1, 2, 3])
def test_kernels_match_tensor_operations(dtype, kind, p, device):
    ours, theirs = parameters(SHAPES, dtype, device), parameters(SHAPES, dtype, device)
    kernels = at.MirrorDescent(ours, lr=0.01, p=p, **kind)
    tensors = at.MirrorDescent(theirs, lr=0.01, p=p, foreach=True, **kind)
    train(kernels, ours, 5)
    train(tensors, theirs, 5)
    bound = {torch.float64: 1e-13, torch.float32: 3e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}[dtype]
    for a, b in zip(ours, theirs):
        assert distance(a, b) < bound
        assert not bool((a == parameters(SHAPES, dtype, device)[0].flatten()[0]).all())
    for a, b in zip(ours, theirs):
        assert kernels.state[a].keys() == tensors.state[b].keys()
        for name, value in kernels.state[a].items():
            if isinstance(value, torch.Tensor):
                assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
                assert distance(value, tensors.state[b][name]) < 1e-5


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("norm", ["l1.5", "l2", 3, "sign", "spectral"])
def test_steepest_kernels_match_tensor_operations(dtype, norm, device):
    ours, theirs = parameters(SHAPES, dtype, device), parameters(SHAPES, dtype, device)
    options = {"norm": norm, "momentum": 0.5, "weight_decay": 0.1}
    kernels = at.SteepestDescent(ours, lr=0.01, **options)
    tensors = at.SteepestDescent(theirs, lr=0.01, foreach=True, **options)
    train(kernels, ours, 5)
    train(tensors, theirs, 5)
    bound = {torch.float64: 1e-12, torch.float32: 3e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}[dtype]
    assert all(distance(a, b) < bound for a, b in zip(ours, theirs))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_steps_have_the_bits_of_the_library(dtype):
    """The same calls of the C interface, by hand."""
    ours, theirs = parameters(SHAPES, dtype), [w.detach().clone() for w in parameters(SHAPES, dtype)]
    kind = dict(p=1.1, momentum=0.9, nesterov=True, normalized=True, weight_decay=0.01)
    optimizer = at.MirrorDescent(ours, lr=0.01, dual_state=True, **kind)
    state = torch.float64 if dtype == torch.float64 else torch.float32
    masters, momenta = ([torch.zeros(w.shape, dtype=state) for w in theirs] for _ in range(2))
    options = library.Options(p=1.1, rate=0.01, momentum=0.9, weight_decay=0.01, gradient_scale=1.0)
    options.element, options.nesterov, options.normalized = _torch_parameters.ELEMENTS[dtype], 1, 1
    options.threads = 1
    for i in range(6):
        set_gradients(ours, i)
        optimizer.step()
        array = library.tensor_array(len(theirs))
        for k, (w, param, y, m) in enumerate(zip(theirs, ours, masters, momenta)):
            for field, tensor in enumerate((w, param.grad, y, m)):
                array[5 * k + field] = tensor.data_ptr()
            array[5 * k + 4] = w.numel()
        if i == 0:
            library.cpu_library().fill_masters(options, array)
        assert library.cpu_library().step(options, array) is False
    for a, b, y, m in zip(ours, theirs, masters, momenta):
        assert same_bits(a, b)
        assert same_bits(optimizer.state[a]["dual"], y)
        assert same_bits(optimizer.state[a]["momentum_buffer"], m)


def test_the_library_speaks_in_sentences():
    options = library.Options(p=1.0, rate=0.1, gradient_scale=1.0)
    with pytest.raises(InputError, match="p is 1: expected a finite number greater than 1"):
        library.cpu_library().step(options, library.tensor_array(0))
    options = library.Options(p=2.0, rate=0.1, gradient_scale=1.0, element=9)
    with pytest.raises(InputError, match="element is 9"):
        library.cpu_library().step(options, library.tensor_array(0))
    array = library.tensor_array(1)
    array[4] = 3
    with pytest.raises(InputError, match=r"tensors\[0\].weights is null"):
        library.cpu_library().step(library.Options(p=2.0, rate=0.1, gradient_scale=1.0), array)
    # Room for what the library writes, however long.
    assert ctypes.sizeof(library.cpu_library().message()) == 512


@pytest.mark.parametrize("make", [
    lambda w: at.MirrorDescent(w, lr=0.02, p=1.1),
    lambda w: at.MirrorDescent(w, lr=0.1, p=1.5, momentum=0.5),
    lambda w: at.MirrorDescent(w, lr=0.02, p=2, normalized=True),
    lambda w: at.MirrorDescent(w, lr=0.01, p=3),
    lambda w: at.SteepestDescent(w, lr=0.02, norm="l1.5"),
    lambda w: at.SteepestDescent(w, lr=0.02, norm="sign"),
    lambda w: at.SteepestDescent(w, lr=0.02, norm="spectral"),
])  # fmt: skip
@pytest.mark.parametrize("maximize", [False, True])
def test_losses_go_down_and_up(make, maximize, device):
    torch.manual_seed(1)
    layer = torch.nn.Linear(6, 4).to(device)
    x, target = torch.randn(64, 6, device=device), torch.randn(64, 4, device=device)
    optimizer = make(layer.parameters())
    optimizer.param_groups[0]["maximize"] = maximize

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(layer(x), target)
        loss.backward()
        return loss

    first = float(closure())
    losses = [float(optimizer.step(closure)) for _ in range(20)]
    assert losses[0] == pytest.approx(first)
    assert (losses[-1] > first) if maximize else (losses[-1] < 0.999 * first)


@pytest.mark.parametrize("engine", ENGINES, ids=["kernels", "tensors"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", [{}, {"normalized": True, "momentum": 0.9}])
def test_what_is_not_pushed_keeps_its_bits(engine, dtype, kind, device):
    params = parameters(SHAPES, dtype, device)
    before = [w.detach().clone() for w in params]
    optimizer = at.MirrorDescent(params, lr=0.1, p=1.1, **kind, **engine)
    optimizer.step()
    assert not optimizer.state, "without gradients there is nothing to remember"
    for w in params:
        w.grad = torch.zeros_like(w)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    optimizer.step()
    assert all(same_bits(a, b) for a, b in zip(params, before))


@pytest.mark.parametrize("engine", ENGINES, ids=["kernels", "tensors"])
def test_gradients_that_come_and_go(engine):
    a, b = parameters([(5,), (6,)])
    alone = [w.detach().clone().requires_grad_() for w in (a, b)]
    optimizer = at.MirrorDescent([a, b], lr=0.1, p=1.5, momentum=0.9, dual_state=True, **engine)
    separate = [at.MirrorDescent([w], lr=0.1, p=1.5, momentum=0.9, dual_state=True, **engine) for w in alone]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(6):
            set_gradients([a, b], i)
            for w, own in zip((a, b), alone):
                own.grad = w.grad.clone()
            if i in (1, 2):
                b.grad = None
            if i == 3:
                a.grad = None
            optimizer.step()
            for w, own in zip((a, b), separate):
                if w.grad is not None:
                    own.step()
    assert same_bits(a, alone[0]) and same_bits(b, alone[1])


def test_zero_size_tensors(device):
    params = parameters([(0,), (3, 0), (4,)], device=device)
    optimizer = at.MirrorDescent(params, lr=0.1, p=1.1, momentum=0.9, normalized=True)
    before = params[2].detach().clone()
    train(optimizer, params, 2)
    assert params[0].shape == (0,) and not same_bits(params[2], before)


def test_groups_have_their_own_options():
    a, b = parameters([(50,), (60,)], torch.float64)
    references = [Reference(a, 1.1, 0.01), Reference(b, 2, 0.3, momentum=0.9)]
    optimizer = at.MirrorDescent([{"params": [a]}, {"params": [b], "p": 2, "lr": 0.3, "momentum": 0.9}], lr=0.01, p=1.1)
    for i in range(5):
        set_gradients([a, b], i)
        optimizer.step()
        for w, reference in zip((a, b), references):
            reference.step(w.grad)
    assert distance(a, references[0].w) < 1e-13 and distance(b, references[1].w) < 1e-13
    (c,) = parameters([(5,)], seed=9)
    optimizer.add_param_group({"params": [c], "p": 3})
    before = c.detach().clone()
    set_gradients([c], 3)
    optimizer.step()
    assert not same_bits(c, before)
    # Options may change between steps.
    optimizer.param_groups[0]["p"] = 3
    reference = Reference(a, 3, 0.01)
    set_gradients([a], 77)
    optimizer.step()
    reference.step(a.grad)
    assert distance(a, reference.w) < 1e-13


@pytest.mark.parametrize("options, sentence", [
    ({"p": 1}, "group 0: p is 1: expected a finite number greater than 1"),
    ({"p": float("nan")}, "group 0: p is nan"),
    ({"p": "two"}, "group 0: p is 'two': expected a number"),
    ({"lr": -1}, "group 0: lr is -1: expected a finite number, 0 or more"),
    ({"lr": torch.ones(2)}, "group 0: lr has 2 numbers: expected one"),
    ({"momentum": 1}, "group 0: momentum is 1: expected a number from 0 to 1, without 1"),
    ({"nesterov": True}, "group 0: nesterov needs a momentum greater than 0, and momentum is 0"),
    ({"weight_decay": -1}, "group 0: weight_decay is -1: expected a finite number, 0 or more"),
    ({"weight_decay": 20}, "group 0: weight_decay is 20 at an lr of 0.1: expected lr * weight_decay below 1"),
    ({"foreach": True, "fused": True}, "group 0: foreach and fused are both True: expected one of them"),
])  # fmt: skip
def test_options_that_make_no_sense(options, sentence):
    with pytest.raises(InputError) as error:
        at.MirrorDescent(parameters([(2,)]), **{"lr": 0.1, **options})
    assert str(error.value).startswith(sentence)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize("options, sentence", [
    ({"norm": "l1"}, 'group 0: norm is "l1": expected l and a number greater than 1'),
    ({"norm": "nuclear"}, 'group 0: norm is "nuclear"'),
    ({"polar": "qr"}, 'group 0: polar is "qr": expected newton_schulz or svd'),
    ({"iterations": 0}, "group 0: iterations is 0: expected a whole number from 1"),
])  # fmt: skip
def test_steepest_options_that_make_no_sense(options, sentence):
    with pytest.raises(InputError) as error:
        at.SteepestDescent(parameters([(2,)]), lr=0.1, **options)
    assert str(error.value).startswith(sentence)


def test_a_group_that_is_refused_is_not_added():
    params = parameters([(2,), (3,)])
    optimizer = at.MirrorDescent(params[:1], lr=0.1)
    with pytest.raises(InputError, match="group 1: p is 0.5"):
        optimizer.add_param_group({"params": params[1:], "p": 0.5})
    assert len(optimizer.param_groups) == 1
    with pytest.raises(InputError, match="parameter 1 of group 0 is the same tensor as parameter 0 of group 0"):
        at.MirrorDescent([params[0], params[0]], lr=0.1)
    optimizer.param_groups[0]["lr"] = float("nan")
    set_gradients(params, 1)
    with pytest.raises(InputError, match="group 0: lr is nan"):
        optimizer.step()


def test_the_example_of_the_documentation_runs():
    docs = pathlib.Path(__file__).parents[2] / "docs"
    if not docs.exists():
        pytest.skip("the documentation is not there")
    (text,) = [text for text in (page.read_text() for page in docs.glob("*.md")) if "\n## In PyTorch\n" in text]
    block = text.split("\n## In PyTorch\n")[1].split("```python\n")[1].split("```")[0]
    assert "attmirror.torch.MirrorDescent" in block
    names = {}
    torch.manual_seed(3)
    exec(block, names)
    x = torch.randn(64, 20)
    loss = torch.nn.functional.mse_loss(names["model"](x), x[:, :1])
    assert float(loss.detach()) < 0.5, "1 is what a network learns that says 0"


def test_the_tutorial_runs_and_says_what_is_true():
    page = pathlib.Path(__file__).parents[2] / "docs" / "tutorials" / "optimizer-in-a-network.md"
    if not page.exists():
        pytest.skip("docs/tutorials/optimizer-in-a-network.md is not there")
    names = {}
    exec(page.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0], names)
    accuracy, small = zip(names["results"]["SGD"], names["results"]["l1.1 mirror descent"])
    assert min(accuracy) > 0.97
    assert small[0] < 0.3 and small[1] > 0.5, "mirror descent with p = 1.1 makes most weights small"


def test_spectral_steps_are_orthogonal():
    (w,) = parameters([(6, 4)], torch.float64)
    before = w.detach().clone()
    set_gradients([w], 1)
    at.SteepestDescent([w], lr=1.0, norm="spectral", polar="svd").step()
    step = before - w.detach()
    assert torch.allclose(step.t() @ step, torch.eye(4, dtype=torch.float64), atol=1e-12)


def test_without_kernels_a_warning_says_so_once(monkeypatch):
    _torch_parameters._warned.clear()
    monkeypatch.setattr(library, "cpu_library", lambda: None)
    params, twins = parameters([(5,)]), parameters([(5,)])
    with pytest.warns(UserWarning, match="attmirror has no kernel for cpu in this build"):
        train(at.MirrorDescent(params, lr=0.1, p=1.5), params, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(at.MirrorDescent(params, lr=0.1, p=1.5), params, 1)
        train(at.MirrorDescent(twins, lr=0.1, p=1.5, fused=False), twins, 1)
    set_gradients(twins, 1)
    with pytest.raises(InputError, match="fused is True, and attmirror has no kernel for cpu"):
        at.MirrorDescent(twins, lr=0.1, fused=True).step()


def test_libraries_are_looked_for_where_they_should_be(monkeypatch, tmp_path):
    monkeypatch.setattr(library, "_loaded", {})
    monkeypatch.setenv(library.FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(OSError, match="ATTMIRROR_STEP_LIBRARIES is .*nowhere: there is no such folder"):
        library.cpu_library()
    monkeypatch.setenv(library.FOLDER_VARIABLE, str(tmp_path))
    assert library.cuda_library() is None
    (tmp_path / "libattmirror_step.so").write_text("nothing")
    with pytest.raises(OSError, match="cannot be loaded"):
        library.cpu_library()


def test_capturable_asks_for_a_gpu():
    params = parameters([(5,)])
    optimizer = at.MirrorDescent(params, lr=0.1, capturable=True)
    set_gradients(params, 1)
    with pytest.raises(InputError, match="capturable is True, and parameter 0 of group 0 is on cpu: expected a GPU"):
        optimizer.step()
