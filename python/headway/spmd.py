"""The other way to shard: build a model once, for one rank, and let a mesh decide who holds what.

    mesh = DeviceMesh((4,), ("x",))
    for row in shard_model(model, mesh):
        print(row)

A sharded module takes and returns global tensors, so that the model's own code stays as it is, and its results are
those of the unsharded model. The ranks come from `headway.distributed`; every rank of the mesh makes the same calls.
"""

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import torch
from torch.nn import Module, Parameter

from headway import _C, layers
from headway.distributed import GroupCoordinator
from headway.errors import ArgumentError, ConfigError
from headway.layers import (
    ColumnParallelLinear,
    HeadwayModule,
    LinearBase,
    ParallelLMHead,
    QKVParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
)

AxisNames: TypeAlias = str | tuple[str, ...] | None


class PartitionSpec(tuple[AxisNames, ...]):
    """Which mesh axes cut each dimension of a tensor: an axis name, a tuple of them, or None for a whole dimension."""

    def __new__(cls, *entries: AxisNames) -> "PartitionSpec":
        return super().__new__(cls, entries)

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"


class DeviceMesh:
    """The first ranks of the world as a row-major grid with named axes.

    Every rank builds it; ranks beyond the grid hold no shard. `initialize_model_parallel` must have been called.

    Raises:
        ConfigError: the shape is malformed, or has more positions than the world has ranks.
    """

    def __init__(self, shape: Sequence[int], axis_names: Sequence[str]) -> None:
        self._handle = _C.DeviceMesh(_C.get_parallel_state(), list(shape), list(axis_names))

    def __repr__(self) -> str:
        return f"DeviceMesh({self.shape}, {self.axis_names})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Ranks along each axis."""
        return tuple(self._handle.sizes)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes; the last varies fastest over the ranks."""
        return tuple(self._handle.axis_names)

    def contains_self(self) -> bool:
        """Whether this rank is in the grid."""
        return self._handle.contains_self()

    def coordinates(self) -> tuple[int, ...]:
        """This rank's place along each axis."""
        return tuple(self._handle.coordinates())

    def group(self, *axes: str) -> GroupCoordinator:
        """The ranks that differ from this one along `axes` alone. The first call with these axes is a collective."""
        return GroupCoordinator(self._handle.group(list(axes)))


