"""Continues prompts with a model folder: python generate.py MODEL [RANKS]"""

import sys

from headway import LLM, SamplingParams


def main() -> None:
    model, ranks = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    prompts = ["The three primary colours are", "Water boils at"]
    # %% Ranks are processes of their own, which end with the object.
    with LLM(model, tensor_parallel_size=ranks, max_model_len=256) as llm:
        outputs = llm.generate(prompts, SamplingParams(temperature=0, max_tokens=16, logprobs=2))
    # %% Outputs come in the order of the prompts.
    for output in outputs:
        completion = output.outputs[0]
        print(f"{output.prompt}|{completion.text}| ({completion.finish_reason})")
        first = (completion.logprobs or [{}])[0]
        print("  first token:", {entry.decoded_token: round(entry.logprob, 3) for entry in first.values()})


if __name__ == "__main__":
    main()
