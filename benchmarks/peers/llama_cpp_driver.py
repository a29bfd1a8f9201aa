"""llama.cpp through its C interface, greedy, one sequence.

usage: llama_cpp_driver.py GGUF THREADS
"""

import ctypes
import sys
import time

import llama_cpp
from driver import Work, serve


class LlamaCpp:
    def __init__(self, path: str, threads: int) -> None:
        llama_cpp.llama_backend_init()
        model_params = llama_cpp.llama_model_default_params()
        model_params.use_extra_bufts = False  # its AMX path dies of SIGILL on some machines
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), model_params)
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = 2048
        params.n_threads = params.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        self.sampler = llama_cpp.llama_sampler_init_greedy()
        if not self.model or not self.context:
            raise RuntimeError(f"llama.cpp could not load {path}")

    def feed(self, tokens: list[int]) -> int:
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        batch = llama_cpp.llama_batch_get_one(ctypes.cast(array, ctypes.POINTER(llama_cpp.llama_token)), len(tokens))
        if llama_cpp.llama_decode(self.context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        return llama_cpp.llama_sampler_sample(self.sampler, self.context, -1)

    def run(self, work: Work) -> tuple[float, float]:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        (prompt,) = work.prompts()
        start = time.perf_counter()
        token = self.feed(prompt)
        first = time.perf_counter()
        for _ in range(work.new_tokens - 1):
            token = self.feed([token])
        return first - start, time.perf_counter() - first


def main() -> None:
    start = time.perf_counter()
    peer = LlamaCpp(sys.argv[1], int(sys.argv[2]))
    serve(llama_cpp.__version__, time.perf_counter() - start, peer.run)


if __name__ == "__main__":
    main()
