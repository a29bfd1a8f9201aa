"""headway.distributed: vLLM's names, and every collective by value."""

import pathlib
import threading
import time

import pytest
import torch
from values import sequence

import headway
from headway import distributed


def test_groups_have_vllms_attributes(world, size, rank):
    attention = max(divisor for divisor in range(1, size + 1) if size % divisor == 0 and divisor <= 2)
    distributed.initialize_model_parallel(tensor_model_parallel_size=size,
                                          lm_head_tensor_model_parallel_size=attention)
    try:
        tp, lm = distributed.get_tp_group(), distributed.get_lm_tp_group()
        assert (tp.name, tp.ranks, tp.rank, tp.rank_in_group) == ("tp", list(range(size)), rank, rank)
        first = rank // attention * attention
        assert (lm.name, lm.ranks) == ("lm_head_tp", list(range(first, first + attention)))
        assert (lm.rank, lm.rank_in_group, lm.world_size) == (rank, rank - first, attention)
        assert (lm.first_rank, lm.last_rank) == (first, first + attention - 1)
        assert (lm.is_first_rank, lm.is_last_rank) == (rank == first, rank == first + attention - 1)
        assert tp.next_rank == (rank + 1) % size and tp.prev_rank == (rank - 1) % size
        assert distributed.get_attn_dp_group().ranks == list(range(rank - first, size, attention))
        assert distributed.get_tensor_model_parallel_world_size() == size
        assert distributed.get_tensor_model_parallel_rank() == rank
        assert distributed.get_lm_tensor_model_parallel_world_size() == attention
        assert distributed.get_lm_tensor_model_parallel_rank() == rank - first
        assert distributed.get_tp_group() == tp and tp != lm
        expected = sum(range(first, first + attention)) + attention
        assert distributed.lm_tensor_model_parallel_all_reduce(torch.tensor([rank + 1.0])).item() == expected
        distributed.ensure_model_parallel_initialized(size, 1, attention)
        with pytest.raises(headway.Error, match=f"size {size}, not {size + 1}"):
            distributed.ensure_model_parallel_initialized(size + 1)
    finally:
        distributed.destroy_model_parallel()
    assert not distributed.model_parallel_is_initialized()


def test_uninitialised_groups_are_refused(world):
    with pytest.raises(headway.Error, match="^LM head tensor model parallel group is not initialized.$"):
        distributed.get_lm_tp_group()
    with pytest.raises(headway.Error, match="tensor model parallel group is not initialized"):
        distributed.get_tp_group()
    with pytest.raises(headway.ConfigError, match="pipeline_model_parallel_size is 2"):
        distributed.initialize_model_parallel(1, 2)


def test_a_group_outlives_its_destruction(world, size, rank):
    distributed.initialize_model_parallel(size)
    old = distributed.get_tp_group()
    if rank == 0:
        kept = old  # on one rank alone: the next groups must not depend on who has dropped the old ones
    del old
    distributed.destroy_model_parallel()
    distributed.initialize_model_parallel(size)
    assert distributed.tensor_model_parallel_all_reduce(torch.tensor([1.0])).item() == size
    distributed.destroy_model_parallel()
    assert rank != 0 or kept.ranks == list(range(size))


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.float16, torch.int64))
def test_all_reduce_sums_and_leaves_its_input(tp, size, rank, dtype):
    mine = (sequence(3, 5) * (rank + 1)).to(dtype)
    before = mine.clone()
    assert distributed.tensor_model_parallel_all_reduce(mine).equal(
        sum((sequence(3, 5) * (r + 1)).to(dtype) for r in range(size)))
    assert mine.equal(before)


def test_strided_tensors_are_summed_as_they_look(tp, size):
    assert tp.all_reduce(sequence(4, 6).t()).equal(sequence(4, 6).t() * size)
    assert tp.all_gather(sequence(4, 6).t(), 0).equal(torch.cat([sequence(4, 6).t()] * size))


