"""Tensors that are the same on every rank."""

import torch


def sequence(*shape: int, start: int = 0) -> torch.Tensor:
    """Distinct values in order."""
    count = 1
    for extent in shape:
        count *= extent
    return torch.arange(start, start + count, dtype=torch.float32).view(shape)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))