class ShardedTensor:
    """One rank's part of a tensor that a mesh holds together; `mark_sharding` makes it."""

    def __init__(self, handle: _C.ShardedTensor) -> None:
        self._handle = handle

    @property
    def global_shape(self) -> torch.Size:
        """The shape of the whole."""
        return torch.Size(self._handle.global_shape)

    @property
    def spec(self) -> PartitionSpec:
        """How the mesh cuts it."""
        return PartitionSpec(*(_entry_of(axes) for axes in self._handle.spec))

    @property
    def local(self) -> torch.Tensor:
        """This rank's part; may be empty."""
        return self._handle.local

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where the part begins in each dimension, also when it is empty."""
        return tuple(self._handle.offsets)

    def full_tensor(self) -> torch.Tensor:
        """The whole on every rank of the mesh, bit-equal to what was sharded. A collective."""
        return self._handle.full_tensor()


def mark_sharding(tensor: torch.Tensor, mesh: DeviceMesh, spec: Sequence[AxisNames]) -> ShardedTensor:
    """Keeps this rank's part of a tensor that every rank holds whole.

    Raises:
        ArgumentError: the spec does not have one entry per dimension, or names an axis that is unknown or used twice.
    """
    return ShardedTensor(_C.mark_sharding(tensor, mesh._handle, [_axes_of(entry) for entry in spec]))


def _axes_of(entry: AxisNames) -> list[str]:
    if entry is None:
        return []
    return [entry] if isinstance(entry, str) else list(entry)


def _entry_of(axes: list[str]) -> AxisNames:
    return tuple(axes) if len(axes) > 1 else next(iter(axes), None)


class SpmdQKVParallelLinear(LinearBase):
    """A fused QKV layer, built for one rank, as three projections.

    Its parameters are `q_weight`, `k_weight`, `v_weight` and, all or none, `q_bias`, `k_bias`, `v_bias`. With a mesh
    each is cut over axis `x` in whole heads; without one the layer is only split. Output and bias are joined and
    global.

    Raises:
        ConfigError: "TP > 1 is only supported under SPMD."
    """

    def __init__(self, qkv_linear: QKVParallelLinear, mesh: DeviceMesh | None = None) -> None:
        if not isinstance(qkv_linear, QKVParallelLinear):
            raise ArgumentError(f"a QKVParallelLinear is split into q, k and v, not a {type(qkv_linear).__name__}")
        with torch.no_grad():
            layer = _C.SpmdQKVParallelLinear(qkv_linear._layer, None if mesh is None else mesh._handle)
        self._hold(layer, None, None, qkv_linear.skip_bias_add, qkv_linear.return_bias)


XlaQKVParallelLinear = SpmdQKVParallelLinear


def partition_qkv_parallel_linear(layer: QKVParallelLinear, mesh: DeviceMesh) -> SpmdQKVParallelLinear:
    """Cuts q, k and v over axis `x` in whole heads."""
    return SpmdQKVParallelLinear(layer, mesh)


@torch.no_grad()
def partition_column_parallel_linear(layer: ColumnParallelLinear, mesh: DeviceMesh) -> LinearBase:
    """Cuts the first dimension of the weight, and the bias, over axis `x`."""
    return _linear_over(_C.partition_column_parallel_linear(layer._layer, mesh._handle), layer)


@torch.no_grad()
def partition_row_parallel_linear(layer: RowParallelLinear, mesh: DeviceMesh) -> LinearBase:
    """Cuts the second dimension of the weight over axis `x`."""
    return _linear_over(_C.partition_row_parallel_linear(layer._layer, mesh._handle), layer)


@torch.no_grad()
def partition_vocab_parallel_embedding(layer: VocabParallelEmbedding, mesh: DeviceMesh) -> VocabParallelEmbedding:
    """Cuts the rows over axis `x`. A second call returns the same module, for the heads that are tied to it."""
    if mesh not in layer.sharded:
        handle = _C.partition_vocab_parallel_embedding(layer._layer, mesh._handle)
        layer.sharded[mesh] = VocabParallelEmbedding.over(handle)
    return layer.sharded[mesh]


@torch.no_grad()
def partition_parallel_lm_head(layer: ParallelLMHead, mesh: DeviceMesh) -> ParallelLMHead:
    """Cuts the rows over axis `x`; a head that is tied to an embedding is tied to the sharded one."""
    if layer.tied_to is None:
        return ParallelLMHead.over(_C.partition_parallel_lm_head(layer._layer, mesh._handle))
    embedding = partition_vocab_parallel_embedding(layer.tied_to, mesh)
    head = ParallelLMHead.over(_C.partition_tied_lm_head(layer._layer, mesh._handle, embedding._layer))
    return head.tie_weights(embedding)


def _linear_over(handle: _C.Linear, original: LinearBase) -> LinearBase:
    """The Python module of a sharded C++ layer, which returns what the original returns."""
    kind: type[LinearBase] = getattr(layers, handle.type_name)
    return kind.over(handle, skip_bias_add=original.skip_bias_add, return_bias=original.return_bias)


WrappingFunction: TypeAlias = Callable[..., Module]

MODULE_TYPE_TO_WRAPPING_FUNC: "OrderedDict[str, WrappingFunction]" = OrderedDict([
    ("QKVParallelLinear", partition_qkv_parallel_linear),
    ("MergedColumnParallelLinear", partition_column_parallel_linear),
    ("ColumnParallelLinear", partition_column_parallel_linear),
    ("RowParallelLinear", partition_row_parallel_linear),
    ("VocabParallelEmbedding", partition_vocab_parallel_embedding),
    ("ParallelLMHead", partition_parallel_lm_head),
])
"""What `shard_model` replaces, in this order: class name -> function of (module, mesh) that returns the replacement.
Subclasses match. More may be added."""

QWEN2_MODULE_NAMES: Mapping[str, type[HeadwayModule]] = {
    "q_proj": ColumnParallelLinear, "k_proj": ColumnParallelLinear, "v_proj": ColumnParallelLinear,
    "o_proj": RowParallelLinear, "gate_proj": ColumnParallelLinear, "up_proj": ColumnParallelLinear,
    "down_proj": RowParallelLinear, "embed_tokens": VocabParallelEmbedding, "lm_head": ParallelLMHead,
}
"""What the modules of transformers' Qwen2 are, by the last part of their names."""

HUGGING_FACE_MODELS: Mapping[str, Mapping[str, type[HeadwayModule]]] = {
    "Qwen2ForCausalLM": QWEN2_MODULE_NAMES, "Qwen2Model": QWEN2_MODULE_NAMES,
}
"""The models of transformers that `shard_model` takes, by class name."""


@dataclasses.dataclass(frozen=True)
class ShardedModule:
    """What became of one module that has parameters of its own; a shared parameter counts at its first module."""

    name: str
    type: str
    sharded: bool
    """Whether it was replaced; else every rank holds all of it."""
    spec: str
    """How its first parameter is cut, such as `(x, None)`."""
    local_bytes: int
    global_bytes: int


