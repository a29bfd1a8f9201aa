"""How texts are generated."""

import dataclasses
from collections.abc import Mapping, Sequence

from headway import _C
from headway.errors import ArgumentError


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """Parameters of one request, with vLLM's names, defaults, ranges and order: bias, penalties, temperature, top_k,
    min_p, top_p.

    Raises:
        ArgumentError: a value is out of its range or of another type; the text names it.
    """

    n: int = 1
    """Texts for the prompt, each with random numbers of its own."""
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    """In (0, 1]: only the likeliest tokens that have this probability together."""
    top_k: int = 0
    """Only so many of the likeliest tokens; 0 or -1 is off."""
    min_p: float = 0.0
    """In [0, 1]: least probability, as a part of the largest one."""
    repetition_penalty: float = 1.0
    """Above 0: divides logits above 0 of tokens in prompt or text, multiplies the others."""
    presence_penalty: float = 0.0
    """In [-2, 2]: taken off the logits of tokens in the text."""
    frequency_penalty: float = 0.0
    """In [-2, 2]: the same for each time that a token is in the text."""
    logit_bias: Mapping[int, float] | None = None
    """Token id -> what is added to its logit, in [-100, 100]."""
    seed: int | None = None
    """Makes sampling repeatable, whatever else is in the batch; -1 is None."""
    max_tokens: int = 16
    """New tokens at most."""
    min_tokens: int = 0
    """New tokens before any that would end the text."""
    ignore_eos: bool = False
    """Go on after an end-of-sequence token."""
    stop: str | Sequence[str] | None = None
    """Strings that end the text."""
    stop_token_ids: Sequence[int] | None = None
    """Tokens that end the text, beside the model's end-of-sequence tokens."""
    include_stop_str_in_output: bool = False
    """Whether the string or token that ended the text is part of it."""
    skip_special_tokens: bool = True
    """Leave special tokens out of the text."""
    logprobs: int | None = None
    """Log-probabilities of the new tokens, and of so many of the likeliest in their place."""
    prompt_logprobs: int | None = None
    """The same for the prompt's tokens."""

    def __post_init__(self) -> None:
        self.to_native()

    def to_native(self, seed: int | None = None) -> _C.TextParams:
        """The C++ parameters, checked; `seed` counts where these have none."""
        native = _C.TextParams()
        for field in dataclasses.fields(self):
            holder = native if hasattr(native, field.name) else native.sampling
            try:
                setattr(holder, field.name, self._native_value(field.name))
            except (TypeError, ValueError):
                raise ArgumentError(
                    f"{field.name} is {getattr(self, field.name)!r}; it must be {_name_of(field.type)}") from None
        if self.seed is None or self.seed == -1:
            setattr(native.sampling, "seed", seed)
        native.validate()
        return native

    def _native_value(self, name: str) -> object:
        value = getattr(self, name)
        if name == "stop":
            return [value] if isinstance(value, str) else list(value or ())
        if name == "stop_token_ids":
            return list(value or ())
        if name == "seed" and value == -1:
            return None
        return dict(value or {}) if name == "logit_bias" else value


def _name_of(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)
