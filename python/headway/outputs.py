"""What generation returns, with vLLM's names."""

import dataclasses
from typing import TypeAlias


@dataclasses.dataclass(frozen=True)
class Logprob:
    """What the model thought of a token, whatever sampling made of it."""

    logprob: float
    """Natural logarithm of its probability."""
    rank: int
    """1 for the likeliest token."""
    decoded_token: str | None
    """Its text; None for a model without a tokenizer."""


TokenLogprobs: TypeAlias = dict[int, Logprob]


@dataclasses.dataclass
class CompletionOutput:
    """One continuation of a prompt."""

    index: int
    """From 0 to `n` - 1."""
    text: str = ""
    """The new text; empty for a model without a tokenizer."""
    token_ids: list[int] = dataclasses.field(default_factory=list)
    """The new tokens; one that ended the text is among them."""
    logprobs: list[TokenLogprobs] | None = None
    """For each of `token_ids` itself and the likeliest tokens in its place, where they were asked for."""
    finish_reason: str | None = None
    """`stop`, `length`, or `error`."""
    stop_reason: str | int | None = None
    """Which of `stop` or `stop_token_ids` ended the text; None for an end-of-sequence token."""
    error: str = ""
    """What went wrong, with finish reason `error`: logits that no token can be chosen from."""


@dataclasses.dataclass
class RequestOutput:
    """A prompt and its continuations."""

    request_id: str
    prompt: str | None
    """The prompt's text, where it was given as text."""
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]
    prompt_logprobs: list[TokenLogprobs | None] | None = None
    """For each token of the prompt as in `CompletionOutput.logprobs`, None for the first, where they were asked for."""

    @property
    def finished(self) -> bool:
        """Whether all continuations have ended."""
        return all(output.finish_reason is not None for output in self.outputs)
