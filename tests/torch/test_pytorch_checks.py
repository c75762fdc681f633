"""PyTorch's own checks of its optimizers, with MirrorDescent and SteepestDescent as two more.

The machinery is PyTorch's, which knows how to combine options, types and devices, and compares step by step; the checks are
those on the list of its test_optim.py. It is there since PyTorch 2.3. With 1.13, test_torch_optimizer.py, test_torch_training.py and
test_torch_layouts.py check the same by themselves, except what that version does not have: hooks of steps and states, names
of parameters, GradScaler on the CPU, optimizers' states read with weights_only.

It runs with pytest, and without: python3 tests/torch/test_pytorch_checks.py.
"""

import copy
import importlib.util
import io
import itertools
import unittest

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("there is no PyTorch")
if importlib.util.find_spec("torch.testing._internal.common_optimizers") is None:
    raise unittest.SkipTest("this PyTorch has no torch.testing._internal.common_optimizers")

import torch  # noqa: E402
from torch.nn import Parameter  # noqa: E402

from attmirror._errors import InputError  # noqa: E402
from attmirror._torch_parameters import state_type  # noqa: E402
from pytorch_machinery import (  # noqa: E402
    OURS,
    TensorTracker,
    TestCase,
    every_input,
    get_error_inputs_for_all_optims,
    instantiate_device_type_tests,
    onlyCUDA,
    optims,
    parametrize,
)

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
# Kernels and tensor operations round differently: once a step in the type of the parameter.
BOUNDS = {
    torch.float64: {"rtol": 1e-12, "atol": 1e-14},
    torch.float32: {"rtol": 2e-5, "atol": 1e-7},
    torch.float16: {"rtol": 2e-3, "atol": 1e-5},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 1e-4},
}


