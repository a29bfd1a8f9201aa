"""SmolLM2-135M in fp32 on 1, 2 and 3 ranks: the tokens that transformers chooses."""

import functools

import pytest
import torch
from headway_process import ROOT, generate
from tokenizers import Tokenizer
from transformers import Qwen2ForCausalLM

MODEL = ROOT / ".cache" / "models" / "SmolLM2-135M-Instruct"
NEW_TOKENS = 64
# None of these ends within 64 tokens, and every greedy token leads by more than 0.004.
PROMPTS = ("def fibonacci(n):\n", "In 1969, three astronauts", "La lune est", "Zwei Dinge sind unendlich:", "日本の首都は")
Q_HEADS = {1: [[0, 9]], 2: [[0, 4], [4, 9]], 3: [[0, 3], [3, 6], [6, 9]]}
KV_HEADS = {1: [[0, 3]], 2: [[0, 2], [1, 3]], 3: [[0, 1], [1, 2], [2, 3]]}


@functools.cache
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(MODEL / "tokenizer.json"))


@functools.cache
def model() -> Qwen2ForCausalLM:
    torch.set_num_threads(1)
    return Qwen2ForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()


@functools.cache
def choices(prompt: str, tokens: tuple[int, ...]) -> list[int]:
    """The greedy choice of transformers after the prompt and after each token but the last. It equals `tokens` exactly
    if greedy decoding by transformers gives them."""
    ids = tokenizer().encode(prompt).ids
    with torch.inference_mode():
        logits = model()(torch.tensor([ids + list(tokens[:-1])])).logits[0, len(ids) - 1:]
    return logits.argmax(-1).tolist()


@pytest.mark.parametrize("tp", (1, 2, 3))
@pytest.mark.parametrize("prompt", PROMPTS)
def test_same_tokens_as_transformers(prompt, tp):
    result = generate(MODEL, "--tp", str(tp), "--attn-tp", str(tp), "--dtype", "fp32", "--prompt", prompt,
                      "--max-tokens", str(NEW_TOKENS))
    tokens = result["token_ids"]
    assert len(tokens) == NEW_TOKENS
    assert tokens == choices(prompt, tuple(tokens))
    assert result["text"] == tokenizer().decode(tokens)
    assert result["finish_reason"] == "length"
    assert result["prompt_tokens"] == len(tokenizer().encode(prompt).ids)
    assert result["completion_tokens"] == NEW_TOKENS
    assert [rank["rank"] for rank in result["ranks"]] == list(range(tp))
    assert [rank["q_heads"] for rank in result["ranks"]] == Q_HEADS[tp]
    assert [rank["kv_heads"] for rank in result["ranks"]] == KV_HEADS[tp]
