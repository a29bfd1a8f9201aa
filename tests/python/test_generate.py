"""`headway generate`: what it refuses, what it prints, and that ranks and seeds do not change a text."""

import json
import pathlib
import subprocess

import pytest
from headway_process import generate, run
from safetensors.numpy import load_file, save_file
from tiny_model import VOCAB, total_bytes, write_config, write_model

PROMPT = ("--token-ids", "5,17,301,44")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_model(tmp_path_factory.mktemp("generate") / "tiny")


@pytest.fixture(scope="module")
def config_only(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """28 heads and no weights: what is refused here was refused before any weight was looked for."""
    return write_config(tmp_path_factory.mktemp("generate") / "t28", q_heads=28, kv_heads=4, head_dim=4)


def refusal(done: subprocess.CompletedProcess, code: int) -> str:
    """The text of the only error of a run that printed nothing else of value."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("headway: error: ") == 1, done.stderr
    return done.stderr.split("headway: error: ")[1]


@pytest.mark.parametrize("options, named", [
    (("--tp", "29", "--attn-tp", "29"), ("28", "29", "lm_head_tp")),  # Fault case A01.
    (("--tp", "4", "--attn-tp", "3"), ("3", "4", "1, 2, 4")),
    (("--tp", "0"), ("--tp is 0",)),
    (("--attn-replicas", "cp"), ("cp", "replicate")),
    (("--embedding-group", "world"), ("world", "lm_head_tp")),
    (("--dtype", "int8"), ("int8", "bf16")),
    (("--device", "tpu"), ("tpu", "cuda")),
    (("--temperature", "-1"), ("temperature is -1",)),  # Fault case D05.
    (("--temperature", "nan"), ("temperature is nan",)),
    (("--top-k", "-2"), ("top_k is -2",)),  # Fault case E23.
    (("--top-p", "0"), ("top_p is 0",)),
    (("--max-tokens", "0"), ("max_tokens is 0",)),
    (("--max-tokens", "many"), ("many", "--max-tokens")),
    (("--kv-blocks", "0"), ("--kv-blocks is 0",)),
    (("--threads", "0"), ("--threads is 0",)),
    (("--collective-timeout", "0"), ("--collective-timeout is 0",)),
    (("--max-model-len", "513"), ("max_model_len is 513", "512")),
    (("--max-model-len", "1"), ("max_model_len is 1",)),
    (("--prompt", "beside the ids"), ("--prompt", "--token-ids")),
    (("--chat",), ("--chat", "--token-ids")),
])
def test_bad_options_are_refused_with_their_values(config_only, options, named):
    text = refusal(run(config_only, *PROMPT, *options, seconds=10), 2)
    assert all(name in text for name in named), text


@pytest.mark.parametrize("ids, named", [
    ("5279552648203111001", "5279552648203111001"),  # Fault case F09.
    ("-1", "-1"),
    (str(VOCAB), str(VOCAB)),
    ("1.5", "1.5"),
    ("a", "a"),
    (",".join(["7"] * 600), "600 tokens"),  # Fault case E12: both numbers, none of them negative.
])
def test_bad_prompts_are_refused(config_only, ids, named):
    text = refusal(run(config_only, "--token-ids", ids), 2)
    assert named in text
    if "600" in named:
        assert "512" in text and "-" not in text.replace("--", "")


def test_prompt_and_new_tokens_over_the_limit(config_only):  # Fault case E13.
    text = refusal(run(config_only, "--token-ids", ",".join(["7"] * 8), "--max-tokens", "505"), 2)
    assert all(number in text for number in ("8", "505", "512"))


def test_a_missing_folder_is_no_usage_error(tmp_path):
    assert "absent" in refusal(run(tmp_path / "absent", *PROMPT), 1)


@pytest.mark.parametrize("tp", (1, 2))
def test_missing_weights_are_reported_once(config_only, tp):
    assert "safetensors" in refusal(run(config_only, *PROMPT, "--tp", str(tp)), 1).splitlines()[0]


# Fault case B12: a shard that the index names is absent; all ranks say so and end, as every rank would.
def test_an_absent_shard_ends_all_ranks(model, tmp_path):
    folder = write_config(tmp_path / "two-shards")
    tensors = load_file(model / "model.safetensors")
    files = {name: f"model-{i % 2 + 1:05d}-of-00002.safetensors" for i, name in enumerate(sorted(tensors))}
    first = "model-00001-of-00002.safetensors"
    save_file({name: tensor for name, tensor in tensors.items() if files[name] == first}, folder / first)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    for tp in ("1", "2"):
        text = refusal(run(folder, *PROMPT, "--tp", tp), 1)
        assert "model.safetensors.index.json" in text and "model-00002-of-00002.safetensors" in text


def test_a_refused_prompt_ends_all_ranks_with_one_message(config_only):
    assert "600 tokens" in refusal(run(config_only, "--token-ids", ",".join(["7"] * 600), "--tp", "2"), 2)


def test_a_cache_that_ends_the_text_is_said(model):
    done = run(model, *PROMPT, "--max-tokens", "40", "--kv-blocks", "1", "--json", "--tp", "2")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["completion_tokens"], result["finish_reason"]) == (13, "length")
    assert "KV cache holds 16 tokens (1 blocks of 16)" in done.stderr and "where 40 are allowed" in done.stderr


@pytest.mark.parametrize("tp", (1, 2))
def test_a_prompt_that_the_cache_cannot_hold_is_refused(model, tp):
    done = run(model, "--token-ids", ",".join(["7"] * 20), "--kv-blocks", "1", "--tp", str(tp))
    assert "the prompt has 20 tokens, but the KV cache holds 16 (1 blocks of 16)" in refusal(done, 2)


def test_json_tells_what_every_rank_holds_and_read(model):
    done = run(model, *PROMPT, "--max-tokens", "12", "--tp", "2", "--attn-tp", "1", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result.keys() == {"token_ids", "text", "finish_reason", "prompt_tokens", "completion_tokens",
                             "prefill_tokens_per_s", "decode_tokens_per_s", "load_seconds", "ranks"}
    assert len(result["token_ids"]) == result["completion_tokens"] == 12
    assert (result["prompt_tokens"], result["finish_reason"], result["text"]) == (4, "length", None)
    assert min(result["prefill_tokens_per_s"], result["decode_tokens_per_s"], result["load_seconds"]) > 0
    assert [rank["rank"] for rank in result["ranks"]] == [0, 1]
    for rank in result["ranks"]:
        assert (rank["q_heads"], rank["kv_heads"]) == ([0, 4], [0, 2])
        assert total_bytes() / 2 < rank["bytes_read"] == rank["parameter_bytes"] < total_bytes()
        assert rank["peak_rss_bytes"] > 1 << 20
    assert "2 ranks, launched by headway" in done.stderr
    assert "2 replicas (replicate)" in done.stderr


def test_without_a_tokenizer_the_ids_are_the_text(model):
    done = run(model, *PROMPT, "--max-tokens", "7")
    assert done.returncode == 0, done.stderr
    assert [int(word) for word in done.stdout.split(",")] == generate(model, *PROMPT, "--max-tokens", "7")["token_ids"]
    assert "one rank" in done.stderr and "tokens/s" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr  # no terminal, no colours


def test_text_without_a_tokenizer_is_refused(model):
    assert "tokenizer.json" in refusal(run(model, "--prompt", "hello"), 2)


@pytest.mark.parametrize("sampling", [(), ("--temperature", "0.9", "--seed", "42"),
                                      ("--temperature", "1.3", "--seed", "7", "--top-k", "40", "--top-p", "0.95")])
def test_ranks_do_not_change_the_tokens(model, sampling):
    options = (*PROMPT, "--max-tokens", "40", "--ignore-eos", *sampling)
    alone = generate(model, *options)["token_ids"]
    assert len(set(alone)) > 5
    for tp, attn_tp, replicas in ((2, 2, "replicate"), (3, 3, "replicate"), (2, 1, "replicate"), (2, 1, "dp")):
        layout = ("--tp", str(tp), "--attn-tp", str(attn_tp), "--attn-replicas", replicas)
        assert generate(model, *options, *layout)["token_ids"] == alone


def test_seeds_and_their_absence(model):
    options = (*PROMPT, "--max-tokens", "30", "--temperature", "1.5")
    texts = [generate(model, *options, *seed)["token_ids"] for seed in (("--seed", "1"), ("--seed", "2"), (), ())]
    assert len({tuple(text) for text in texts}) == 4


@pytest.mark.parametrize("level, shown, named", [("error", False, False), ("info", True, False), ("loud", True, True)])
def test_the_log_is_as_loud_as_asked_for(model, monkeypatch, level, shown, named):
    monkeypatch.setenv("HEADWAY_LOG", level)
    done = run(model, *PROMPT, "--max-tokens", "2")
    assert done.returncode == 0, done.stderr
    assert ("one rank, without a launcher" in done.stderr) == shown
    assert ('warning: HEADWAY_LOG is "loud", not one of debug, info, warning, error' in done.stderr) == named