@pytest.mark.parametrize("dim", (0, 1, -1))
def test_gathers_of_even_and_uneven_parts(tp, size, rank, dim):
    parts = [sequence(2, 3, start=100 * r) for r in range(size)]
    assert distributed.tensor_model_parallel_all_gather(parts[rank], dim).equal(torch.cat(parts, dim))
    sizes = list(range(size))  # none from rank 0
    uneven = [sequence(4, 4, start=100 * r).narrow(dim, 0, r) for r in sizes]
    assert tp.all_gather(uneven[rank], dim, sizes).equal(torch.cat(uneven, dim))
    last = size - 1
    gathered = tp.gather(parts[rank], last, dim)
    assert gathered.equal(torch.cat(parts, dim)) if rank == last else gathered is None


def test_reduce_scatter(tp, size, rank):
    sizes = list(range(1, size + 1))
    whole = sequence(sum(sizes), 3)
    mine = tp.reduce_scatter(whole * (rank + 1), 0, sizes)
    assert mine.equal(whole.split(sizes)[rank] * (size * (size + 1) // 2))
    assert distributed.tensor_model_parallel_reduce_scatter(sequence(2, size)).equal(
        sequence(2, size)[:, rank:rank + 1] * size)


def test_all_to_all(tp, size, rank):
    sent = torch.cat([torch.full((r + 1, 2), 10.0 * rank + r) for r in range(size)])
    received = tp.all_to_all(sent, [rank + 1] * size, list(range(1, size + 1)))
    assert received.equal(torch.cat([torch.full((rank + 1, 2), 10.0 * r + rank) for r in range(size)]))


# Fault case C09: a source is a position in the group, not a rank of the world.
def test_broadcasts_come_from_a_position_in_the_group(world, size, rank):
    if size != 4:
        pytest.skip("its groups are those of 4 ranks")
    distributed.initialize_model_parallel(4, 1, 2)
    try:
        lm = distributed.get_lm_tp_group()
        assert lm.broadcast(torch.tensor([float(rank)]), 0).item() == rank // 2 * 2
        assert lm.broadcast_object({"rank": rank} if lm.is_last_rank else None, 1) == {"rank": rank // 2 * 2 + 1}
        with pytest.raises(headway.ArgumentError):
            lm.broadcast(torch.zeros(1), 2)
    finally:
        distributed.destroy_model_parallel()


def test_objects_and_named_tensors_travel(tp, size, rank):
    last = size - 1
    assert tp.broadcast_object(["text", rank, None], src=last) == ["text", last, None]
    named = {"a": sequence(2, 3), "ids": torch.tensor([5, 7])} if rank == 0 else None
    received = distributed.broadcast_tensor_dict(named)
    assert received.keys() == {"a", "ids"}
    assert received["a"].equal(sequence(2, 3)) and received["ids"].equal(torch.tensor([5, 7]))


def test_send_to_the_next_and_receive_from_the_previous(tp, size, rank):
    if size == 1:
        pytest.skip("needs two ranks")
    mine, expected = (sequence(2, 3, start=100 * r) for r in (rank, (rank - 1) % size))
    if rank == 0:
        tp.send(mine)
    assert tp.recv((2, 3), torch.float32).equal(expected)
    if rank != 0:
        tp.send(mine)


def test_other_threads_run_while_a_rank_waits_for_the_others(tp, size, rank, tmp_path):
    if size == 1:
        pytest.skip("needs two ranks")
    written = pathlib.Path(tp.broadcast_object(str(tmp_path / "written")))
    writer = threading.Timer(0.3, written.touch)
    if rank == 0:
        writer.start()
    else:
        deadline = time.monotonic() + 10
        while not written.exists():
            assert time.monotonic() < deadline, "rank 0 holds the GIL in its barrier"
            time.sleep(0.01)
    tp.barrier()
    assert written.exists()


def test_arguments_that_do_not_fit_are_refused(tp):
    with pytest.raises(headway.ArgumentError):
        tp.all_gather(torch.zeros(2, 2), 5)
    with pytest.raises(headway.ArgumentError, match='"mpi" is not one of auto, gloo, nccl'):
        distributed.init_distributed_environment(backend="mpi")
    with pytest.raises(headway.LaunchError, match="needs rank and world_size"):
        distributed.init_distributed_environment(distributed_init_method="tcp://127.0.0.1:29500")
    assert issubclass(headway.ArgumentError, ValueError) and issubclass(headway.Error, RuntimeError)
