"""vLLM on the CPU, greedy. A run is timed with one new token and with all of them; the difference is decoding.

usage: vllm_driver.py FOLDER RANKS
"""

import sys
import time

from driver import Work, serve


def main() -> None:
    import vllm  # starts processes of its own, which import this file again

    start = time.perf_counter()
    engine = vllm.LLM(model=sys.argv[1], skip_tokenizer_init=True, dtype="bfloat16", tensor_parallel_size=int(sys.argv[2]),
                      max_model_len=1024, max_num_seqs=8, max_num_batched_tokens=4096, enable_prefix_caching=False,
                      disable_log_stats=True)

    def seconds(work: Work, tokens: int) -> float:
        greedy = vllm.SamplingParams(temperature=0, max_tokens=tokens, min_tokens=tokens, ignore_eos=True,
                                     detokenize=False)
        prompts = [{"prompt_token_ids": prompt} for prompt in work.prompts()]
        begin = time.perf_counter()
        engine.generate(prompts, greedy, use_tqdm=False)
        return time.perf_counter() - begin

    def run(work: Work) -> tuple[float, float]:
        prefill_s = seconds(work, 1)
        return prefill_s, seconds(work, work.new_tokens) - prefill_s

    serve(vllm.__version__, time.perf_counter() - start, run)


if __name__ == "__main__":
    main()
