"""The ranks that Headway's own launcher has started, as /proc shows them."""

import pathlib


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def rank_of(pid: int) -> int:
    variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(int(variable.split(b"=")[1]) for variable in variables if variable.startswith(b"HEADWAY_RANK="))


def peak_memory_of(pid: int) -> int | None:
    """The most memory that the process has had, in bytes; nothing once it has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)
