"""Shards transformers' Qwen2 by a mesh over all ranks: mpirun -np 3 python shard_by_mesh.py"""

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from headway import distributed
from headway.spmd import DeviceMesh, shard_model


def main() -> None:
    # %% The model is built whole, as for one rank.
    torch.manual_seed(0)
    config = Qwen2Config(hidden_size=144, num_attention_heads=9, num_key_value_heads=3, intermediate_size=100,
                         num_hidden_layers=2, vocab_size=321, initializer_range=0.1)
    model = Qwen2ForCausalLM(config).eval()
    ids = torch.arange(12).view(1, 12)
    # %% Each rank is a TP group of its own; the mesh joins them.
    distributed.init_distributed_environment()
    distributed.initialize_model_parallel(tensor_model_parallel_size=1)
    world = distributed.get_world_group()
    mesh = DeviceMesh((world.world_size,), ("x",))
    # %% The model's own code stays as it is, and so do its logits.
    with torch.no_grad():
        expected = model(ids).logits
        report = shard_model(model, mesh)
        difference = (model(ids).logits - expected).abs().max().item()
    if world.is_first_rank:
        for row in report[:6]:
            spec = row.spec or "replicated"
            print(f"{row.name:40} {row.type:24} {spec:12} {row.local_bytes:8} of {row.global_bytes}")
        print(f"largest difference of a logit: {difference:.1e}")
    assert difference < 1e-4, difference


if __name__ == "__main__":
    main()
