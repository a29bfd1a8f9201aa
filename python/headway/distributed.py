"""Process groups, with the names that vLLM gives them.

One process is one rank. `init_distributed_environment` lets the ranks meet, `initialize_model_parallel` builds the
groups, and the `get_..._group` functions return them:

    init_distributed_environment()          # under torchrun, mpirun, srun, or alone
    initialize_model_parallel(tensor_model_parallel_size=4, lm_head_tensor_model_parallel_size=2)
    get_lm_tp_group().all_reduce(tensor)

The groups are process-wide. Whoever still holds a group or a layer built over it when the groups are destroyed keeps
its connections; groups that are made afterwards have connections of their own.
"""

import os
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from headway import _C
from headway.errors import ArgumentError, ConfigError, LaunchError

DEFAULT_TIMEOUT = 60.0


class GroupCoordinator:
    """A process group as its members see it.

    `rank` and `ranks` are ranks of the world, `rank_in_group` and the arguments `src` and `dst` are positions in this
    group. Every collective is called by all members in the same order. On a group of one it is the identity. Tensors
    lie where the group's transport wants them: on CPUs over shared memory and Gloo, on the rank's GPU over NCCL.
    """

    def __init__(self, handle: _C.GroupCoordinator) -> None:
        self._handle = handle

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GroupCoordinator) and other._handle is self._handle

    def __hash__(self) -> int:
        return hash(self._handle)

    def __repr__(self) -> str:
        return f"GroupCoordinator({self.name}, ranks={self.ranks}, rank_in_group={self.rank_in_group})"

    @property
    def name(self) -> str:
        """`world`, `tp`, `lm_head_tp`, `attn_dp`, or what a mesh calls it."""
        return self._handle.name

    @property
    def ranks(self) -> list[int]:
        """The members' ranks in the world, in group order."""
        return self._handle.ranks

    @property
    def rank(self) -> int:
        """This process in the world."""
        return self._handle.rank

    @property
    def rank_in_group(self) -> int:
        """This process in the group."""
        return self._handle.rank_in_group

    @property
    def world_size(self) -> int:
        """The number of members."""
        return len(self.ranks)

    @property
    def first_rank(self) -> int:
        """The first member's rank in the world."""
        return self.ranks[0]

    @property
    def last_rank(self) -> int:
        """The last member's rank in the world."""
        return self.ranks[-1]

    @property
    def is_first_rank(self) -> bool:
        """Whether this process is the first member."""
        return self.rank_in_group == 0

    @property
    def is_last_rank(self) -> bool:
        """Whether this process is the last member."""
        return self.rank_in_group == self.world_size - 1

    @property
    def next_rank(self) -> int:
        """The rank in the world of the member after this one, the first after the last."""
        return self.ranks[(self.rank_in_group + 1) % self.world_size]

    @property
    def prev_rank(self) -> int:
        """The rank in the world of the member before this one, the last before the first."""
        return self.ranks[(self.rank_in_group - 1) % self.world_size]

    @property
    def backend_name(self) -> str:
        """`self` for a group of one, `shm`, `gloo` or `nccl`."""
        return self._handle.backend_name

    def all_reduce(self, input_: torch.Tensor) -> torch.Tensor:
        """Returns the sum over all members, the same bits on each; `input_` stays as it is."""
        return self._handle.all_reduce(input_)

    def all_gather(self, input_: torch.Tensor, dim: int = -1, sizes: Sequence[int] | None = None) -> torch.Tensor:
        """Returns the members' tensors joined along `dim` in group order.

        `sizes` gives each member's extent of `dim`, zero included; without it all are equal to this one's.
        """
        return self._handle.all_gather(input_, dim, list(sizes or ()))

    def reduce_scatter(self, input_: torch.Tensor, dim: int = -1, sizes: Sequence[int] | None = None) -> torch.Tensor:
        """Returns this member's cut along `dim` of the sum over all; `sizes` as in `all_gather`."""
        return self._handle.reduce_scatter(input_, dim, list(sizes or ()))

    def gather(self, input_: torch.Tensor, dst: int = 0, dim: int = -1,
               sizes: Sequence[int] | None = None) -> torch.Tensor | None:
        """Returns on member `dst` what `all_gather` returns, and None on the others."""
        return self._handle.gather(input_, dst, dim, list(sizes or ()))

    def all_to_all(self, input_: torch.Tensor, output_sizes: Sequence[int], input_sizes: Sequence[int]) -> torch.Tensor:
        """Sends `input_sizes[r]` rows to each member `r` and returns the rows received, in group order."""
        return self._handle.all_to_all(input_, list(output_sizes), list(input_sizes))

    def broadcast(self, input_: torch.Tensor, src: int = 0) -> torch.Tensor:
        """Returns `src`'s tensor; the others pass one of the same shape and dtype, which is overwritten."""
        return self._handle.broadcast(input_, src)

    def broadcast_object(self, obj: Any = None, src: int = 0) -> Any:
        """Returns `src`'s object, pickled on the way: only among ranks that trust each other."""
        mine = pickle.dumps(obj) if self.rank_in_group == src else b""
        received = self._handle.broadcast_bytes(mine, src)
        return obj if self.rank_in_group == src else pickle.loads(received)

    def broadcast_tensor_dict(self, tensor_dict: Mapping[str, torch.Tensor] | None = None,
                              src: int = 0) -> dict[str, torch.Tensor]:
        """Returns `src`'s named tensors; shapes and dtypes travel along."""
        return self._handle.broadcast_tensor_dict(dict(tensor_dict or {}), src)

    def send(self, tensor: torch.Tensor, dst: int | None = None, tag: int = 0) -> None:
        """Sends to member `dst`, by default to the next one."""
        self._handle.send(tensor, (self.rank_in_group + 1) % self.world_size if dst is None else dst, tag)

    def recv(self, size: Sequence[int], dtype: torch.dtype, src: int | None = None, tag: int = 0,
             device: torch.device | str = "cpu") -> torch.Tensor:
        """Returns the tensor that member `src`, by default the previous one, sends."""
        tensor = torch.empty(tuple(size), dtype=dtype, device=device)
        return self._handle.recv(tensor, (self.rank_in_group - 1) % self.world_size if src is None else src, tag)

    def barrier(self) -> None:
        """Returns when all members have called it."""
        self._handle.barrier()


