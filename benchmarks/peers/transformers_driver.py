"""transformers with a dynamic cache and SDPA, greedy; with more than one rank by tp_plan="auto" over Gloo.

usage: transformers_driver.py FOLDER THREADS RANKS
"""

import os
import socket
import subprocess
import sys
import time

import torch
import torch.distributed
import transformers
from driver import Work, serve


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_other_ranks(ranks: int) -> list[subprocess.Popen]:
    os.environ |= {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                   "LOCAL_WORLD_SIZE": str(ranks)}
    others = [subprocess.Popen([sys.executable, *sys.argv], stdin=subprocess.DEVNULL, stdout=sys.stderr,
                               env=os.environ | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
              for rank in range(1, ranks)]
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0"}
    return others


class Transformers:
    def __init__(self, folder: str, ranks: int) -> None:
        self.ranks = ranks
        options = {"tp_plan": "auto"} if ranks > 1 else {}
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.bfloat16, attn_implementation="sdpa", **options).eval()

    @torch.inference_mode()
    def run(self, work: Work) -> tuple[float, float]:
        if self.ranks > 1:
            torch.distributed.broadcast_object_list([work], src=0)
        return self.generate(work)

    @torch.inference_mode()
    def follow(self) -> None:
        while True:
            box = [None]
            torch.distributed.broadcast_object_list(box, src=0)
            if box[0] is None:
                return
            self.generate(box[0])

    def generate(self, work: Work) -> tuple[float, float]:
        cache = transformers.DynamicCache(config=self.model.config)
        start = time.perf_counter()
        tokens = self.feed(torch.tensor(work.prompts()), cache)
        first = time.perf_counter()
        for _ in range(work.new_tokens - 1):
            tokens = self.feed(tokens, cache)
        return first - start, time.perf_counter() - first

    def feed(self, tokens: torch.Tensor, cache: transformers.DynamicCache) -> torch.Tensor:
        output = self.model(input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return output.logits[:, -1].argmax(-1, keepdim=True)


def main() -> None:
    folder, threads, ranks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    others = start_other_ranks(ranks) if ranks > 1 and "RANK" not in os.environ else []
    torch.set_num_threads(threads)
    start = time.perf_counter()
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
    peer = Transformers(folder, ranks)
    if os.environ.get("RANK", "0") != "0":
        return peer.follow()
    serve(transformers.__version__, time.perf_counter() - start, peer.run)
    if ranks > 1:
        torch.distributed.broadcast_object_list([None], src=0)
    for other in others:
        other.wait(timeout=60)


if __name__ == "__main__":
    main()
