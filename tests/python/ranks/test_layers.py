"""headway.layers: shards, values and vLLM's ways of loading."""

import pytest
import torch
from values import random, sequence

import headway
from headway import distributed, layers

TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def test_state_dict_names_are_vllms_for_qwen2(tp):
    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv_proj = layers.AttnQKVParallelLinear(64, 16, 4, 2)
            self.o_proj = layers.AttnRowParallelLinear(64, 64, bias=False, total_q_heads=4)

    class Mlp(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate_up_proj = layers.MergedColumnParallelLinear(64, [128, 128], bias=False)
            self.down_proj = layers.RowParallelLinear(128, 64, bias=False)

    assert list(Attention().state_dict()) == ["qkv_proj.weight", "qkv_proj.bias", "o_proj.weight"]
    assert list(Mlp().state_dict()) == ["gate_up_proj.weight", "down_proj.weight"]


@pytest.mark.parametrize("heads", ((4, 4), (9, 3), (28, 4), (12, 2)))
def test_qkv_shards_are_whole_heads_of_each_section(tp, heads):  # Fault case B05.
    head_size, hidden = 2, 5
    total_q, total_kv = heads
    layer = layers.QKVParallelLinear(hidden, head_size, total_q, total_kv)
    rows = {"q": total_q * head_size, "k": total_kv * head_size, "v": total_kv * head_size}
    full = {name: sequence(count, hidden, start=10000 * i) for i, (name, count) in enumerate(rows.items())}
    bias = {name: sequence(count, start=1000 * i) for i, (name, count) in enumerate(rows.items())}
    for name in rows:
        layer.weight.weight_loader(layer.weight, full[name], name)
        layer.weight_loader(layer.bias, bias[name], name)
    held = {"q": layer.q_heads, "k": layer.kv_heads, "v": layer.kv_heads}
    cut = {name: slice(part.start * head_size, part.stop * head_size) for name, part in held.items()}
    assert layer.weight.equal(torch.cat([full[name][cut[name]] for name in rows]))
    assert layer.bias.equal(torch.cat([bias[name][cut[name]] for name in rows]))
    gathered = torch.cat([tp.broadcast(torch.tensor([layer.q_heads.start, layer.q_heads.stop]), r)
                          for r in range(tp.world_size)])
    assert gathered[0] == 0 and gathered[-1] == total_q and gathered[1:-1:2].equal(gathered[2::2])


def test_qkv_bias_of_rank(tp, size, rank):  # Fault case B04.
    if size != 2:
        pytest.skip("its values are those of 2 ranks")
    layer = layers.AttnQKVParallelLinear(3, 2, 4, 2)
    for name, count, start in (("q", 8, 0), ("k", 4, 100), ("v", 4, 200)):
        layer.weight_loader(layer.bias, sequence(count, start=start), name)
    expected = ([0, 1, 2, 3, 100, 101, 200, 201], [4, 5, 6, 7, 102, 103, 202, 203])
    assert layer.bias.tolist() == expected[rank]


def test_row_bias_is_added_once(tp, size):  # Fault case B01.
    layer = layers.AttnRowParallelLinear(4, 2, input_is_parallel=False, return_bias=False)
    layer.weight_loader(layer.weight, torch.tensor([[1.0, 0, 2, 1], [0, 1, 1, 3]]))
    layer.weight_loader(layer.bias, torch.tensor([10.0, -20.0]))
    assert layer(torch.tensor([[1.0, 2, 3, 4]])).tolist() == [[21, -3]]


@pytest.mark.parametrize("inner", (8, 37, 3))
@pytest.mark.parametrize("bias", (True, False))
def test_column_into_row_equals_one_rank(tp, inner, bias):
    up_weight, up_bias = random(inner, 6, seed=1), random(inner, seed=2)
    down_weight, down_bias = random(6, inner, seed=3), random(6, seed=4)
    up = layers.ColumnParallelLinear(6, inner, bias, return_bias=False)
    down = layers.RowParallelLinear(inner, 6, bias, return_bias=False)
    up.weight_loader(up.weight, up_weight)
    down.weight_loader(down.weight, down_weight)
    if bias:
        up.weight_loader(up.bias, up_bias)
        down.weight_loader(down.bias, down_bias)
    x = random(2, 3, 6, seed=5)
    expected = torch.nn.functional.linear(torch.nn.functional.linear(x, up_weight, up_bias if bias else None),
                                          down_weight, down_bias if bias else None)
    torch.testing.assert_close(down(up(x)), expected, **TOLERANCE)


def test_merged_columns_by_shard_id_and_fused(tp, size, rank):
    gate, up = sequence(6, 4), sequence(10, 4, start=1000)
    by_shard = layers.MergedColumnParallelLinear(4, [6, 10], bias=False, gather_output=True, return_bias=False)
    fused = layers.MergedColumnParallelLinear(4, [6, 10], bias=False)
    for shard_id, full in enumerate((gate, up)):
        by_shard.weight.weight_loader(by_shard.weight, full, shard_id)
    fused.weight_loader(fused.weight, torch.cat([gate, up]))
    assert by_shard.weight.equal(fused.weight)
    x = sequence(2, 4)
    assert by_shard(x).equal(x @ torch.cat([gate, up]).t())


def test_what_the_linears_return(tp):
    weight, bias, x = sequence(4, 4), sequence(4, start=50), sequence(3, 4)
    for skip in (False, True):
        for kind in (layers.ReplicatedLinear, layers.ColumnParallelLinear, layers.RowParallelLinear):
            options = {layers.ColumnParallelLinear: {"gather_output": True},
                       layers.RowParallelLinear: {"input_is_parallel": False}}.get(kind, {})
            layer = kind(4, 4, skip_bias_add=skip, **options)
            layer.weight_loader(layer.weight, weight)
            layer.weight_loader(layer.bias, bias)
            output, handed_out = layer(x)
            assert output.equal(x @ weight.t() + (0 if skip else bias)), kind
            assert handed_out.equal(bias) if skip else handed_out is None, kind


@pytest.mark.parametrize("vocab", (8, 321, 3))
@pytest.mark.parametrize("tied", (True, False))
def test_embedding_and_head_without_padding(tp, vocab, tied):  # Fault cases A09, A12.
    table, head_table = random(vocab, 6, seed=1), random(vocab, 6, seed=2)
    embedding = layers.VocabParallelEmbedding(vocab, 6)
    embedding.weight_loader(embedding.weight, table)
    head = layers.ParallelLMHead(vocab, 6)
    assert head.local_rows == embedding.local_rows
    if tied:
        head.tie_weights(embedding)
        assert head.weight is embedding.weight
    else:
        head.weight_loader(head.weight, head_table)
    ids = torch.arange(vocab).flip(0).view(1, vocab)
    assert embedding(ids).equal(table[ids])
    logits = head(embedding(ids))
    assert logits.shape == (1, vocab, vocab)
    torch.testing.assert_close(logits, table[ids] @ (table if tied else head_table).t(), **TOLERANCE)


def test_pytorch_and_the_layer_hold_one_parameter(tp):
    layer = layers.ReplicatedLinear(3, 2, bias=False, return_bias=False)
    x, weight = sequence(1, 3), sequence(2, 3, start=1)
    layer.load_state_dict({"weight": weight})
    assert layer(x).equal(x @ weight.t())
    layer.weight.data.mul_(2)
    assert layer(x).equal(x @ weight.t() * 2)
    layer.weight = torch.nn.Parameter(weight * 3, requires_grad=False)
    assert layer(x).equal(x @ weight.t() * 3)
    layer.to(torch.bfloat16)
    assert layer(x.bfloat16()).dtype == torch.bfloat16
    layer.float()
    layer.load_state_dict({"weight": weight * 5}, assign=True)
    assert layer(x).equal(x @ weight.t() * 5)


def test_tensors_pass_without_copies(tp):
    layer = layers.ReplicatedLinear(3, 2, bias=False)
    assert layer.weight.data_ptr() == layer._layer.parameter("weight").data_ptr()
    embedding = layers.VocabParallelEmbedding(8, 4)
    assert embedding.weight.data_ptr() == embedding._layer.parameter("weight").data_ptr()


def test_layers_keep_their_group(world, size):
    distributed.initialize_model_parallel(size)
    layer = layers.ColumnParallelLinear(2, 4, bias=False, gather_output=True, return_bias=False)
    layer.weight_loader(layer.weight, sequence(4, 2))
    distributed.destroy_model_parallel()
    assert layer(sequence(1, 2)).equal(sequence(1, 2) @ sequence(4, 2).t())


def test_wrong_use_is_refused_with_its_values(tp, size):
    layer = layers.QKVParallelLinear(4, 2, 4, 2)
    with pytest.raises(headway.ArgumentError, match=r'section "q": shape \[8, 4\] is expected, not \[3, 4\]'):
        layer.weight_loader(layer.weight, torch.zeros(3, 4), "q")
    with pytest.raises(headway.ArgumentError, match='"gate"'):
        layer.weight_loader(layer.weight, torch.zeros(8, 4), "gate")
    with pytest.raises(headway.ArgumentError, match="none of this QKVParallelLinear's"):
        layer.weight_loader(torch.nn.Parameter(torch.zeros(1)), torch.zeros(8, 4), "q")
    with pytest.raises(headway.ArgumentError, match=r"expected an input of \[tokens, 4\]"):
        layer(torch.zeros(2, 5))
    with pytest.raises(headway.ArgumentError, match="parameter weight is a contiguous tensor"):
        layer.weight = torch.nn.Parameter(torch.zeros(1, 4))
    with pytest.raises(headway.ArgumentError, match="token id 8 is outside the vocabulary of 8"):
        layers.VocabParallelEmbedding(8, 2)(torch.tensor([8]))
    if size > 1:
        with pytest.raises(headway.ConfigError, match="query heads"):
            layers.QKVParallelLinear(4, 2, 1, 1)
