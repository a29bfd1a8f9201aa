"""`--quantize int8`: the same text in every layout, about half the bytes, and close to the weights it was made from."""

import json
import subprocess

import pytest
from headway_process import BINARY, generate, run
from tiny_model import write_model

PROMPT = ("--token-ids", "5,17,301,44", "--max-tokens", "24", "--ignore-eos")
INT8 = ("--quantize", "int8", "--device", "cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory):
    return write_model(tmp_path_factory.mktemp("quantize") / "tiny", q_heads=6, kv_heads=2)


def test_every_layout_gives_one_ranks_logits(model):
    """Scales that differed between layouts would move logits far more than verify allows in fp32."""
    done = subprocess.run([BINARY, "verify", "--model", model, *INT8, "--dtype", "fp32", "--layouts",
                           "2:2,3:3,4:2", "--tokens", "12", "--json"], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["layouts"]) == 3


def test_weights_take_a_quarter_of_fp32(model):
    plain, int8 = generate(model, *PROMPT, "--device", "cpu"), generate(model, *PROMPT, *INT8)
    ratio = int8["ranks"][0]["parameter_bytes"] / plain["ranks"][0]["parameter_bytes"]
    assert 0.25 < ratio < 0.30
    assert int8["ranks"][0]["bytes_read"] == plain["ranks"][0]["bytes_read"]


def test_unknown_kinds_are_refused(model):
    done = run(model, *PROMPT, "--quantize", "int3")
    assert done.returncode == 2 and "int3" in done.stderr and "int8" in done.stderr


def test_bench_counts_the_bytes_of_int8(model):
    def bytes_of(*options: str) -> int:
        done = subprocess.run([BINARY, "bench", "--model", model, "--prompt-tokens", "20", "--gen-tokens", "3",
                               "--repetitions", "1", "--json", *options], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["decode_bytes_per_step"]
    assert 0.25 < bytes_of(*INT8) / bytes_of("--device", "cpu") < 0.35