def init_distributed_environment(
    world_size: int = -1,
    rank: int = -1,
    distributed_init_method: str = "env://",
    local_rank: int = -1,
    backend: str = "auto",
    timeout: float = DEFAULT_TIMEOUT,
    device: str = "auto",
) -> None:
    """Lets the ranks of the job meet.

    Args:
        world_size: number of ranks; -1 takes what the launcher says.
        rank: this process's rank; -1 takes what the launcher says.
        distributed_init_method: `env://` asks torchrun, mpirun, srun or RANK and WORLD_SIZE, and without any of these
            is one rank alone; `tcp://host:port` and `file://path` need `rank` and `world_size`, and all ranks of
            `file://` are on this host.
        local_rank: this process's rank on its host; -1 takes what the launcher says.
        backend: `auto` (shared memory or Gloo on CPUs, NCCL on GPUs), `gloo` or `nccl`.
        timeout: seconds until a rank gives up on the others, in meeting and in each collective.
        device: `cpu`, `cuda`, or `auto`: cuda where there is one, and cpu with backend `gloo`.

    Raises:
        LaunchError: launch variables are partial or contradictory, or the ranks did not meet.
    """
    _check_choice("backend", backend, ("auto", "gloo", "nccl"))
    _check_choice("device", device, ("auto", "cpu", "cuda"))
    launch = _C.resolve_launch_environment(_launch_variables(distributed_init_method, world_size, rank, local_rank))
    for name, asked, found in (("world_size", world_size, launch.world_size), ("rank", rank, launch.rank),
                               ("local_rank", local_rank, launch.local_rank)):
        if asked not in (-1, found):
            raise LaunchError(f"{name} is {asked}, but {launch.source} says {found}")
    _C.init_distributed_environment(launch, device, backend, timeout)


def _check_choice(name: str, value: str, legal: tuple[str, ...]) -> None:
    if value not in legal:
        raise ArgumentError(f'{name} "{value}" is not one of {", ".join(legal)}')


def _launch_variables(method: str, world_size: int, rank: int, local_rank: int) -> dict[str, str] | None:
    """What stands in the place of the environment for `method`; None for the environment itself."""
    if method == "env://":
        return None
    if rank < 0 or world_size < 1:
        raise LaunchError(f"{method} needs rank and world_size; they are {rank} and {world_size}")
    if method.startswith("file://"):
        return _C.child_launch_variables(rank, world_size, method.removeprefix("file://"))
    host, colon, port = method.removeprefix("tcp://").rpartition(":")
    if not method.startswith("tcp://") or not colon or not port.isdigit():
        raise LaunchError(f'distributed_init_method "{method}" is not env://, tcp://host:port or file://path')
    variables = {"RANK": str(rank), "WORLD_SIZE": str(world_size), "MASTER_ADDR": host.strip("[]"), "MASTER_PORT": port}
    if local_rank >= 0 and "LOCAL_WORLD_SIZE" in os.environ:
        variables |= {"LOCAL_RANK": str(local_rank), "LOCAL_WORLD_SIZE": os.environ["LOCAL_WORLD_SIZE"]}
    return variables


