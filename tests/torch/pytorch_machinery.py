"""What PyTorch's own tests of optimizers are made of (torch.testing._internal.common_optimizers), with ours described to it.

Wheels of PyTorch ship it since 2.3. Importing this module elsewhere raises ImportError.
"""

import sys
import types
import unittest

import torch

import attmirror.torch as at

try:
    import expecttest  # noqa: F401
except ImportError:
    # PyTorch's TestCase is derived from that of this package, of whose abilities nothing here makes use.
    stand_in = types.ModuleType("expecttest")
    stand_in.TestCase = unittest.TestCase
    sys.modules["expecttest"] = stand_in

from torch.testing._internal.common_device_type import instantiate_device_type_tests, onlyCUDA  # noqa: E402
from torch.testing._internal.common_optimizers import (  # noqa: E402
    OptimizerInfo,
    OptimizerInput,
    TensorTracker,
    _get_optim_inputs_including_global_cliquey_kwargs,
    get_error_inputs_for_all_optims,
    optims,
)
from torch.testing._internal.common_utils import TestCase, parametrize  # noqa: E402

__all__ = [
    "OURS",
    "TensorTracker",
    "TestCase",
    "every_input",
    "get_error_inputs_for_all_optims",
    "instantiate_device_type_tests",
    "onlyCUDA",
    "optims",
    "parametrize",
]

COMMON = {
    "tensor lr": {"lr": torch.tensor(0.01)},
    "momentum": {"momentum": 0.9},
    "nesterov": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "weight decay": {"weight_decay": 0.5},
    "maximize": {"weight_decay": 0.1, "maximize": True},
}
MIRROR = {
    "p = 1.1": {"p": 1.1},
    "p = 1.75": {"p": 1.75, "momentum": 0.5},
    "p = 3": {"p": 3, "lr": 1e-3},
    "normalized": {"p": 1.5, "normalized": True, "momentum": 0.9},
    "dual state": {"p": 1.5, "dual_state": True},
}
STEEPEST = {
    "l1.5": {"norm": "l1.5"},
    "l3": {"norm": 3, "momentum": 0.9},
    "sign": {"norm": "sign"},
    "master weights": {"norm": "l2", "master_weights": True},
}


def inputs(named):
    def make(device, dtype=None):
        all_named = {"default": {}, **COMMON, **named}
        made = [OptimizerInput(None, {"lr": 0.01, **own}, name) for name, own in all_named.items()]
        if torch.device(device).type == "cuda":
            made.append(OptimizerInput(None, {"lr": 0.01, "capturable": True}, "capturable"))
            lr = torch.tensor(0.01, device=device)
            made.append(OptimizerInput(None, {"lr": lr, "capturable": True}, "capturable, lr on the GPU"))
        return made

    return make


OURS = [
    OptimizerInfo(
        optimizer,
        optim_inputs_func=inputs(named),
        supported_impls=("foreach", "fused"),
        has_capturable_arg=True,
        supports_complex=False,
        supports_fused_on=("cpu", "cuda"),
    )
    for optimizer, named in ((at.MirrorDescent, MIRROR), (at.SteepestDescent, STEEPEST))
]


def every_input(device, optim_info):
    """All options, each with tensor operations (foreach), kernels (fused) and neither of both asked for."""
    return _get_optim_inputs_including_global_cliquey_kwargs(device, None, optim_info)
