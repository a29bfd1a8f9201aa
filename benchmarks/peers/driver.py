"""What the peers' drivers share: a peer is loaded once and then makes one run for each line on standard input.

A line is {"batch", "prompt_tokens", "new_tokens", "seed"}; the answer is a line "RESULT " and {"prefill_s", "decode_s"},
where decode_s is the time of new_tokens - 1 steps. The first answer, before any line, is {"version", "load_s"}.
"""

import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

VOCABULARY = 151936


@dataclass(frozen=True)
class Work:
    batch: int
    prompt_tokens: int
    new_tokens: int
    seed: int

    def prompts(self) -> list[list[int]]:
        source = random.Random(self.seed)
        return [[source.randrange(VOCABULARY) for _ in range(self.prompt_tokens)] for _ in range(self.batch)]


def answer(**fields: object) -> None:
    print("RESULT " + json.dumps(fields), flush=True)


def serve(version: str, load_s: float, run: Callable[[Work], tuple[float, float]]) -> None:
    answer(version=version, load_s=load_s)
    for line in sys.stdin:
        prefill_s, decode_s = run(Work(**json.loads(line)))
        answer(prefill_s=prefill_s, decode_s=decode_s)