def get_fqn(module: Module) -> str:
    """The class name of a module."""
    return type(module).__qualname__


def shard_model(model: Module, mesh: DeviceMesh) -> list[ShardedModule]:
    """Replaces the modules below `model` by `MODULE_TYPE_TO_WRAPPING_FUNC` and tells what became of each.

    `model` is a tree of `headway.layers` among any other modules, or a Qwen2 model of transformers. Each replacement is
    logged at debug level (`HEADWAY_LOG=debug`).

    Raises:
        ConfigError: "Top Level module is not expected to be wrapped."
    """
    if _wrapping_of(model) is not None:
        raise ConfigError("Top Level module is not expected to be wrapped.")
    _adopt_hugging_face(model)
    replaced: set[str] = set()
    _replace_below(model, mesh, "", replaced)
    return list(_report(model, replaced))


def _wrapping_of(module: Module) -> tuple[str, WrappingFunction] | None:
    bases = {base.__qualname__ for base in type(module).__mro__}
    return next(((name, wrap) for name, wrap in MODULE_TYPE_TO_WRAPPING_FUNC.items() if name in bases), None)


def _replace_below(parent: Module, mesh: DeviceMesh, prefix: str, replaced: set[str]) -> None:
    for child_name, child in list(parent.named_children()):
        name = f"{prefix}.{child_name}" if prefix else child_name
        wrapping = _wrapping_of(child)
        if wrapping is None:
            _replace_below(child, mesh, name, replaced)
            continue
        _C.log_debug(f"shard_model: {name} matches {wrapping[0]}")
        replacement = wrapping[1](child, mesh)
        _C.log_debug(f"shard_model: {name} is replaced by a {get_fqn(replacement)}")
        setattr(parent, child_name, replacement)
        replaced.add(name)


def _report(model: Module, replaced: set[str]) -> Iterator[ShardedModule]:
    seen: set[Parameter] = set()
    for name, module in model.named_modules():
        parameters = dict(module.named_parameters(recurse=False))
        if not parameters:
            continue
        new = [parameter_name for parameter_name, parameter in parameters.items() if parameter not in seen]
        seen.update(parameters.values())
        local = sum(parameters[parameter_name].nbytes for parameter_name in new)
        spec, whole = "", local
        if name in replaced and isinstance(module, HeadwayModule):
            spec = module._layer.partition_spec(next(iter(parameters)))
            whole = sum(module._layer.global_bytes(parameter_name) for parameter_name in new)
        yield ShardedModule(name, get_fqn(module), name in replaced, spec, local, whole)


def _adopt_hugging_face(model: Module) -> None:
    """Puts Headway's layers for one rank in the place of transformers' modules, over the same weights."""
    names = next((HUGGING_FACE_MODELS[base.__qualname__] for base in type(model).__mro__
                  if base.__qualname__ in HUGGING_FACE_MODELS and base.__module__.startswith("transformers.")), None)
    if names is None:
        return
    embeddings: dict[Parameter, VocabParallelEmbedding] = {}
    for name, module in list(model.named_modules()):
        parent_name, _, child_name = name.rpartition(".")
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)) and child_name in names:
            adopted = _adopted(names[child_name], module, embeddings)
            setattr(model.get_submodule(parent_name), child_name, adopted)


def _adopted(kind: type[HeadwayModule], module: Module,
             embeddings: dict[Parameter, VocabParallelEmbedding]) -> HeadwayModule:
    alone = _C.get_parallel_state().self_group
    weight = module.weight
    assert isinstance(weight, Parameter)
    rows, columns = weight.shape
    adopted: HeadwayModule
    if issubclass(kind, VocabParallelEmbedding):
        adopted = embeddings[weight] = kind.over(_C.VocabParallelEmbedding(alone, rows, columns), module)
    elif issubclass(kind, ParallelLMHead):
        adopted = kind.over(_C.ParallelLMHead(alone, rows, columns), module)
        if weight in embeddings:
            adopted.tie_weights(embeddings[weight])
    elif issubclass(kind, RowParallelLinear):
        row = _C.RowParallelLinear(alone, _C.RowShape(columns, rows, 0),
                                   _C.RowOptions(module.bias is not None, False, False, True))
        adopted = kind.over(row, module, return_bias=False)
    else:
        column = _C.ColumnParallelLinear(alone, columns, rows, _C.ColumnOptions(module.bias is not None, False, True))
        adopted = kind.over(column, module, return_bias=False)
    return adopted
