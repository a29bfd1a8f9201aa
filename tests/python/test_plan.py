"""`headway plan` as a user runs it: its JSON, its text and its refusals."""

import pathlib

import pytest
from plan_process import SHAPES, plan_json, run_plan, write_model

@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    folder = tmp_path_factory.mktemp("models")
    return {name: write_model(folder, name) for name in SHAPES}


def test_json_of_a_given_layout(models):
    plan = plan_json(models["smollm2"], "--tp", "2", "--attn-tp", "2")
    assert (plan["tp"], plan["attn_tp"], plan["dtype"]) == (2, 2, "BF16")
    assert [rank["q_heads"] for rank in plan["ranks"]] == [[0, 4], [4, 9]]
    assert [rank["kv_heads"] for rank in plan["ranks"]] == [[0, 2], [1, 3]]
    assert [rank["mlp_columns"] for rank in plan["ranks"]] == [[0, 768], [768, 1536]]
    assert [rank["vocab_rows"] for rank in plan["ranks"]] == [[0, 24576], [24576, 49152]]
    assert [rank["kv_bytes_per_token"] for rank in plan["ranks"]] == [15360, 15360]


def test_dtype_scales_bytes(models):
    half, full = (plan_json(models["smollm2"], "--tp", "3", "--dtype", dtype) for dtype in ("fp16", "fp32"))
    for a, b in zip(half["ranks"], full["ranks"], strict=True):
        assert 2 * a["parameter_bytes"] == b["parameter_bytes"]


@pytest.mark.parametrize("model", SHAPES)
@pytest.mark.parametrize("objective", ["latency", "throughput", "memory"])
def test_search_covers_each_dimension_once(models, model, objective):
    plan = plan_json(models[model], "--world", "64", "--for", objective)
    assert len(plan["candidates"]) == 5
    assert plan["candidates"][0]["attn_tp"] == plan["attn_tp"]
    assert len(plan["ranks"]) == 64
    config = SHAPES[model]
    for field, total in (("mlp_columns", config["intermediate_size"]), ("q_heads", config["num_attention_heads"])):
        members = plan["ranks"] if field == "mlp_columns" else plan["ranks"][: plan["attn_tp"]]
        ends = [rank[field] for rank in members]
        assert ends[0][0] == 0 and ends[-1][1] == total
        assert all(left[1] == right[0] for left, right in zip(ends, ends[1:]))


def test_needs_no_more_than_config_json_as_a_file(models):
    assert plan_json(models["seven"] / "config.json", "--tp", "8")["model"] == "seven"


def test_text_has_no_colours_in_a_pipe(models):
    result = run_plan(models["seven"], "--world", "8", "--rank-memory", "24GiB", "--max-seqs", "16")
    assert result.returncode == 0
    assert "\x1b" not in result.stdout
    assert "26 legal layouts for 8 ranks" in result.stdout
    assert "28 query heads do not divide by 8" in result.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), ["--world", "--tp"]),
        (("--world", "29", "--attn-tp", "29"), ["28", "29", "lm_head_tp", "legal sizes"]),  # Fault case A01.
        (("--world", "8", "--tp", "4"), ["4", "8"]),
        (("--tp", "2", "--dtype", "int8"), ["int8", "bf16"]),
        (("--tp", "2", "--rank-memory", "24gigs"), ["--rank-memory", "24gigs", "GiB"]),
        (("--tp", "2", "--attn-replicas", "cp"), ["cp", "dp"]),
        (("--world", "100000",), ["100000", "1024"]),
    ],
)
def test_refusals_name_the_values(models, options, words):
    result = run_plan(models["seven"], *options)
    assert result.returncode == 2
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


def test_a_config_that_cannot_be_read_is_no_usage_error(tmp_path):
    (tmp_path / "config.json").write_text('{"hidden_size": 64, "architectures": ["Qwen2ForCausalLM"]}')
    for folder in (tmp_path, tmp_path / "absent"):
        result = run_plan(folder, "--tp", "2")
        assert result.returncode == 1
        assert str(folder) in result.stderr
