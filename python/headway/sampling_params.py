"""How the next token is chosen."""

import dataclasses

from headway import _C


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """Parameters of one request, with vLLM's names, defaults and ranges.

    Raises:
        ArgumentError: a value is out of its range; the text names it.
    """

    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    """In (0, 1]: only the likeliest tokens that have this probability together."""
    top_k: int = 0
    """Only so many of the likeliest tokens; 0 or -1 is off."""
    seed: int | None = None
    """Makes sampling repeatable, whatever else is in the batch."""
    max_tokens: int = 16
    """New tokens at most."""
    ignore_eos: bool = False
    """Go on after an end-of-sequence token."""

    def __post_init__(self) -> None:
        self.to_native()

    def to_native(self, seed: int | None = None) -> _C.SamplingParams:
        """The C++ parameters, checked; `seed` counts where these have none."""
        native = _C.SamplingParams()
        for field in dataclasses.fields(self):
            setattr(native, field.name, getattr(self, field.name))
        if self.seed is None:
            native.seed = seed
        native.validate()
        return native
