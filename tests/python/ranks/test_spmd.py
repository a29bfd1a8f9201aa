"""headway.spmd: what a mesh holds, and that sharding a model does not change its results."""

import pytest
import torch
from values import random, sequence

import headway
from headway import layers, spmd

NO_BIAS = {"bias": False}


@pytest.fixture
def mesh(alone, size) -> spmd.DeviceMesh:
    return spmd.DeviceMesh((size,), ("x",))


def filled(layer, scale: float = 1.0):
    """The layer with a random value in each element, the same on every rank."""
    for i, parameter in enumerate(layer.parameters()):
        parameter.data.copy_(random(*parameter.shape, seed=i) * scale)
    return layer


def of_all_ranks(mesh, mine):
    """Every rank's object, in rank order."""
    group = mesh.group("x")
    return [group.broadcast_object(mine, r) for r in range(group.world_size)]


def test_the_order_of_the_spec_decides_the_cut(alone, size):  # Fault case G01.
    mesh = spmd.DeviceMesh((1, size), ("data", "model"))
    full = sequence(64 * size, 32 * size)
    assert spmd.mark_sharding(full, mesh, ("data", "model")).local.shape == (64 * size, 32)
    assert spmd.mark_sharding(full, mesh, ("model", "data")).local.shape == (64, 32 * size)
    assert spmd.mark_sharding(full, mesh, ("model", None)).spec == spmd.PartitionSpec("model", None)


@pytest.mark.parametrize("spec, named", [
    (("x", None), "2 entries for a tensor of 1 dimensions"), (("y",), '"y" is not one of the mesh\'s axes: x'),
    ((("x", "x"),), 'uses axis "x" twice'),
])
def test_specs_that_do_not_fit_are_refused(mesh, spec, named):  # Fault case G02.
    with pytest.raises(headway.ArgumentError, match=named):
        spmd.mark_sharding(sequence(8), mesh, spec)


@pytest.mark.parametrize("rows", (1, 2, 3, 5, 20))
def test_empty_shards_have_offsets_and_gather_back(mesh, size, rank, rows):  # Fault case G06.
    full = sequence(rows, 3, start=7)
    sharded = spmd.mark_sharding(full, mesh, ("x", None))
    assert sharded.global_shape == (rows, 3)
    begin, end = sharded.offsets[0], sharded.offsets[0] + sharded.local.shape[0]
    assert sharded.local.equal(full[begin:end])
    parts = of_all_ranks(mesh, (begin, end))
    if rows == 1:  # a dimension of one is never cut
        assert parts == [(0, 1)] * size
    else:
        assert [parts[0][0], *(end for _, end in parts)] == [*(begin for begin, _ in parts), rows]
        assert sum(begin == end for begin, end in parts) == max(0, size - rows)
    assert sharded.full_tensor().equal(full)


def test_meshes_larger_and_smaller_than_the_world(alone, size, rank):  # Fault case G07.
    with pytest.raises(headway.ConfigError, match=f"needs 9 ranks; the world has {size}"):
        spmd.DeviceMesh((9,), ("x",))
    if size == 1:
        return
    mesh = spmd.DeviceMesh((2,), ("x",))
    assert mesh.contains_self() == (rank < 2)
    if rank < 2:
        assert mesh.group("x").ranks == [0, 1] and mesh.coordinates() == (rank,)
        assert spmd.mark_sharding(sequence(11), mesh, ("x",)).full_tensor().equal(sequence(11))
    else:
        with pytest.raises(headway.ArgumentError, match="outside the mesh"):
            mesh.coordinates()


