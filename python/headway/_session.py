"""A model on this rank, and its engine: what rank 0 and its followers build alike."""

import hashlib
import os
import pathlib
from collections.abc import Callable

from headway import _C
from headway.errors import ConfigError


class Session:
    """Meets the other ranks, loads this rank's shards and builds the engine.

    Raises:
        ConfigError: the layout cannot be served.
        CheckpointError: the model's files are missing or malformed.
        LaunchError: the ranks did not meet, or have other settings.
    """

    def __init__(self, launch: _C.LaunchEnvironment, *, model: str, tensor_parallel_size: int | None,
                 attention_tensor_parallel_size: int | None, embedding_group: str, lm_head_group: str,
                 attention_replicas: str, dtype: str, quantization: str, device: str, max_model_len: int | None,
                 max_num_seqs: int, max_num_batched_tokens: int, kv_blocks: int | None,
                 eos_token_ids: list[int], enable_prefix_caching: bool, threads: int | None, timeout: float,
                 met: Callable[[], None] = lambda: None, progress: Callable[[int, int], None] | None = None) -> None:
        if launch.world_size > 1:
            _C.set_log_rank(launch.rank)
        if threads is not None:
            _C.set_num_threads(threads)
        self.config = _C.ModelConfig.from_pretrained(model)
        parallel = _C.resolve_parallel_config(self.config, launch.world_size, tensor_parallel_size,
                                              attention_tensor_parallel_size, embedding_group, lm_head_group,
                                              attention_replicas)
        max_num_batched_tokens = max(max_num_batched_tokens, max_num_seqs)
        settings = {"digest of config.json": _digest(model), "embedding_group": embedding_group,
                    "lm_head_group": lm_head_group, "attention_replicas": attention_replicas, "dtype": dtype,
                    "quantization": quantization, "max_model_len": max_model_len, "max_num_seqs": max_num_seqs,
                    "max_num_batched_tokens": max_num_batched_tokens, "kv_blocks": kv_blocks}
        self.state = _C.ParallelState.create(launch, parallel.tp, parallel.attn_tp, device, timeout,
                                             "".join(f"{name}={value}\n" for name, value in settings.items()))
        met()
        self.model = _C.load_model(model, self.config, parallel, self.state, dtype, quantization, progress)
        self.engine = _C.LLMEngine(self.model, self.state, max_model_len, kv_blocks, max_num_seqs,
                                   max_num_batched_tokens, eos_token_ids, enable_prefix_caching)


def resolve_launch(tensor_parallel_size: int | None) -> tuple[_C.LaunchEnvironment, int]:
    """This process's place among the ranks that a launcher has started, and how many ranks to start without one.

    Raises:
        ConfigError: the launcher has started another number of ranks.
    """
    launch = _C.resolve_launch_environment()
    if launch.source == "single":
        return launch, tensor_parallel_size or 1
    if tensor_parallel_size not in (None, launch.world_size):
        raise ConfigError(f"tensor_parallel_size is {tensor_parallel_size}, but {launch.source} started "
                          f"{launch.world_size} ranks; a world larger than its TP group is not served")
    return launch, 1


def _digest(model: str) -> str:
    path = pathlib.Path(model)
    return hashlib.sha256((path / "config.json" if os.path.isdir(path) else path).read_bytes()).hexdigest()[:16]
