"""What generation returns, with vLLM's names."""

import dataclasses


@dataclasses.dataclass
class CompletionOutput:
    """One continuation of a prompt."""

    index: int
    """0; a request has one continuation."""
    text: str
    """The new text, without the token that ended it; empty for a model without a tokenizer."""
    token_ids: list[int]
    """The new tokens; one that ended the text is among them."""
    finish_reason: str | None = None
    """`stop` (an end-of-sequence token), `length`, or `error`."""
    error: str = ""
    """What went wrong, with finish reason `error`: logits that no token can be chosen from."""

    def finished(self) -> bool:
        """Whether the continuation has ended."""
        return self.finish_reason is not None


@dataclasses.dataclass
class RequestOutput:
    """A prompt and its continuations."""

    request_id: str
    prompt: str | None
    """The prompt's text, where it was given as text."""
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]
    finished: bool = True
