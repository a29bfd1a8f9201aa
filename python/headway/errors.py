"""The exceptions that Headway raises. Their texts are those of the C++ side."""


class Error(RuntimeError):
    """Root of the family. The text names the values, and where they apply rank, group, tensor or file."""


class ConfigError(Error, ValueError):
    """A model or parallel configuration that cannot be served."""


class CheckpointError(Error):
    """A checkpoint or tokenizer file that is missing, malformed or does not fit the model."""


class LaunchError(Error):
    """Launch variables that are partial or contradictory, or a rendezvous that failed."""


class CommunicationError(Error):
    """A collective that failed or ran into its time limit. The group is of no more use on any of its members."""


class ArgumentError(Error, ValueError):
    """An argument of a call that breaks the call's contract (a shape, a dtype, a range)."""