def initialize_model_parallel(
    tensor_model_parallel_size: int = 1,
    pipeline_model_parallel_size: int = 1,
    lm_head_tensor_model_parallel_size: int | None = None,
) -> None:
    """Builds the groups of every rank.

    Args:
        tensor_model_parallel_size: ranks of a TP group; divides the world size.
        pipeline_model_parallel_size: 1; there are no pipelines.
        lm_head_tensor_model_parallel_size: ranks of an attention group; divides the TP size, which is the default.
    """
    _require_no_pipeline(pipeline_model_parallel_size)
    _C.initialize_model_parallel(tensor_model_parallel_size,
                                 lm_head_tensor_model_parallel_size or tensor_model_parallel_size)


def ensure_model_parallel_initialized(
    tensor_model_parallel_size: int,
    pipeline_model_parallel_size: int = 1,
    lm_head_tensor_model_parallel_size: int | None = None,
) -> None:
    """As `initialize_model_parallel`; where the groups exist already, checks that their sizes are these."""
    _require_no_pipeline(pipeline_model_parallel_size)
    _C.ensure_model_parallel_initialized(tensor_model_parallel_size,
                                         lm_head_tensor_model_parallel_size or tensor_model_parallel_size)


def _require_no_pipeline(size: int) -> None:
    if size != 1:
        raise ConfigError(f"pipeline_model_parallel_size is {size}; only 1 is served")


def model_parallel_is_initialized() -> bool:
    """Whether `initialize_model_parallel` has built the groups."""
    return _C.model_parallel_is_initialized()


def destroy_model_parallel() -> None:
    """Forgets the groups; all ranks call it."""
    _C.destroy_model_parallel()


def destroy_distributed_environment() -> None:
    """Forgets the groups and the meeting of the ranks; all ranks call it."""
    _C.destroy_distributed_environment()


def get_world_group() -> GroupCoordinator:
    """All ranks."""
    return GroupCoordinator(_C.get_world_group())


def get_tp_group() -> GroupCoordinator:
    """The tensor-parallel group that this rank is in."""
    return GroupCoordinator(_C.get_tp_group())


def get_lm_tp_group() -> GroupCoordinator:
    """The attention group `lm_head_tp` that this rank is in."""
    return GroupCoordinator(_C.get_lm_tp_group())


def get_attn_dp_group() -> GroupCoordinator:
    """The ranks that hold the same attention heads in different replicas."""
    return GroupCoordinator(_C.get_parallel_state().attn_dp)


def get_tensor_model_parallel_world_size() -> int:
    """The size of the TP group."""
    return get_tp_group().world_size


def get_tensor_model_parallel_rank() -> int:
    """This process in the TP group."""
    return get_tp_group().rank_in_group


def get_lm_tensor_model_parallel_world_size() -> int:
    """The size of the attention group."""
    return get_lm_tp_group().world_size


def get_lm_tensor_model_parallel_rank() -> int:
    """This process in the attention group."""
    return get_lm_tp_group().rank_in_group


def tensor_model_parallel_all_reduce(input_: torch.Tensor) -> torch.Tensor:
    """`all_reduce` over the TP group."""
    return get_tp_group().all_reduce(input_)


def tensor_model_parallel_all_gather(input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """`all_gather` over the TP group."""
    return get_tp_group().all_gather(input_, dim)


def tensor_model_parallel_reduce_scatter(input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """`reduce_scatter` over the TP group."""
    return get_tp_group().reduce_scatter(input_, dim)


def tensor_model_parallel_gather(input_: torch.Tensor, dst: int = 0, dim: int = -1) -> torch.Tensor | None:
    """`gather` over the TP group."""
    return get_tp_group().gather(input_, dst, dim)


def lm_tensor_model_parallel_all_reduce(input_: torch.Tensor) -> torch.Tensor:
    """`all_reduce` over the attention group."""
    return get_lm_tp_group().all_reduce(input_)


def lm_tensor_model_parallel_all_gather(input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """`all_gather` over the attention group."""
    return get_lm_tp_group().all_gather(input_, dim)


def broadcast_tensor_dict(tensor_dict: Mapping[str, torch.Tensor] | None = None,
                          src: int = 0) -> dict[str, torch.Tensor]:
    """`broadcast_tensor_dict` over the TP group."""
    return get_tp_group().broadcast_tensor_dict(tensor_dict, src)
