"""The ranks that a launcher has started, as /proc shows them."""

import pathlib
import time


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants_of(pid: int) -> list[int]:
    children = children_of(pid)
    return children + [below for child in children for below in descendants_of(child)]


def is_alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def rank_of(pid: int) -> int | None:
    """The rank that a launcher gave the headway process `pid`."""
    try:
        if b"headway" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]:
            return None
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return None
    variables = dict(entry.split("=", 1) for entry in environment if "=" in entry)
    for name in ("HEADWAY_RANK", "OMPI_COMM_WORLD_RANK", "RANK"):
        if name in variables:
            return int(variables[name])
    return None


def ranks_under(pid: int) -> dict[int, int]:
    """Process by rank, of those that the process `pid` has started."""
    ranks = {rank_of(child): child for child in descendants_of(pid)}
    return {rank: child for rank, child in sorted((r, c) for r, c in ranks.items() if r is not None)}


def wait_until(condition, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
