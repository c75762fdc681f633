"""attmirror.torch where parameters or gradients are shared among processes: two of them, over gloo."""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as distributed  # noqa: E402

import attmirror.torch as at  # noqa: E402
from torch_cases import distance, parameters, same_bits, set_gradients, train  # noqa: E402

WORLD = 2
STEPS = 3
OPTIONS = {
    "mirror": functools.partial(at.MirrorDescent, lr=0.01, p=1.1, normalized=True, momentum=0.9),
    "steepest": functools.partial(at.SteepestDescent, lr=0.01, norm="l3", momentum=0.9),
}
# Rows of the matrix go to one process each; the vector lies with the first alone.
SHAPES = [(2, 3000), (50,)]

pytestmark = pytest.mark.skipif(not distributed.is_available(), reason="this PyTorch has no torch.distributed")


def whole(kind, engine):
    params = parameters(SHAPES, torch.float64)
    train(OPTIONS[kind](params, **engine), params, STEPS)
    return params


def part(tensor, rank):
    if tensor.dim() == 2:
        return tensor[rank].clone()
    return tensor.clone() if rank == 0 else tensor[:0].clone()


def check_shards(rank):
    for kind in OPTIONS:
        for engine in ({}, {"foreach": True}):
            expected = whole(kind, engine)
            full = parameters(SHAPES, torch.float64)
            shards = [torch.nn.Parameter(part(w.detach(), rank)) for w in full]
            optimizer = OPTIONS[kind](shards, process_group=distributed.group.WORLD, **engine)
            for i in range(STEPS):
                set_gradients(full, 100 + i)
                for shard, w in zip(shards, full):
                    shard.grad = part(w.grad, rank)
                optimizer.step()
            for shard, w in zip(shards, expected):
                mine = part(w.detach(), rank)
                assert mine.numel() == 0 or distance(shard, mine) < 1e-12, (kind, engine)
            # Each process by its own norm is something else: the exchange matters.
            alone = [torch.nn.Parameter(part(w.detach(), rank)) for w in parameters(SHAPES, torch.float64)]
            separate = OPTIONS[kind](alone, **engine)
            set_gradients(full, 100)
            for shard, w in zip(alone, full):
                shard.grad = part(w.grad, rank)
            separate.step()
            assert distance(alone[0], part(expected[0].detach(), rank)) > 1e-6


def check_ddp(rank):
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    model, twin = torch.nn.Linear(8, 4), torch.nn.Linear(8, 4)
    twin.load_state_dict(model.state_dict())
    parallel = DistributedDataParallel(model)
    x = torch.randn(WORLD, 16, 8, generator=torch.Generator().manual_seed(1))
    options = {"lr": 0.01, "p": 1.1, "normalized": True}
    ours, theirs = at.MirrorDescent(parallel.parameters(), **options), at.MirrorDescent(twin.parameters(), **options)
    for _ in range(STEPS):
        ours.zero_grad()
        theirs.zero_grad()
        parallel(x[rank]).square().mean().backward()
        twin(x.reshape(-1, 8)).square().mean().backward()
        ours.step()
        theirs.step()
    for a, b in zip(model.parameters(), twin.parameters()):
        assert distance(a, b) < 1e-5
        gathered = [torch.empty_like(a) for _ in range(WORLD)]
        distributed.all_gather(gathered, a.detach())
        assert same_bits(gathered[0], gathered[1]), "all processes hold the same weights"


def check_dtensors(rank):
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    except ImportError:
        print("no DTensor")
        return
    mesh = init_device_mesh("cpu", (WORLD,))
    for placements in ([Shard(0)], [Replicate()]):
        for dtype in (torch.float64, torch.bfloat16):
            full, plain = parameters([(6, 50), (2, 3)], dtype), parameters([(6, 50), (2, 3)], dtype)
            params = [torch.nn.Parameter(distribute_tensor(w.detach(), mesh, placements)) for w in full]
            ours, theirs = OPTIONS["mirror"](params), OPTIONS["mirror"](plain)
            for i in range(STEPS):
                set_gradients(plain, 100 + i)
                for w, source in zip(params, plain):
                    w.grad = distribute_tensor(source.grad, mesh, placements)
                version = params[0]._version
                ours.step()
                theirs.step()
                assert params[0]._version > version
            for a, b in zip(params, plain):
                assert distance(a.full_tensor(), b) < (1e-12 if dtype == torch.float64 else 8e-3), placements
            assert type(ours.state[params[0]]["momentum_buffer"]).__name__ == "DTensor"
    print("DTensor checked")


def check_fsdp2(rank):
    if int(torch.__version__.split(".")[0]) < 2:
        print("no FSDP2")
        return
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        print("no FSDP2")
        return
    torch.manual_seed(0)
    model, twin = (torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1)) for _ in range(2))
    twin.load_state_dict(model.state_dict())
    mesh = init_device_mesh("cpu", (WORLD,))
    fully_shard(model, mesh=mesh)
    x = torch.randn(WORLD, 16, 8, generator=torch.Generator().manual_seed(1))
    ours, theirs = OPTIONS["mirror"](model.parameters()), OPTIONS["mirror"](twin.parameters())
    for _ in range(STEPS):
        ours.zero_grad()
        theirs.zero_grad()
        model(x[rank]).square().mean().backward()
        twin(x.reshape(-1, 8)).square().mean().backward()
        ours.step()
        theirs.step()
    for a, b in zip(model.parameters(), twin.parameters()):
        assert distance(a.full_tensor(), b) < 1e-4
    print("FSDP2 checked")


CHECKS = {"shards": check_shards, "ddp": check_ddp, "dtensors": check_dtensors, "fsdp2": check_fsdp2}


@pytest.mark.parametrize("check", CHECKS)
def test_two_processes(check):
    with tempfile.TemporaryDirectory() as folder:
        meeting = pathlib.Path(folder, "meeting").as_uri()
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        processes = [
            subprocess.Popen([sys.executable, __file__, check, str(rank), meeting], env=environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for rank in range(WORLD)
        ]  # fmt: skip
        outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes), "\n".join(outputs)
    if "no DTensor" in outputs[0] or "no FSDP2" in outputs[0]:
        pytest.skip(f"this PyTorch has {outputs[0].strip()}")


if __name__ == "__main__":
    name, rank, meeting = sys.argv[1:]
    distributed.init_process_group("gloo", init_method=meeting, rank=int(rank), world_size=WORLD)
    CHECKS[name](int(rank))
    distributed.destroy_process_group()
