"""Offline generation, with vLLM's names."""

import contextlib
import functools
import pathlib
import random
import signal
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import torch
from tqdm.auto import tqdm

from headway import _C
from headway._chat import Conversation, ConversationEncoder
from headway._launch import StartedRanks
from headway._session import Session, resolve_launch
from headway.distributed import DEFAULT_TIMEOUT, GroupCoordinator
from headway.errors import ArgumentError, CommunicationError, Error
from headway.outputs import CompletionOutput, Logprob, RequestOutput, TokenLogprobs
from headway.sampling_params import SamplingParams

Prompt: TypeAlias = str | Sequence[int]

_LARGEST_ID = 2**31 - 1
_SEED_BITS = 63


class LLM:
    """A model, ready to continue prompts.

    From a plain `python script.py` it starts its own ranks, one process each, which end with this object or with this
    process, however that ends. Under torchrun, mpirun or srun every rank builds one and calls `generate` alike; all
    return the same outputs.

    From the first operator on, PyTorch's own operators run on one thread each in this process: Headway brings threads
    of its own. `torch.set_num_threads` sets it back.

    Args:
        model: folder with `config.json`, `tokenizer.json` and safetensors files.
        tensor_parallel_size: ranks; default: those of the launcher, else 1.
        attention_tensor_parallel_size: ranks of the attention group; default: the largest legal size.
        embedding_group: group that shards the embedding: `tp`, `lm_head_tp`, or `none`.
        lm_head_group: the same for the LM head.
        attention_replicas: what the copies of attention in a TP group do: `replicate`, which compute the same tokens,
            or `dp`, which own different sequences.
        dtype: `auto` (the checkpoint's), `float32`, `bfloat16`, `float16`, or torch's.
        quantization: None, or `int8`: holds linears, embedding and LM head in int8 with a scale for each row, on the
            CPU.
        max_model_len: tokens of a sequence, prompt and new ones; default: what the model allows.
        seed: makes the sampling of requests without a seed of their own repeatable.
        device: `cpu`, `cuda`, or `auto`: cuda where there is one.
        max_num_seqs: sequences that are computed side by side.
        max_num_batched_tokens: tokens of one step; longer prompts are cut into chunks.
        kv_blocks: blocks of the KV cache; default: as many as `max_num_seqs` need, or half of the free memory holds.
        enable_prefix_caching: whether sequences that begin alike share KV blocks.
        threads: threads of each rank; default: `OMP_NUM_THREADS`, else its share of the cores.
        timeout: seconds until a rank gives up on the others.

    Raises:
        ConfigError: a layout or a dtype that cannot be served.
        CheckpointError: the model's files are missing or malformed.
        LaunchError: the ranks did not start or did not meet.
    """

    def __init__(self, model: str | pathlib.Path, *, tensor_parallel_size: int | None = None,
                 attention_tensor_parallel_size: int | None = None, embedding_group: str = "tp",
                 lm_head_group: str = "tp", attention_replicas: str = "replicate", dtype: str | torch.dtype = "auto",
                 quantization: str | None = None, max_model_len: int | None = None, seed: int | None = None,
                 device: str = "auto", max_num_seqs: int = 64, max_num_batched_tokens: int = 1024,
                 kv_blocks: int | None = None, enable_prefix_caching: bool = True, threads: int | None = None,
                 timeout: float = DEFAULT_TIMEOUT) -> None:
        folder = pathlib.Path(model)
        self._folder = folder
        self.tokenizer = _find_tokenizer(folder)
        self._seeds = None if seed is None else random.Random(seed)
        options: dict[str, Any] = {
            "model": str(folder), "tensor_parallel_size": tensor_parallel_size,
            "attention_tensor_parallel_size": attention_tensor_parallel_size, "embedding_group": embedding_group,
            "lm_head_group": lm_head_group, "attention_replicas": attention_replicas, "dtype": str(dtype),
            "quantization": quantization or "none", "device": device, "max_model_len": max_model_len,
            "max_num_seqs": max_num_seqs, "max_num_batched_tokens": max_num_batched_tokens, "kv_blocks": kv_blocks,
            "eos_token_ids": _eos_token_ids(self.tokenizer), "enable_prefix_caching": enable_prefix_caching,
            "threads": threads, "timeout": timeout}
        launch, ranks_to_start = resolve_launch(tensor_parallel_size)
        self._job = _Job(launch, ranks_to_start, options, self.tokenizer)
        self._shared = launch.source != "single"  # whether this script runs on every rank
        self._finalizer = weakref.finalize(self, self._job.close)

    def __enter__(self) -> "LLM":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the ranks that this object has started and frees the model. It cannot be used afterwards."""
        self._finalizer()

    @property
    def max_model_len(self) -> int:
        """The longest sequence, prompt and new tokens."""
        return self._open_job().session.engine.max_model_len

    def _open_job(self) -> "_Job":
        if self._job.closed:
            raise Error("this LLM is closed")
        return self._job

    def generate(self, prompts: Prompt | Sequence[Prompt],
                 sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
                 use_tqdm: bool = True) -> list[RequestOutput]:
        """Continues prompts, as many side by side as have room, and returns their outputs in the prompts' order.

        Ctrl-C ends the run with KeyboardInterrupt; what had begun is dropped, and this object can be used again.

        Args:
            prompts: texts or lists of token ids, of any lengths, or a single one.
            sampling_params: for all prompts, or one for each.
            use_tqdm: whether to show a progress bar.

        Raises:
            ArgumentError: a prompt that is empty, too long or has unknown ids, or parameters that do not fit it.
                Nothing has been generated then.
            CommunicationError: a rank is gone.
            Error: this object is closed.
        """
        return self._on_all_ranks(lambda: self._generate(prompts, sampling_params, use_tqdm))

    def chat(self, messages: Conversation | Sequence[Conversation],
             sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
             use_tqdm: bool = True) -> list[RequestOutput]:
        """Answers conversations, put into the model's own chat template; otherwise as `generate`.

        Args:
            messages: a conversation, or a list of them. A conversation is a list of `{"role": ..., "content": ...}`;
                a content is a text or a list of `{"type": "text", "text": ...}`. Control tokens in it are plain text.
            sampling_params: for all conversations, or one for each.
            use_tqdm: whether to show a progress bar.

        Raises:
            ArgumentError: as `generate`; or the model has no chat template; or a message is malformed.
        """
        return self._on_all_ranks(lambda: self._generate(self._conversations.encode(messages), sampling_params,
                                                         use_tqdm))

    @functools.cached_property
    def _conversations(self) -> ConversationEncoder:
        return ConversationEncoder(self._folder, self.tokenizer)

    def _on_all_ranks(self, work: Callable[[], list[RequestOutput]]) -> list[RequestOutput]:
        job = self._open_job()
        return job.on_all_ranks(work) if self._shared else work()

    def _generate(self, prompts: Prompt | Sequence[Prompt],
                  sampling_params: SamplingParams | Sequence[SamplingParams] | None,
                  use_tqdm: bool) -> list[RequestOutput]:
        listed = _as_list(prompts)
        params = _params_for(listed, sampling_params)
        requests: dict[int, RequestOutput] = {}
        try:
            for position, (prompt, choice) in enumerate(zip(listed, params, strict=True)):
                request, output = self._add(position, prompt, choice)
                requests[request] = output
            self._run(requests, use_tqdm)
        finally:
            for request, output in requests.items():
                if not output.finished:
                    self._job.generator.cancel(request)
        return list(requests.values())

    def _add(self, position: int, prompt: Prompt, params: SamplingParams) -> tuple[int, RequestOutput]:
        try:
            ids = self._encode(prompt)
            seed = None if self._seeds is None else self._seeds.getrandbits(_SEED_BITS)
            request = self._job.generator.add(ids, params.to_native(seed))
        except ArgumentError as error:
            raise ArgumentError(f"prompt {position}: {error}") from None
        text = prompt if isinstance(prompt, str) else None
        outputs = [CompletionOutput(index, logprobs=None if params.logprobs is None else [])
                   for index in range(params.n)]
        prompt_logprobs: list[TokenLogprobs | None] | None = None if params.prompt_logprobs is None else [None]
        return request, RequestOutput(str(request), text, ids, outputs, prompt_logprobs)

    def _encode(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise ArgumentError("the model has neither tokenizer.json nor vocab.json; only token ids work")
            return self.tokenizer.encode(prompt)
        vocab_size = self._job.session.config.vocab_size
        for token in prompt:
            if not isinstance(token, int) or not 0 <= token <= _LARGEST_ID:
                raise ArgumentError(f"{token!r} is no token id of a vocabulary of {vocab_size}")
        return list(prompt)

    def _run(self, requests: dict[int, RequestOutput], use_tqdm: bool) -> None:
        generator = self._job.generator
        with tqdm(total=len(requests), desc="Processed prompts", disable=not use_tqdm) as bar:
            while generator.has_unfinished():
                for news in generator.step():
                    self._take(requests[news.request], news)
                    bar.update(int(requests[news.request].finished))

    def _take(self, output: RequestOutput, news: _C.TextOutput) -> None:
        completion = output.outputs[news.index]
        completion.text += news.text
        completion.token_ids += news.token_ids
        if completion.logprobs is not None:
            completion.logprobs += map(self._logprobs, news.logprobs)
        if news.prompt_logprobs and output.prompt_logprobs == [None]:
            output.prompt_logprobs = [None, *map(self._logprobs, news.prompt_logprobs)]
        if news.finish_reason is not None:
            completion.finish_reason, completion.error = news.finish_reason, news.error
            completion.stop_reason = news.stop_token if news.stop_string is None else news.stop_string

    def _logprobs(self, tokens: list[tuple[int, float, int]]) -> TokenLogprobs:
        tokenizer = self.tokenizer
        return {token: Logprob(logprob, rank, None if tokenizer is None else tokenizer.decode([token], False))
                for token, logprob, rank in tokens}


class _Job:
    """This rank's session and the ranks that it has started."""

    closed = False

    def __init__(self, launch: _C.LaunchEnvironment, ranks_to_start: int, options: dict[str, Any],
                 tokenizer: _C.Tokenizer | None) -> None:
        self._ranks: StartedRanks | None = None
        met: Callable[[], None] = lambda: None
        if ranks_to_start > 1:
            self._check(ranks_to_start, options)
            self._ranks = StartedRanks(ranks_to_start, {"options": options})
            launch = _C.resolve_launch_environment(self._ranks.variables(0))
            met = self._ranks.met
        try:
            with _loading_bar(launch) as progress:
                self.session = Session(launch, **options, met=met, progress=progress)
            self.generator = _C.TextGenerator(self.session.engine, tokenizer)
        except BaseException:
            if self._ranks is not None:
                self._ranks.kill()
            raise

    @staticmethod
    def _check(world_size: int, options: dict[str, Any]) -> None:
        """Refuses what can be refused before a process is started."""
        config = _C.ModelConfig.from_pretrained(options["model"])
        _C.resolve_parallel_config(config, world_size, options["tensor_parallel_size"],
                                   options["attention_tensor_parallel_size"], options["embedding_group"],
                                   options["lm_head_group"], options["attention_replicas"])

    def on_all_ranks(self, work: Callable[[], list[RequestOutput]]) -> list[RequestOutput]:
        """Does the work on rank 0 while the others follow; returns its outcome, or raises its error, on all."""
        engine = self.session.engine
        world = GroupCoordinator(self.session.state.world)
        outcome: list[RequestOutput] | Error
        if not engine.is_driver():
            with _ended_by_ctrl_c():
                engine.follow()
            outcome = world.broadcast_object(src=0)
        else:
            failure: BaseException | None = None
            try:
                outcome = work()
            except CommunicationError:  # the others see it for themselves
                raise
            except BaseException as error:
                failure = error
                outcome = error if isinstance(error, Error) else Error(f"rank 0: {type(error).__name__}: {error}")
            engine.release()
            world.broadcast_object(outcome, src=0)
            if failure is not None:
                raise failure
        if isinstance(outcome, Error):
            raise outcome
        return outcome

    def close(self) -> None:
        if self._ranks is not None:
            with contextlib.suppress(Error):  # a rank may be gone; those that are left are ended below
                self.session.engine.stop()  # whoever still holds on to the engine, a traceback for instance
        del self.generator, self.session
        self.closed = True
        if self._ranks is not None:
            self._ranks.close()


