"""`headway bench`: what it refuses, what it prints, and that its figures belong together."""

import json
import pathlib
import subprocess

import pytest
from headway_process import BINARY
from tiny_model import write_config, write_model

SMALL = ("--prompt-tokens", "40", "--gen-tokens", "6", "--repetitions", "2")
KEYS = ("decode_tokens_per_s", "prefill_tokens_per_s", "decode_limit_tokens_per_s", "prefill_limit_tokens_per_s",
        "decode_ratio", "prefill_ratio", "read_gb_per_s")


def bench(model: pathlib.Path, *options: str, seconds: int = 120) -> subprocess.CompletedProcess:
    return subprocess.run([str(BINARY), "bench", "--model", str(model), *options], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=seconds)


def report(model: pathlib.Path, *options: str) -> dict:
    done = bench(model, *SMALL, "--device", "cpu", "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_model(tmp_path_factory.mktemp("bench") / "tiny")


@pytest.fixture(scope="module")
def config_only(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_config(tmp_path_factory.mktemp("bench") / "config")


@pytest.mark.parametrize("options, named", [
    (("--prompt-tokens", "0"), ("--prompt-tokens is 0",)),
    (("--gen-tokens", "1"), ("--gen-tokens is 1", "2")),
    (("--batch", "0"), ("--batch is 0",)),
    (("--repetitions", "0"), ("--repetitions is 0",)),
    (("--prompt-tokens", "500", "--gen-tokens", "13"), ("500", "13", "512")),
    (("--tp", "2", "--attn-tp", "3"), ("3", "2")),
])
def test_bad_options_are_refused_with_their_values(config_only, options, named):
    done = bench(config_only, *options, seconds=10)
    assert done.returncode == 2 and done.stdout == ""
    text = done.stderr.split("headway: error: ")[1]
    assert all(name in text for name in named), text


def test_weights_that_are_missing_are_an_error(config_only):
    done = bench(config_only, *SMALL)
    assert done.returncode == 1 and "safetensors" in done.stderr


@pytest.mark.parametrize("options, ranks", [((), 1), (("--tp", "2", "--threads", "1"), 2), (("--batch", "3"), 1)])
def test_the_figures_belong_together(model, options, ranks):
    found = report(model, *options)
    assert all(found[key] > 0 for key in KEYS)
    for phase in ("decode", "prefill"):
        rate, ratio = (found[f"{phase}_{what}"] for what in ("tokens_per_s", "ratio"))
        assert found[f"{phase}_tokens_per_s_least"] <= rate <= found[f"{phase}_tokens_per_s_most"]
        assert found[f"{phase}_ratio_least"] <= ratio <= found[f"{phase}_ratio_most"]
    assert found["tp"] == ranks and found["prompt_tokens"] == 40 and found["gen_tokens"] == 6
    # Everything but the embedding table, which the LM head does not share, and K and V of 43 tokens on average: the
    # contexts of the five steps are 41 to 45.
    batch = 3 if "--batch" in options else 1
    hidden, inner, vocab, kv = 64, 128, 320, 32
    layer = hidden * (hidden + 2 * kv) + hidden + 2 * kv + hidden * hidden + 3 * hidden * inner + 2 * hidden
    copies = hidden * (ranks - 1) * (2 * 2 + 1)  # each rank has all norms
    weights = 2 * layer + hidden + vocab * hidden + copies
    assert found["decode_bytes_per_step"] == 4 * (weights + batch * 43 * 2 * 2 * kv)


def test_random_weights_need_a_config_alone(config_only):
    found = report(config_only, "--random-weights", "--dtype", "bf16")
    assert found["dtype"] == "bf16" and all(found[key] > 0 for key in KEYS)


def test_a_profile_covers_every_rank_and_operator(model, tmp_path):
    trace = tmp_path / "trace.json"
    done = bench(model, *SMALL, "--device", "cpu", "--tp", "2", "--threads", "1", "--profile", str(trace))
    assert done.returncode == 0, done.stderr
    for text in ("tokens/s", "limit", "decode, rank 0", "paged_attention", "all_reduce on tp", "between operators"):
        assert text in done.stdout
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    for rank in (0, 1):
        own = [event["name"] for event in events if event["pid"] == rank]
        assert own.count("step") == 6
        assert own.count("paged_attention") == 6 * 2
        # Gate and up columns of half the MLP; rank 0 has the first 128 of the vocabulary's 320 rows as well.
        assert own.count("linear 64 -> 128") == 6 * 2 + (6 if rank == 0 else 0)
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in events)


def test_a_profile_that_cannot_be_written_is_an_error(model, tmp_path):
    done = bench(model, *SMALL, "--device", "cpu", "--profile", str(tmp_path / "no" / "trace.json"))
    assert done.returncode == 1 and "trace.json cannot be written" in done.stderr
