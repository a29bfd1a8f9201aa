"""The parallel layers as `torch.nn.Module`s, with vLLM's names and options.

The weights are cut over one group: the TP group unless `group` says otherwise, and for the `Attn*` layers the attention
group `lm_head_tp`. A parameter holds this rank's shard alone; `weight_loader(param, loaded_weight, shard_id)` fills it
from the full checkpoint tensor. The computation is Headway's own, for inference: no gradients. Inputs may have any
number of leading dimensions. Like vLLM's, the linear layers return `(output, bias)`, where `bias` is what
`skip_bias_add` has left to the caller, or with `return_bias=False` the output alone.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeAlias

import torch
from torch.nn import Module, Parameter

from headway import _C
from headway.distributed import GroupCoordinator
from headway.errors import ArgumentError

LinearOutput: TypeAlias = torch.Tensor | tuple[torch.Tensor, torch.Tensor | None]


class HeadwayModule(Module):
    """What all layers share: parameters that the C++ layer computes with and that PyTorch holds, one and the same."""

    _layer: _C.Module

    @classmethod
    def over(cls, layer: _C.Module, source: Module | None = None, **options: Any) -> Self:
        """The module of a C++ layer: with that layer's parameters, or with those of the same names of `source`."""
        module = cls.__new__(cls)
        module._hold(layer, source=source, **options)
        return module

    def _hold(self, layer: _C.Module, params_dtype: torch.dtype | None = None, source: Module | None = None) -> None:
        """What a constructor does; with a dtype the layer's parameters are given memory."""
        Module.__init__(self)
        self._layer = layer
        if params_dtype is not None:
            layer.allocate(params_dtype, _C.get_parallel_state().device)
        for name in layer.parameter_names():
            parameter = Parameter(layer.parameter(name), False) if source is None else getattr(source, name)
            self.register_parameter(name, parameter)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Puts `param` in the place of a parameter; the C++ layer computes with it from now on.

        Raises:
            ArgumentError: the layer has no parameter of that name, or its shape is another.
        """
        if param is not None:
            self._layer.set_parameter(name, param)
            setattr(param, "weight_loader", self.weight_loader)
        elif name in self._layer.parameter_names():
            raise ArgumentError(f"parameter {name} cannot be taken away")
        super().register_parameter(name, param)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> "HeadwayModule":
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, param in self.named_parameters(recurse=False):
            self._layer.set_parameter(name, param)
        return self

    def weight_loader(self, param: Parameter, loaded_weight: torch.Tensor, shard_id: str | int | None = None) -> None:
        """Copies this rank's part of a full checkpoint tensor into `param`.

        Args:
            param: one of this module's parameters.
            loaded_weight: the whole tensor, on any rank.
            shard_id: of layers that join several checkpoint tensors, which of them it is: `"q"`, `"k"` or `"v"`, or the
                position in `output_sizes`. Without it the tensor is one in which they are fused.

        Raises:
            ArgumentError: the shape is not that of the whole tensor, or there is no such shard.
        """
        section = "" if shard_id is None else str(shard_id)
        self._layer.load_section(self._name_of(param), loaded_weight, section)

    def _name_of(self, param: Parameter) -> str:
        for name, mine in self.named_parameters(recurse=False):
            if mine is param:
                return name
        raise ArgumentError(f"a parameter of shape {list(param.shape)} is none of this {type(self).__name__}'s")


class LinearBase(HeadwayModule):
    """What all linear layers share."""

    _layer: _C.Linear
    weight: Parameter
    bias: Parameter | None

    def _hold(self, layer: _C.Module, params_dtype: torch.dtype | None = None, source: Module | None = None,
              skip_bias_add: bool = False, return_bias: bool = True) -> None:
        super()._hold(layer, params_dtype, source)
        if layer.parameter_names() == ["weight"]:
            self.register_parameter("bias", None)
        self.skip_bias_add = skip_bias_add
        self.return_bias = return_bias

    def forward(self, input_: torch.Tensor) -> LinearOutput:
        """`[..., in]` -> `[..., out]`, with `return_bias` beside the bias that was not added."""
        output, bias = self._layer.forward(_as_rows(input_))
        output = output.view(*input_.shape[:-1], output.shape[-1])
        return (output, bias) if self.return_bias else output


class ReplicatedLinear(LinearBase):
    """The whole weight on every rank."""

    def __init__(self, input_size: int, output_size: int, bias: bool = True, skip_bias_add: bool = False,
                 params_dtype: torch.dtype | None = None, *, return_bias: bool = True) -> None:
        layer = _C.ReplicatedLinear(input_size, output_size, bias, skip_bias_add)
        self._hold(layer, _dtype(params_dtype), None, skip_bias_add, return_bias)


class ColumnParallelLinear(LinearBase):
    """Output features cut over the group; with `gather_output` every rank returns all of them."""

    _layer: _C.ColumnParallelLinear

    def __init__(self, input_size: int, output_size: int, bias: bool = True, gather_output: bool = False,
                 skip_bias_add: bool = False, params_dtype: torch.dtype | None = None, *, return_bias: bool = True,
                 group: GroupCoordinator | None = None) -> None:
        layer = _C.ColumnParallelLinear(_handle(group), input_size, output_size,
                                        _C.ColumnOptions(bias, skip_bias_add, gather_output))
        self._hold(layer, _dtype(params_dtype), None, skip_bias_add, return_bias)


class MergedColumnParallelLinear(ColumnParallelLinear):
    """Several column-parallel weights over one input in one parameter, such as `gate_up_proj`."""

    def __init__(self, input_size: int, output_sizes: Sequence[int], bias: bool = True, gather_output: bool = False,
                 skip_bias_add: bool = False, params_dtype: torch.dtype | None = None, *, return_bias: bool = True,
                 group: GroupCoordinator | None = None) -> None:
        layer = _C.MergedColumnParallelLinear(_handle(group), input_size, list(output_sizes),
                                              _C.ColumnOptions(bias, skip_bias_add, gather_output))
        self._hold(layer, _dtype(params_dtype), None, skip_bias_add, return_bias)


class QKVParallelLinear(ColumnParallelLinear):
    """Query, key and value projections in one parameter, cut in whole heads.

    Every rank of the group holds its query heads, as even as they can be, and the KV heads that these read; any number
    of ranks up to the query heads will do.
    """

    _layer: _C.QKVParallelLinear

    def __init__(self, hidden_size: int, head_size: int, total_num_heads: int, total_num_kv_heads: int | None = None,
                 bias: bool = True, skip_bias_add: bool = False, params_dtype: torch.dtype | None = None, *,
                 return_bias: bool = True, group: GroupCoordinator | None = None) -> None:
        layer = _C.QKVParallelLinear(_handle(group),
                                     _qkv_shape(hidden_size, head_size, total_num_heads, total_num_kv_heads),
                                     _C.ColumnOptions(bias, skip_bias_add, False))
        self._hold(layer, _dtype(params_dtype), None, skip_bias_add, return_bias)

    @property
    def q_heads(self) -> range:
        """Which of all query heads this rank holds."""
        return range(*self._layer.heads.q_heads)

    @property
    def kv_heads(self) -> range:
        """Which of all KV heads this rank holds."""
        return range(*self._layer.heads.kv_heads)


class RowParallelLinear(LinearBase):
    """Input features cut over the group; the sum over the group is the output, and the bias is added once.

    With `total_q_heads` the input is cut in whole heads, as a `QKVParallelLinear` cuts its queries.
    """

    _layer: _C.RowParallelLinear

    def __init__(self, input_size: int, output_size: int, bias: bool = True, input_is_parallel: bool = True,
                 skip_bias_add: bool = False, params_dtype: torch.dtype | None = None, reduce_results: bool = True, *,
                 return_bias: bool = True, total_q_heads: int = 0, group: GroupCoordinator | None = None) -> None:
        layer = _C.RowParallelLinear(_handle(group), _C.RowShape(input_size, output_size, total_q_heads),
                                     _C.RowOptions(bias, skip_bias_add, input_is_parallel, reduce_results))
        self._hold(layer, _dtype(params_dtype), None, skip_bias_add, return_bias)

    @property
    def local_columns(self) -> range:
        """Which of all input features this rank holds."""
        return range(*self._layer.local_columns)


class AttnColumnParallelLinear(ColumnParallelLinear):
    """A `ColumnParallelLinear` over the attention group."""

    def __init__(self, input_size: int, output_size: int, bias: bool = True, gather_output: bool = False,
                 skip_bias_add: bool = False, params_dtype: torch.dtype | None = None, *,
                 return_bias: bool = True) -> None:
        layer = _C.AttnColumnParallelLinear(_C.get_parallel_state(), input_size, output_size,
                                            _C.ColumnOptions(bias, skip_bias_add, gather_output))
        self._hold(layer, _dtype(params_dtype), None, skip_bias_add, return_bias)


class AttnQKVParallelLinear(QKVParallelLinear):
    """A `QKVParallelLinear` over the attention group."""

    def __init__(self, hidden_size: int, head_size: int, total_num_heads: int, total_num_kv_heads: int | None = None,
                 bias: bool = True, skip_bias_add: bool = False, params_dtype: torch.dtype | None = None, *,
                 return_bias: bool = True) -> None:
        layer = _C.AttnQKVParallelLinear(_C.get_parallel_state(),
                                         _qkv_shape(hidden_size, head_size, total_num_heads, total_num_kv_heads),
                                         _C.ColumnOptions(bias, skip_bias_add, False))
        self._hold(layer, _dtype(params_dtype), None, skip_bias_add, return_bias)


class AttnRowParallelLinear(RowParallelLinear):
    """A `RowParallelLinear` over the attention group."""

    def __init__(self, input_size: int, output_size: int, bias: bool = True, input_is_parallel: bool = True,
                 skip_bias_add: bool = False, params_dtype: torch.dtype | None = None, reduce_results: bool = True, *,
                 return_bias: bool = True, total_q_heads: int = 0) -> None:
        layer = _C.AttnRowParallelLinear(_C.get_parallel_state(),
                                         _C.RowShape(input_size, output_size, total_q_heads),
                                         _C.RowOptions(bias, skip_bias_add, input_is_parallel, reduce_results))
        self._hold(layer, _dtype(params_dtype), None, skip_bias_add, return_bias)


class VocabParallelEmbedding(HeadwayModule):
    """The token table, its rows cut over the group; nothing is padded."""

    _layer: _C.VocabParallelEmbedding
    weight: Parameter

    def __init__(self, num_embeddings: int, embedding_dim: int, params_dtype: torch.dtype | None = None, *,
                 group: GroupCoordinator | None = None) -> None:
        self._hold(_C.VocabParallelEmbedding(_handle(group), num_embeddings, embedding_dim), _dtype(params_dtype))

    def _hold(self, layer: _C.Module, params_dtype: torch.dtype | None = None, source: Module | None = None) -> None:
        super()._hold(layer, params_dtype, source)
        self.sharded: dict[object, VocabParallelEmbedding] = {}  # by the mesh that cuts it

    @property
    def local_rows(self) -> range:
        """Which rows of the table this rank holds."""
        return range(*self._layer.local_rows)

    def forward(self, input_: torch.Tensor) -> torch.Tensor:
        """Token ids `[...]` -> `[..., embedding_dim]`, the same on every rank."""
        output = self._layer.forward(input_.reshape(-1).to(torch.int64))
        return output.view(*input_.shape, output.shape[-1])


class ParallelLMHead(HeadwayModule):
    """The projection onto the vocabulary, its rows cut over the group."""

    _layer: _C.ParallelLMHead
    weight: Parameter

    def __init__(self, num_embeddings: int, embedding_dim: int, params_dtype: torch.dtype | None = None, *,
                 group: GroupCoordinator | None = None) -> None:
        self._hold(_C.ParallelLMHead(_handle(group), num_embeddings, embedding_dim), _dtype(params_dtype))

    def _hold(self, layer: _C.Module, params_dtype: torch.dtype | None = None, source: Module | None = None) -> None:
        super()._hold(layer, params_dtype, source)
        self._tied_to: tuple[VocabParallelEmbedding, ...] = ()  # as a member the embedding would be taken for a child

    @property
    def tied_to(self) -> VocabParallelEmbedding | None:
        """The embedding whose rows this head uses."""
        return next(iter(self._tied_to), None)

    def tie_weights(self, embed_tokens: VocabParallelEmbedding) -> "ParallelLMHead":
        """Uses the embedding's rows, and its group, from now on."""
        self._layer = _C.ParallelLMHead(embed_tokens._layer)
        self._tied_to = (embed_tokens,)
        self.register_parameter("weight", embed_tokens.weight)
        return self

    @property
    def local_rows(self) -> range:
        """Which rows of the vocabulary this rank holds."""
        return range(*self._layer.local_rows)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """`[..., embedding_dim]` -> logits `[..., num_embeddings]`, the same on every rank."""
        logits = self._layer.forward(_as_rows(hidden_states))
        return logits.view(*hidden_states.shape[:-1], logits.shape[-1])


def _as_rows(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(math.prod(tensor.shape[:-1]), tensor.shape[-1])


def _dtype(params_dtype: torch.dtype | None) -> torch.dtype:
    return torch.get_default_dtype() if params_dtype is None else params_dtype


def _handle(group: GroupCoordinator | None) -> _C.GroupCoordinator:
    return _C.get_tp_group() if group is None else group._handle


def _qkv_shape(hidden_size: int, head_size: int, total_q_heads: int, total_kv_heads: int | None) -> _C.QKVShape:
    return _C.QKVShape(hidden_size, head_size, total_q_heads,
                       total_q_heads if total_kv_heads is None else total_kv_heads)