def _find_tokenizer(folder: pathlib.Path) -> _C.Tokenizer | None:
    if (folder / "tokenizer.json").exists() or (folder / "vocab.json").exists():
        return _C.Tokenizer.from_pretrained(str(folder))
    return None


def _eos_token_ids(tokenizer: _C.Tokenizer | None) -> list[int]:
    return [] if tokenizer is None or tokenizer.eos_token_id is None else [tokenizer.eos_token_id]


def _as_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    single = isinstance(prompts, str) or (len(prompts) > 0 and isinstance(prompts[0], int))
    return [prompts] if single else list(prompts)  # type: ignore[list-item, arg-type]


def _params_for(prompts: list[Prompt],
                params: SamplingParams | Sequence[SamplingParams] | None) -> Sequence[SamplingParams]:
    if params is None or isinstance(params, SamplingParams):
        return [params or SamplingParams()] * len(prompts)
    if len(params) != len(prompts):
        raise ArgumentError(f"{len(params)} sampling parameters are given for {len(prompts)} prompts")
    return params


@contextlib.contextmanager
def _loading_bar(launch: _C.LaunchEnvironment) -> Iterator[Callable[[int, int], None]]:
    with tqdm(desc="Loading weights", unit="B", unit_scale=True, disable=launch.rank != 0, delay=1) as bar:
        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)
        yield show


@contextlib.contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """Lets Ctrl-C end the process at once, from the main thread: one that follows does not come back to Python."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
