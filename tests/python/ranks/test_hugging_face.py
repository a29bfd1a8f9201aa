"""shard_model on Qwen2 models of transformers."""

import pytest
import torch

from headway import spmd


@pytest.mark.parametrize("tied", (True, False))
@pytest.mark.parametrize("heads", ((9, 3), (4, 2)))
def test_logits_are_those_of_the_unsharded_model(alone, size, tied, heads):
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(hidden_size=16 * heads[0], num_attention_heads=heads[0], num_key_value_heads=heads[1],
                         intermediate_size=100, num_hidden_layers=2, vocab_size=321, tie_word_embeddings=tied,
                         initializer_range=0.15, attn_implementation="eager")
    model = Qwen2ForCausalLM(config).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    ids = torch.arange(40).view(2, 20) * 7 % 321
    bytes_before = sum(parameter.nbytes for parameter in model.parameters())
    with torch.no_grad():
        expected = model(ids).logits
        report = spmd.shard_model(model, spmd.DeviceMesh((size,), ("x",)))
        actual = model(ids).logits
        repeated = model.generate(ids[:1], max_new_tokens=4, do_sample=False)
    assert expected.std() > 1
    assert (actual - expected).abs().max() <= 1e-4
    assert repeated.shape == (1, 24)
    assert (model.lm_head.weight is model.model.embed_tokens.weight) == tied
    replicated = {row.name.rpartition(".")[2] for row in report if not row.sharded}
    assert replicated == {"input_layernorm", "post_attention_layernorm", "norm"}
    assert sum(row.sharded for row in report) == 2 * 7 + 2
    assert sum(row.global_bytes for row in report) == bytes_before
    held = sum(parameter.nbytes for parameter in model.parameters())
    assert held == sum(row.local_bytes for row in report)
    assert size == 1 or held < bytes_before * 0.6
