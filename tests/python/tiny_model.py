"""A random Qwen2 checkpoint of a few kilobytes, without a tokenizer, for tests of the command line."""

import json
import pathlib

import numpy
from safetensors.numpy import save_file

VOCAB = 320


def config(q_heads: int = 4, kv_heads: int = 2, head_dim: int = 16, positions: int = 512) -> dict:
    hidden = q_heads * head_dim
    return {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "torch_dtype": "float32",
        "hidden_size": hidden, "intermediate_size": 2 * hidden, "num_hidden_layers": 2, "hidden_act": "silu",
        "num_attention_heads": q_heads, "num_key_value_heads": kv_heads, "vocab_size": VOCAB,
        "max_position_embeddings": positions, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": False,
    }


def shapes(model: dict) -> dict[str, tuple[int, ...]]:
    hidden, inner = model["hidden_size"], model["intermediate_size"]
    kv = hidden // model["num_attention_heads"] * model["num_key_value_heads"]
    found = {"model.embed_tokens.weight": (VOCAB, hidden), "lm_head.weight": (VOCAB, hidden),
             "model.norm.weight": (hidden,)}
    for i in range(model["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        for name, rows in (("q", hidden), ("k", kv), ("v", kv)):
            found[f"{layer}self_attn.{name}_proj.weight"] = (rows, hidden)
            found[f"{layer}self_attn.{name}_proj.bias"] = (rows,)
        found |= {layer + "self_attn.o_proj.weight": (hidden, hidden), layer + "mlp.gate_proj.weight": (inner, hidden),
                  layer + "mlp.up_proj.weight": (inner, hidden), layer + "mlp.down_proj.weight": (hidden, inner),
                  layer + "input_layernorm.weight": (hidden,), layer + "post_attention_layernorm.weight": (hidden,)}
    return found


def write_config(folder: pathlib.Path, **options: int) -> pathlib.Path:
    """A folder with config.json alone."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config(**options)))
    return folder


def write_model(folder: pathlib.Path, **options: int) -> pathlib.Path:
    write_config(folder, **options)
    random = numpy.random.default_rng(1)
    tensors = {name: random.normal(scale=0.2, size=shape).astype(numpy.float32)
               for name, shape in shapes(config(**options)).items()}
    save_file(tensors, folder / "model.safetensors")
    return folder


def total_bytes(**options: int) -> int:
    return sum(4 * int(numpy.prod(shape)) for shape in shapes(config(**options)).values())
