"""Writes a random Qwen2 checkpoint of the 0.5B shape in bf16. Runs with the transformers peer's interpreter.

usage: checkpoint.py FOLDER
"""

import pathlib
import sys

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

SHAPE = {"hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
         "intermediate_size": 4864, "vocab_size": 151936, "max_position_embeddings": 32768}


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(0)
    config = Qwen2Config(**SHAPE, tie_word_embeddings=True, rms_norm_eps=1e-6, bos_token_id=0, eos_token_id=None,
                         pad_token_id=None, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


if __name__ == "__main__":
    main()
