"""Turns a Qwen2 safetensors folder into a GGUF file of bf16 weights without a tokenizer, for llama.cpp. Runs with the
llama.cpp peer's interpreter.

usage: gguf_checkpoint.py FOLDER FILE
"""

import json
import pathlib
import struct
import sys

import gguf
import numpy

BF16_FILE_TYPE = 32
LAYER_NAMES = {
    "input_layernorm.weight": "attn_norm.weight", "post_attention_layernorm.weight": "ffn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight", "self_attn.q_proj.bias": "attn_q.bias",
    "self_attn.k_proj.weight": "attn_k.weight", "self_attn.k_proj.bias": "attn_k.bias",
    "self_attn.v_proj.weight": "attn_v.weight", "self_attn.v_proj.bias": "attn_v.bias",
    "self_attn.o_proj.weight": "attn_output.weight", "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight", "mlp.down_proj.weight": "ffn_down.weight",
}


def bf16_tensors(path: pathlib.Path):
    """Names, shapes and raw 16-bit values of a safetensors file that holds nothing but bf16."""
    data = numpy.memmap(path, dtype=numpy.uint8, mode="r")
    length = struct.unpack("<Q", data[:8])[0]
    for name, info in json.loads(bytes(data[8:8 + length])).items():
        if name == "__metadata__":
            continue
        assert info["dtype"] == "BF16", name
        begin, end = (8 + length + offset for offset in info["data_offsets"])
        yield name, info["shape"], numpy.frombuffer(data[begin:end].tobytes(), dtype=numpy.uint16)


def gguf_name(name: str) -> str:
    name = name.removeprefix("model.")
    if name == "embed_tokens.weight":
        return "token_embd.weight"
    if name == "norm.weight":
        return "output_norm.weight"
    _, layer, rest = name.split(".", 2)
    return f"blk.{layer}.{LAYER_NAMES[rest]}"


def write_header(writer: gguf.GGUFWriter, config: dict) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(BF16_FILE_TYPE)
    writer.add_tokenizer_model("none")


def main() -> None:
    folder, output = map(pathlib.Path, sys.argv[1:])
    writer = gguf.GGUFWriter(output, "qwen2")
    write_header(writer, json.loads((folder / "config.json").read_text()))
    for name, shape, values in bf16_tensors(folder / "model.safetensors"):
        if len(shape) == 1:  # norms and biases are fp32 in GGUF files
            floats = (values.astype(numpy.uint32) << 16).view(numpy.float32)
            writer.add_tensor(gguf_name(name), floats)
        else:
            rows = values.view(numpy.uint8).reshape(shape[0], 2 * shape[1])
            writer.add_tensor(gguf_name(name), rows, raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
