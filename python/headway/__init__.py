"""Headway: LLM inference in which attention has a tensor-parallel group of its own."""

import torch  # noqa: F401  (loads LibTorch, which the extension module links to)

from headway import distributed, layers, spmd
from headway._C import __version__
from headway.errors import ArgumentError, CheckpointError, CommunicationError, ConfigError, Error, LaunchError
from headway.llm import LLM
from headway.outputs import CompletionOutput, Logprob, RequestOutput
from headway.sampling_params import SamplingParams

__all__ = [
    "LLM", "ArgumentError", "CheckpointError", "CommunicationError", "CompletionOutput", "ConfigError", "Error",
    "LaunchError", "Logprob", "RequestOutput", "SamplingParams", "__version__", "distributed", "layers", "spmd",
]