@pytest.mark.parametrize("axes", (("a", "b"), ("b", "a")))
def test_two_axes_on_one_dimension(alone, size, axes):  # Fault case G13.
    if size % 2:
        pytest.skip("needs an even number of ranks")
    mesh = spmd.DeviceMesh((size // 2, 2), ("a", "b"))
    sharded = spmd.mark_sharding(sequence(6), mesh, (axes,))
    assert sharded.local.tolist() == [sharded.offsets[0] + i for i in range(len(sharded.local))]
    assert sharded.full_tensor().equal(sequence(6))


def test_a_dimension_of_one_is_never_cut(mesh):  # Fault case G11.
    assert spmd.mark_sharding(sequence(1, 4), mesh, ("x", None)).local.equal(sequence(1, 4))


@pytest.mark.parametrize("heads, head_size, hidden, options, dtype", [
    ((32, 8), 128, 4096, NO_BIAS, torch.bfloat16),  # the original's own case
    ((12, 2), 4, 48, {}, torch.float32), ((9, 3), 4, 36, {}, torch.float32),
    ((9, 3), 4, 36, {"skip_bias_add": True}, torch.float32),
    ((9, 3), 4, 36, {"skip_bias_add": True, "return_bias": False}, torch.float32),
    ((9, 3), 4, 36, {"return_bias": False}, torch.float32),
    ((9, 3), 4, 36, NO_BIAS | {"skip_bias_add": True}, torch.float32),
])
def test_spmd_qkv_equals_the_plain_one(mesh, heads, head_size, hidden, options, dtype):
    plain = filled(layers.QKVParallelLinear(hidden, head_size, *heads, params_dtype=dtype, **options), 0.02)
    x = random(10, hidden, seed=11).to(dtype)
    expected = plain(x)
    for over in (None, mesh):
        sharded = spmd.XlaQKVParallelLinear(plain, over)
        assert list(sharded.state_dict()) == [f"{section}_{kind}" for section in "qkv" for kind in ("weight", "bias")
                                              if kind == "weight" or plain.bias is not None]
        actual = sharded(x)
        if not options.get("return_bias", True):
            torch.testing.assert_close(actual, expected)
            continue
        torch.testing.assert_close(actual[0], expected[0])
        assert (actual[1] is None) == (expected[1] is None)
        assert actual[1] is None or actual[1].equal(expected[1])


def test_biases_are_cut_with_their_heads_and_added_once(mesh, size, rank):  # Fault cases G08, B01 and B04 under a mesh.
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = layers.QKVParallelLinear(1, 2, 4, 2)
            self.row = layers.RowParallelLinear(4, 2, return_bias=False)

    block = Block()
    for name, count, start in (("q", 8, 0), ("k", 4, 100), ("v", 4, 200)):
        block.qkv.weight_loader(block.qkv.bias, sequence(count, start=start), name)
    block.row.weight_loader(block.row.weight, torch.tensor([[1.0, 0, 2, 1], [0, 1, 1, 3]]))
    block.row.weight_loader(block.row.bias, torch.tensor([10.0, -20.0]))
    spmd.shard_model(block, mesh)
    assert block.row(torch.tensor([[1.0, 2, 3, 4]])).tolist() == [[21, -3]]
    if size == 2:
        assert block.qkv.q_bias.tolist() == ([0, 1, 2, 3], [4, 5, 6, 7])[rank]
        assert block.qkv.k_bias.tolist() == ([100, 101], [102, 103])[rank]
        assert block.qkv.v_bias.tolist() == ([200, 201], [202, 203])[rank]


def test_a_shard_of_rank_one_is_not_that_of_rank_zero(mesh, size, rank):  # Fault case B05 under a mesh.
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = layers.QKVParallelLinear(8, 2, 4, 4)
            self.gate_up = layers.MergedColumnParallelLinear(8, [16, 16])

    block = Block()
    weights = {name: torch.arange(rows).view(-1, 1) * 1000.0 + torch.arange(8) + start
               for name, rows, start in (("q", 8, 0.25), ("k", 8, 0.5), ("v", 8, 0.75), ("0", 16, 0.1), ("1", 16, 0.2))}
    for name in "qkv":
        block.qkv.weight_loader(block.qkv.weight, weights[name], name)
    for name in "01":
        block.gate_up.weight_loader(block.gate_up.weight, weights[name], int(name))
    spmd.shard_model(block, mesh)
    for name in "qkv":
        parts = of_all_ranks(mesh, getattr(block.qkv, name + "_weight").data)
        assert torch.cat(parts).equal(weights[name])
        assert size == 1 or not parts[1].equal(parts[0])
    parts = of_all_ranks(mesh, block.gate_up.weight.data)
    assert torch.cat([part[:len(part) // 2] for part in parts]).equal(weights["0"])
    assert torch.cat([part[len(part) // 2:] for part in parts]).equal(weights["1"])


@pytest.mark.parametrize("inner", (1, 2, 5, 6, 37))
def test_column_into_row_is_the_unsharded_result(mesh, inner):  # Fault case G04.
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = layers.ColumnParallelLinear(3, inner, return_bias=False)
            self.down = layers.RowParallelLinear(inner, 3, return_bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.down(torch.nn.functional.silu(self.up(x)))

    block = filled(Block())
    x = random(2, 4, 3, seed=9)
    expected = block(x)
    spmd.shard_model(block, mesh)
    torch.testing.assert_close(block(x), expected, rtol=1e-5, atol=1e-5)


class Tiny(torch.nn.Module):
    """A model with every kind of layer."""

    def __init__(self, tied: bool, vocab: int = 321) -> None:
        super().__init__()
        self.embed_tokens = layers.VocabParallelEmbedding(vocab, 16)
        self.norm = torch.nn.LayerNorm(16)
        self.qkv_proj = layers.AttnQKVParallelLinear(16, 2, 8, 2, return_bias=False)
        self.o_proj = layers.AttnRowParallelLinear(16, 16, bias=False, return_bias=False, total_q_heads=8)
        self.gate_up_proj = layers.MergedColumnParallelLinear(16, [24, 24], bias=False, return_bias=False)
        self.down_proj = layers.RowParallelLinear(24, 16, bias=False, return_bias=False)
        self.lm_head = layers.ParallelLMHead(vocab, 16)
        if tied:
            self.lm_head.tie_weights(self.embed_tokens)

    @torch.no_grad()
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.embed_tokens(ids))
        q, k, v = self.qkv_proj(x).split([16, 4, 4], dim=-1)
        x = x + self.o_proj(q * torch.cat([k + v] * 4, dim=-1))
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.lm_head(x + self.down_proj(gate * up))


@pytest.mark.parametrize("tied", (True, False))
def test_a_model_keeps_its_results_and_its_report_tells_the_bytes(mesh, size, rank, tied):  # Fault cases G10, G11.
    model = filled(Tiny(tied), 0.3)
    ids = torch.arange(20).view(2, 10) * 13
    expected = model(ids)
    report = {row.name: row for row in spmd.shard_model(model, mesh)}
    torch.testing.assert_close(model(ids), expected, rtol=1e-4, atol=1e-4)
    assert (model.lm_head.weight is model.embed_tokens.weight) == tied
    assert [name for name, row in report.items() if not row.sharded] == ["norm"]
    q = (rank + 1) * 8 // size - rank * 8 // size
    first, last = rank * 8 // size // 4, ((rank + 1) * 8 // size - 1) // 4
    assert report["qkv_proj"].local_bytes == (q + 2 * (last - first + 1)) * 2 * (16 + 1) * 4
    assert report["qkv_proj"].global_bytes == 24 * 17 * 4
    assert report["o_proj"].local_bytes == q * 2 * 16 * 4 and report["o_proj"].spec == "(None, x)"
    for name, whole in (("gate_up_proj", 48 * 16), ("down_proj", 24 * 16), ("embed_tokens", 321 * 16),
                        ("lm_head", 0 if tied else 321 * 16)):
        assert report[name].global_bytes == whole * 4, name
        total = mesh.group("x").all_reduce(torch.tensor([report[name].local_bytes])).item()
        assert total == whole * 4, name
        assert size == 1 or report[name].local_bytes < whole * 4 or whole == 0, name
    assert report["embed_tokens"].spec == "(x, None)"
    assert report["norm"].local_bytes == report["norm"].global_bytes == 2 * 16 * 4


def test_a_tied_head_may_come_before_its_embedding(mesh):
    model = filled(Tiny(True, vocab=10))
    reordered = torch.nn.Sequential(model.lm_head, model.embed_tokens)
    spmd.shard_model(reordered, mesh)
    assert reordered[0].weight is reordered[1].weight


def test_top_level_modules_are_not_wrapped(mesh):
    with pytest.raises(headway.ConfigError, match="^Top Level module is not expected to be wrapped.$"):
        spmd.shard_model(layers.ColumnParallelLinear(2, 2), mesh)


def test_layers_of_several_ranks_are_refused(tp, size):
    if size == 1:
        pytest.skip("needs two ranks")
    mesh = spmd.DeviceMesh((size,), ("x",))
    cut_already = layers.QKVParallelLinear(16, 2, 8, 8)
    with pytest.raises(headway.ConfigError, match="^TP > 1 is only supported under SPMD.$"):
        spmd.SpmdQKVParallelLinear(cut_already, mesh)
    with pytest.raises(headway.ConfigError, match="TP > 1"):
        spmd.partition_row_parallel_linear(layers.RowParallelLinear(8, 8), mesh)


def test_users_may_register_modules(mesh):
    class Doubling(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

    class Subclass(Doubling):
        pass

    name = spmd.get_fqn(Doubling())
    spmd.MODULE_TYPE_TO_WRAPPING_FUNC[name] = lambda module, _: torch.nn.Linear(2, 2)
    try:
        model = torch.nn.Sequential(Subclass(), torch.nn.ReLU())
        report = spmd.shard_model(model, mesh)
    finally:
        del spmd.MODULE_TYPE_TO_WRAPPING_FUNC[name]
    assert isinstance(model[0], torch.nn.Linear)
    assert [(row.name, row.type, row.sharded, row.local_bytes) for row in report] == [("0", "Linear", True, 24)]
    assert list(spmd.MODULE_TYPE_TO_WRAPPING_FUNC) == [
        "QKVParallelLinear", "MergedColumnParallelLinear", "ColumnParallelLinear", "RowParallelLinear",
        "VocabParallelEmbedding", "ParallelLMHead"]


def test_only_qkv_layers_are_split_into_three(mesh):
    with pytest.raises(headway.ArgumentError, match="not a ColumnParallelLinear"):
        spmd.SpmdQKVParallelLinear(layers.ColumnParallelLinear(2, 2), mesh)
