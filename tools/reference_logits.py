"""Writes what Hugging Face transformers computes for some prompts, for `headway verify --reference`.

usage: reference_logits.py MODEL PROMPTS OUT [--tokens 64] [--dtype float32]

MODEL is a folder with config.json and safetensors files. PROMPTS holds one prompt a line or, if its name ends in .json,
a list whose entries are texts or lists of token ids. OUT becomes a safetensors file that holds for each prompt p
from 0 on
  prompt.<p>.token_ids  I64 [n]             the prompt
  prompt.<p>.greedy     I64 [m]             the greedy tokens after it; an end-of-sequence token does not end them
  prompt.<p>.logits     F32 [n + m - 1, v]  after each token of the prompt and each greedy token but the last
"""

import argparse
import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def read_prompts(path: pathlib.Path) -> list[str | list[int]]:
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


def token_ids(prompts: list[str | list[int]], model: pathlib.Path) -> list[list[int]]:
    if not any(isinstance(prompt, str) for prompt in prompts):
        return prompts
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    return [tokenizer.encode(prompt).ids if isinstance(prompt, str) else prompt for prompt in prompts]


def trace(model: torch.nn.Module, prompt: list[int], new_tokens: int) -> dict[str, torch.Tensor]:
    inputs, cache = torch.tensor([prompt]), None
    logits, greedy = [], []
    for _ in range(new_tokens):
        output = model(inputs, past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        logits.append(output.logits[0].float())
        inputs = logits[-1][-1:].argmax(-1, keepdim=True)
        greedy.append(inputs[0])
    return {"token_ids": torch.tensor(prompt), "greedy": torch.cat(greedy), "logits": torch.cat(logits)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("prompts", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="what transformers computes in")
    arguments = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=DTYPES[arguments.dtype]).eval()
    tensors = {}
    with torch.inference_mode():
        for p, prompt in enumerate(token_ids(read_prompts(arguments.prompts), arguments.model)):
            tensors |= {f"prompt.{p}.{name}": tensor for name, tensor in trace(model, prompt, arguments.tokens).items()}
    save_file(tensors, arguments.out)


if __name__ == "__main__":
    main()
