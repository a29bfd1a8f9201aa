"""Runs `headway plan` on shapes of published models."""

import json
import pathlib
import subprocess

from headway_process import BINARY

SHAPES = {
    "smollm2": dict(hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
                    num_key_value_heads=3, vocab_size=49152, tie_word_embeddings=True),
    "seven": dict(hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28,
                  num_key_value_heads=4, vocab_size=152064, tie_word_embeddings=False),
    "seventy-two": dict(hidden_size=8192, intermediate_size=29568, num_hidden_layers=80, num_attention_heads=64,
                        num_key_value_heads=8, vocab_size=152064, tie_word_embeddings=False),
}


def write_model(folder: pathlib.Path, name: str) -> pathlib.Path:
    folder = folder / name
    folder.mkdir()
    config = SHAPES[name] | dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", torch_dtype="bfloat16",
                                 max_position_embeddings=32768, rms_norm_eps=1e-6, rope_theta=1e6, hidden_act="silu")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def run_plan(model: pathlib.Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, "plan", "--model", model, *options], capture_output=True, text=True, timeout=30)


def plan_json(model: pathlib.Path, *options: str) -> dict:
    result = run_plan(model, *options, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
