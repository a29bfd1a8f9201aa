"""Tests that run in one process and, as they are, on every rank under mpirun (see test_ranks.py)."""

from collections.abc import Iterator

import pytest

from headway import distributed


@pytest.fixture(scope="session")
def world() -> Iterator[distributed.GroupCoordinator]:
    distributed.init_distributed_environment(timeout=20)
    yield distributed.get_world_group()
    distributed.destroy_distributed_environment()


@pytest.fixture
def size(world: distributed.GroupCoordinator) -> int:
    return world.world_size


@pytest.fixture
def rank(world: distributed.GroupCoordinator) -> int:
    return world.rank


@pytest.fixture
def tp(world: distributed.GroupCoordinator) -> Iterator[distributed.GroupCoordinator]:
    """TP and attention groups of all ranks."""
    distributed.initialize_model_parallel(world.world_size)
    yield distributed.get_tp_group()
    world.barrier()  # none leaves a group while another still waits in it
    distributed.destroy_model_parallel()


@pytest.fixture
def alone(world: distributed.GroupCoordinator) -> Iterator[distributed.GroupCoordinator]:
    """A TP group for each rank alone, as models are built that a mesh is to shard."""
    distributed.initialize_model_parallel(1)
    yield distributed.get_tp_group()
    world.barrier()  # none leaves a group while another still waits in it
    distributed.destroy_model_parallel()
