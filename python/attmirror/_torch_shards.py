"""Norms of tensors whose parts lie with several processes.

A normalized step divides by the dual norm of the whole tensor. Each process measures its part, and
||d||_q = (sum of ||part||_q^q)^{1/q}: with the largest of the parts in front, nothing over- or underflows.
"""

from __future__ import annotations

from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a DTensor that is here; any other tensor itself."""
    part = getattr(tensor, "_local_tensor", None)
    return tensor if part is None else part


def is_sharded_type(tensor: torch.Tensor) -> bool:
    return getattr(tensor, "_local_tensor", None) is not None and hasattr(tensor, "placements")


def shard_groups(tensor: torch.Tensor) -> tuple[Any, ...]:
    """The process groups over which a DTensor is sharded; none for other tensors. Raises ValueError for placements that
    cannot be stepped part by part."""
    if not is_sharded_type(tensor):
        return ()
    groups = []
    for dimension, placement in enumerate(tensor.placements):  # type: ignore[attr-defined,unused-ignore]
        if placement.is_partial():
            raise ValueError(f"has the placement {placement}: expected Shard or Replicate")
        if placement.is_shard() and tensor.device_mesh.size(dimension) > 1:  # type: ignore[attr-defined,unused-ignore]
            groups.append(tensor.device_mesh.get_group(dimension))  # type: ignore[attr-defined,unused-ignore]
    return tuple(groups)


def norms_over(norms: torch.Tensor, q: float, group: Any) -> torch.Tensor:
    """`norms`, one of each part here, become those of the whole over the processes of `group`, which all call this."""
    import torch.distributed as distributed  # type: ignore[import-not-found,unused-ignore]

    largest = norms.clone()
    distributed.all_reduce(largest, op=distributed.ReduceOp.MAX, group=group)
    unit = torch.where(largest > 0, largest, torch.ones_like(largest))
    total = (norms / unit) ** q
    distributed.all_reduce(total, op=distributed.ReduceOp.SUM, group=group)
    return unit * total ** (1 / q)


def whole_norms(norms: torch.Tensor, q: float, groups: list[tuple[Any, ...]]) -> torch.Tensor:
    """`groups` has the process groups of each tensor. Tensors with the same groups go together."""
    result = norms.clone()
    for wanted in dict.fromkeys(groups):  # in the order of the tensors, which is the same for all processes
        if not wanted:
            continue
        index = torch.tensor([i for i, own in enumerate(groups) if own == wanted], device=norms.device)
        part = norms.index_select(0, index)
        for group in wanted:
            part = norms_over(part, q, group)
        result.index_copy_(0, index, part)
    return result
