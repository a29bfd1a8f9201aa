"""A Qwen2 attention block over lm_head_tp: mpirun -np 4 python attention_block.py

On 4 ranks attention is cut over 2, so that there are two replicas of it. The result is held against one rank's.
"""

import math

import torch
from torch.nn.functional import scaled_dot_product_attention

from headway import distributed
from headway.layers import AttnQKVParallelLinear, AttnRowParallelLinear

HIDDEN, HEAD_SIZE, Q_HEADS, KV_HEADS = 144, 16, 9, 3


class Attention(torch.nn.Module):
    """Causal attention of one sequence; each rank computes its own heads, which need not be as many on every rank."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv_proj = AttnQKVParallelLinear(HIDDEN, HEAD_SIZE, Q_HEADS, KV_HEADS, return_bias=False)
        self.o_proj = AttnRowParallelLinear(Q_HEADS * HEAD_SIZE, HIDDEN, bias=False, return_bias=False,
                                            total_q_heads=Q_HEADS)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        q_heads, kv_heads = self.qkv_proj.q_heads, self.qkv_proj.kv_heads
        heads = self.qkv_proj(hidden).view(len(hidden), -1, HEAD_SIZE).transpose(0, 1)
        q, k, v = heads.split([len(q_heads), len(kv_heads), len(kv_heads)])
        # Query head h reads KV head h * KV_HEADS // Q_HEADS; here both are counted from this rank's first.
        read = [h * KV_HEADS // Q_HEADS - kv_heads.start for h in q_heads]
        context = scaled_dot_product_attention(q, k[read], v[read], is_causal=True)
        output: torch.Tensor = self.o_proj(context.transpose(0, 1).reshape(len(hidden), -1))
        return output


def reference(hidden: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """The same on one rank."""
    q, k, v = ((hidden @ weights[name].t() + weights[name + "_bias"]).view(len(hidden), -1, HEAD_SIZE).transpose(0, 1)
               for name in "qkv")
    read = [h * KV_HEADS // Q_HEADS for h in range(Q_HEADS)]
    context = scaled_dot_product_attention(q, k[read], v[read], is_causal=True)
    return context.transpose(0, 1).reshape(len(hidden), -1) @ weights["o"].t()


def main() -> None:
    # %% Every rank has the full weights here; with a checkpoint each would read its own part.
    torch.manual_seed(0)
    rows = {"q": Q_HEADS * HEAD_SIZE, "k": KV_HEADS * HEAD_SIZE, "v": KV_HEADS * HEAD_SIZE}
    weights = {name: torch.randn(count, HIDDEN) / math.sqrt(HIDDEN) for name, count in rows.items()}
    weights |= {name + "_bias": torch.randn(count) for name, count in rows.items()}
    weights["o"] = torch.randn(HIDDEN, Q_HEADS * HEAD_SIZE) / math.sqrt(HIDDEN)
    hidden = torch.randn(7, HIDDEN)
    # %% The groups: TP of all ranks, attention of two of them each.
    distributed.init_distributed_environment()
    world = distributed.get_world_group()
    distributed.initialize_model_parallel(world.world_size,
                                          lm_head_tensor_model_parallel_size=math.gcd(2, world.world_size))
    # %% Each rank keeps its shards and computes its heads; o_proj sums over lm_head_tp.
    block = Attention()
    for name in "qkv":
        block.qkv_proj.weight_loader(block.qkv_proj.weight, weights[name], name)
        block.qkv_proj.weight_loader(block.qkv_proj.get_parameter("bias"), weights[name + "_bias"], name)
    block.o_proj.weight_loader(block.o_proj.weight, weights["o"])
    difference = (block(hidden) - reference(hidden, weights)).abs().max().item()
    lines = [world.broadcast_object(f"rank {world.rank}: {distributed.get_lm_tp_group().ranks} query heads "
                                    f"{block.qkv_proj.q_heads}, differs by {difference:.1e}", src)
             for src in range(world.world_size)]
    if world.is_first_rank:
        print("\n".join(lines))
    assert difference < 1e-4, difference


if __name__ == "__main__":
    main()