def with_gradients(shapes, device, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(shape, scale):
        return (scale * torch.randn(shape, generator=generator, dtype=torch.float64)).to(device, dtype)

    params = [Parameter(draw(shape, 0.5)) for shape in shapes]
    for param in params:
        param.grad = draw(param.shape, 0.1)
    return params


def new_gradients(params, seed):
    for param, other in zip(params, with_gradients([w.shape for w in params], "cpu", torch.float64, seed)):
        param.grad = other.grad.to(param.device, param.dtype)


def copies(params):
    made = [Parameter(param.detach().clone()) for param in params]
    for own, param in zip(made, params):
        own.grad = param.grad.clone()
    return made


class TestOptimizers(TestCase):
    def options(self, optim_input):
        """A tensor as lr is shared by all who get it, and schedulers write to it."""
        return {name: value.clone() if torch.is_tensor(value) else value for name, value in optim_input.kwargs.items()}

    # ---- direction ----------------------------------------------------------------------------------------------------

    @parametrize("with_schedulers", [False, True])
    @parametrize("contiguous", [False, True])
    @optims(OURS)
    def test_goes_in_the_right_direction(self, device, dtype, optim_info, contiguous, with_schedulers):
        for optim_input in every_input(device, optim_info):
            lists = optim_info.scheduler_inputs if with_schedulers else [[]]
            for makers in lists:
                weight, bias, x, y = with_gradients([(10, 5), (10,), (5,), (10,)], device, dtype)
                if not contiguous:
                    weight = Parameter(torch.stack([weight.detach()] * 2, dim=-1)[..., 0])
                    assert not weight.is_contiguous()
                options = self.options(optim_input)
                optimizer = optim_info.optim_cls([weight, bias], **options)
                on_gpu = torch.is_tensor(options["lr"]) and options["lr"].is_cuda
                schedulers = [make(optimizer) for make in makers] if not on_gpu else []

                def closure():
                    optimizer.zero_grad()
                    loss = (weight.mv(x.detach()) + bias - y.detach()).pow(2).sum()
                    loss.backward()
                    return loss

                first = closure().item()
                for _ in range(20):
                    loss = optimizer.step(closure)
                    for scheduler in schedulers:
                        is_plateau = isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
                        scheduler.step(loss) if is_plateau else scheduler.step()
                last = closure().item()
                if options.get("maximize"):
                    self.assertGreater(last, first, optim_input.desc)
                else:
                    self.assertLess(last, first, optim_input.desc)

    @optims(OURS)
    def test_tensor_lr_of_any_dimension(self, device, dtype, optim_info):
        for optim_input, shape in itertools.product(every_input(device, optim_info), [(), (1,), (1, 1)]):
            params = with_gradients([(4, 3), (5,)], device, dtype)
            twins = copies(params)
            options = {**self.options(optim_input), "lr": 0.125}
            optim_info.optim_cls(twins, **options).step()
            rate = torch.full(shape, 0.125, device="cpu" if not options.get("capturable") else device)
            optim_info.optim_cls(params, **{**options, "lr": rate}).step()
            self.assertEqual(params, twins, **BOUNDS[dtype])

    # ---- groups -------------------------------------------------------------------------------------------------------

    @optims(OURS)
    def test_groups_have_their_own_options(self, device, dtype, optim_info):
        for optim_input in every_input(device, optim_info):
            params = with_gradients([(4, 3), (5,)], device, dtype)
            apart = copies(params)
            options = self.options(optim_input)
            own = {"lr": 0.003, "weight_decay": 0.2}
            together = optim_info.optim_cls([{"params": params[:1]}, {"params": params[1:], **own}], **options)
            single = [
                optim_info.optim_cls(apart[:1], **options),
                optim_info.optim_cls(apart[1:], **{**options, **own}),
            ]
            for optimizer in (together, *single):
                optimizer.step()
            self.assertEqual(params, apart, rtol=0, atol=0)

    # ---- implementations ----------------------------------------------------------------------------------------------

    def compare(self, device, dtype, optim_info, flag):
        for optim_input in optim_info.optim_inputs_func(device=device):
            if optim_input.kwargs.get("capturable") and flag == "foreach":
                continue
            tracker = TensorTracker(BOUNDS[dtype])
            made = with_gradients([(7, 5), (40,), (3, 4, 5), (), (1,)], device, dtype)
            for chosen in (False, True):
                params = copies(made)
                options = {**self.options(optim_input), "foreach": False, "fused": False, flag: chosen}
                optimizer = optim_info.optim_cls(params, **options)
                for step in range(5):
                    new_gradients(params, step)
                    optimizer.step()
                    for param in params:
                        values = [value for value in optimizer.state[param].values() if torch.is_tensor(value)]
                        self.assertTrue(all(value.dtype == state_type(dtype) for value in values))
                        for tensor in [*values, param]:
                            if chosen:
                                # (The copy is what gets the other's values. Ours would take it for a change by others.)
                                tracker.pop_check_set(tensor.clone(), self)
                            else:
                                tracker.add(tensor)
            self.assertTrue(tracker.all_popped())

    @optims(OURS, dtypes=DTYPES)
    def test_foreach_matches_the_loop(self, device, dtype, optim_info):
        self.compare(device, dtype, optim_info, "foreach")

    @optims(OURS, dtypes=DTYPES)
    def test_fused_matches_the_loop(self, device, dtype, optim_info):
        self.compare(device, dtype, optim_info, "fused")

    @optims(OURS, dtypes=[torch.float32])
    def test_types_and_devices_may_be_mixed(self, device, dtype, optim_info):
        for optim_input in every_input(device, optim_info):
            options = self.options(optim_input)
            places = {device} if options.get("capturable") else {"cpu", device}
            params = [w for place in sorted(places) for kind in DTYPES for w in with_gradients([(4, 3), (6,)], place, kind)]
            apart = copies(params)
            optimizer = optim_info.optim_cls(params, **options)
            single = [optim_info.optim_cls([w], **options) for w in apart]
            for step in range(2):
                new_gradients(params, step)
                for own, param in zip(apart, params):
                    own.grad = param.grad.clone()
                for one in (optimizer, *single):
                    one.step()
            self.assertEqual(params, apart, rtol=0, atol=0)

    # ---- nothing to do ------------------------------------------------------------------------------------------------

    @optims(OURS)
    def test_nothing_happens_without_gradients(self, device, dtype, optim_info):
        for optim_input in every_input(device, optim_info):
            params = with_gradients([(4, 3), (5,)], device, dtype)
            before = [param.detach().clone() for param in params]
            optimizer = optim_info.optim_cls(params, **self.options(optim_input))
            optimizer.zero_grad(set_to_none=True)
            optimizer.step()
            self.assertEqual(params, before, rtol=0, atol=0)
            self.assertEqual(len(optimizer.state), 0)

    @optims(OURS)
    def test_gradients_of_zeros_do_nothing_but_decay(self, device, dtype, optim_info):
        for optim_input in every_input(device, optim_info):
            params = with_gradients([(4, 3), (5,)], device, dtype)
            before = [param.detach().clone() for param in params]
            options = self.options(optim_input)
            optimizer = optim_info.optim_cls(params, **options)
            optimizer.zero_grad(set_to_none=False)
            optimizer.step()
            keep = 1 - float(options["lr"]) * options.get("weight_decay", 0)
            self.assertEqual(params, [keep * w for w in before], **({"rtol": 0, "atol": 0} if keep == 1 else BOUNDS[dtype]))

    @optims(OURS)
    def test_tensors_of_size_zero(self, device, dtype, optim_info):
        for optim_input in every_input(device, optim_info):
            empty, other = with_gradients([(0, 3), (5,)], device, dtype)
            before = other.detach().clone()
            optimizer = optim_info.optim_cls([empty, other], **self.options(optim_input))
            for _ in range(2):
                optimizer.step()
            self.assertNotEqual(other, before)
            optim_info.optim_cls([empty], **self.options(optim_input)).step()

    # ---- states -------------------------------------------------------------------------------------------------------

    def trained(self, optim_info, optim_input, device, dtype=torch.float32, steps=3):
        params = with_gradients([(4, 3), (5,)], device, dtype)
        optimizer = optim_info.optim_cls(params, **self.options(optim_input))
        for step in range(steps):
            new_gradients(params, step)
            optimizer.step()
        return params, optimizer

    def assert_go_on_alike(self, params, optimizer, others, other):
        for step in range(10, 13):
            for own, one in ((params, optimizer), (others, other)):
                new_gradients(own, step)
                one.step()
        self.assertEqual(params, others, rtol=0, atol=0)

    @optims(OURS, dtypes=[torch.float32, torch.bfloat16])
    def test_states_go_on_after_saving(self, device, dtype, optim_info):
        for optim_input in every_input(device, optim_info):
            params, optimizer = self.trained(optim_info, optim_input, device, dtype)
            file = io.BytesIO()
            torch.save(optimizer.state_dict(), file)
            file.seek(0)
            others = copies(params)
            other = optim_info.optim_cls(others, **self.options(optim_input))
            other.load_state_dict(torch.load(file, weights_only=True))
            self.assertEqual(other.state_dict(), optimizer.state_dict())
            self.assert_go_on_alike(params, optimizer, others, other)

    @optims(OURS)
    def test_older_states_lack_options(self, device, dtype, optim_info):
        for optim_input in every_input(device, optim_info):
            params, optimizer = self.trained(optim_info, optim_input, device)
            older = copy.deepcopy(optimizer.state_dict())
            for group in older["param_groups"]:
                for name in ("foreach", "fused", "capturable", "maximize"):
                    del group[name]
            others = copies(params)
            other = optim_info.optim_cls(others, **self.options(optim_input))
            other.load_state_dict(older)
            self.assert_go_on_alike(params, optimizer, others, other)

    @optims(OURS)
    def test_named_parameters(self, device, dtype, optim_info):
        for optim_input in every_input(device, optim_info):
            params, optimizer = self.trained(optim_info, optim_input, device)
            others = copies(params)
            named = optim_info.optim_cls(list(zip("ab", others)), **self.options(optim_input))
            named.load_state_dict(optimizer.state_dict())
            self.assertEqual(named.state_dict()["param_groups"][0]["param_names"], ["a", "b"])
            self.assert_go_on_alike(params, optimizer, others, named)
        with self.assertRaisesRegex(InputError, "parameter 1 of group 0 is the same tensor as parameter 0"):
            optim_info.optim_cls([("a", params[0]), ("b", params[0])], lr=0.1)

    @onlyCUDA
    @optims(OURS, dtypes=[torch.float32, torch.bfloat16])
    def test_states_move_between_devices(self, device, dtype, optim_info):
        for optim_input in every_input(device, optim_info):
            if optim_input.kwargs.get("capturable"):
                continue
            params, optimizer = self.trained(optim_info, optim_input, device, dtype)
            others = [Parameter(param.detach().cpu()) for param in params]
            other = optim_info.optim_cls(others, **self.options(optim_input))
            other.load_state_dict(optimizer.state_dict())
            for param in others:
                for name, value in other.state[param].items():
                    self.assertTrue(not torch.is_tensor(value) or value.device.type == "cpu", name)
            for own, one in ((params, optimizer), (others, other)):
                new_gradients(own, 20)
                one.step()
            self.assertEqual([param.cpu() for param in params], others, **BOUNDS[dtype])

    @optims(OURS)
    def test_hooks(self, device, dtype, optim_info):
        optim_input = optim_info.optim_inputs_func(device=device)[0]
        params, optimizer = self.trained(optim_info, optim_input, device)
        calls = []

        def note(name):
            return lambda *_: calls.append(name)

        optimizer.register_step_pre_hook(note("before"))
        optimizer.register_step_post_hook(note("after"))
        optimizer.register_state_dict_pre_hook(note("before state"))
        optimizer.register_state_dict_post_hook(note("after state"))
        optimizer.register_load_state_dict_pre_hook(note("before load"))
        optimizer.register_load_state_dict_post_hook(note("after load"))
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        expected = ["before", "after", "before state", "after state", "before load", "after load"]
        self.assertEqual(calls, expected)

    @optims(OURS)
    def test_copies_have_all_attributes_and_go_on(self, device, dtype, optim_info):
        for optim_input in every_input(device, optim_info):
            params, optimizer = self.trained(optim_info, optim_input, device)
            other = copy.deepcopy(optimizer)
            self.assertEqual(
                {name for name in vars(optimizer) if not name.startswith("_")},
                {name for name in vars(other) if not name.startswith("_")},
            )
            self.assertIn(optim_info.name, repr(other))
            self.assert_go_on_alike(params, optimizer, other.param_groups[0]["params"], other)

    # ---- scales -------------------------------------------------------------------------------------------------------

    @optims(OURS)
    def test_fused_does_not_step_if_found_inf(self, device, dtype, optim_info):
        for optim_input in optim_info.optim_inputs_func(device=device):
            params = with_gradients([(4, 3), (5,)], device, dtype)
            before = [param.detach().clone() for param in params]
            optimizer = optim_info.optim_cls(params, **self.options(optim_input), fused=True)
            optimizer.grad_scale = None
            optimizer.found_inf = torch.tensor(1.0, device=device)
            optimizer.step()
            self.assertEqual(params, before, rtol=0, atol=0)
            optimizer.found_inf = torch.tensor(0.0, device=device)
            optimizer.step()
            self.assertNotEqual(params[0], before[0])

    @optims(OURS)
    def test_grad_scaler(self, device, dtype, optim_info):
        for optim_input in every_input(device, optim_info):
            params = with_gradients([(4, 3), (5,)], device, dtype)
            twins = copies(params)
            optimizer = optim_info.optim_cls(params, **self.options(optim_input))
            plain = optim_info.optim_cls(twins, **self.options(optim_input))
            scaler = torch.amp.GradScaler(torch.device(device).type, init_scale=64.0)
            for _ in range(3):
                for own, one in ((params, optimizer), (twins, plain)):
                    one.zero_grad()
                    loss = sum((param**2).sum() for param in own)
                    (scaler.scale(loss) if one is optimizer else loss).backward()
                scaler.step(optimizer)
                scaler.update()
                plain.step()
            self.assertEqual(params, twins, **BOUNDS[dtype])

    @onlyCUDA
    @optims(OURS, dtypes=[torch.float16])
    def test_fused_large_tensors(self, device, dtype, optim_info):
        """More numbers than 32 bits can count, in one tensor."""
        size = 2**31 + 8
        if torch.cuda.get_device_properties(device).total_memory < 6 * size:
            self.skipTest("the GPU has too little memory")
        masters = {"dual_state" if optim_info.name == "MirrorDescent" else "master_weights": False}
        param = Parameter(torch.full((size,), 0.5, dtype=dtype, device=device))
        param.grad = torch.full((size,), 1.0, dtype=dtype, device=device)
        lr = 0.25 if optim_info.name == "MirrorDescent" else 0.25 * size**0.5
        optim_info.optim_cls([param], lr=lr, fused=True, **masters).step()
        ends = torch.cat([param.detach()[:8], param.detach()[-8:]]).float()
        self.assertEqual(ends, torch.full((16,), 0.25, device=device), rtol=1e-2, atol=0)

    # ---- errors -------------------------------------------------------------------------------------------------------

    @optims(OURS)
    def test_errors(self, device, dtype, optim_info):
        # Those that we say in our own words.
        ours = {
            "a param group cannot have duplicate parameters": "is the same tensor as parameter 0",
            "Tensor lr must be 1-element": "lr has 2 numbers: expected one",
        }
        for error_input in get_error_inputs_for_all_optims(device, dtype):
            given = error_input.optimizer_error_input
            params = given.params if given.params is not None else with_gradients([(2, 3)], device, dtype)
            options = {"lr": 0.1, **given.kwargs}
            if issubclass(error_input.error_type, Warning) and given.desc not in ours:
                with self.assertWarnsRegex(error_input.error_type, error_input.error_regex):
                    optim_info.optim_cls(params, **options)
                continue
            kind = InputError if given.desc in ours else error_input.error_type
            with self.assertRaisesRegex(kind, ours.get(given.desc, error_input.error_regex)):
                optim_info.optim_cls(params, **options)


instantiate_device_type_tests(TestOptimizers, globals(), only_for=("cpu", "cuda"))

if __name__ == "__main__":
    unittest.main()
