"""Ranks that `LLM` starts for itself, when no launcher has: one Python process for each rank but 0."""

import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time
from typing import Any

from headway import _C
from headway.errors import LaunchError

READY_SECONDS = 120
GRACE_SECONDS = 10
_BOOTSTRAP = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from headway._worker import main; main()"


class StartedRanks:
    """Ranks 1 to N-1 of a job whose rank 0 is this process.

    A rank reads its work from a pipe and ends when the pipe does, so that none outlives this process however it ends.
    It is in a session of its own: Ctrl-C reaches this process alone, which ends the others.
    """

    def __init__(self, world_size: int, work: dict[str, Any]) -> None:
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="headway-"))
        self._world_size = world_size
        self._processes: list[subprocess.Popen[bytes]] = []
        self._pipes: list[int] = []
        try:
            for rank in range(1, world_size):
                self._start(rank, work)
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def variables(self, rank: int) -> dict[str, str]:
        """The launch variables of a rank."""
        return _C.child_launch_variables(rank, self._world_size, str(self._folder / "store"))

    def met(self) -> None:
        """The folder in which the ranks met is of no more use."""
        self._folder.rmdir()

    def close(self) -> None:
        """Waits for ranks that have been told to stop; kills those that do not."""
        deadline = time.monotonic() + GRACE_SECONDS
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                break
        self.kill()

    def kill(self) -> None:
        """Ends all ranks at once."""
        for process in self._processes:
            process.kill()
            process.wait()
            if process.stdin:
                process.stdin.close()
        self._processes.clear()
        for pipe in self._pipes:
            os.close(pipe)
        self._pipes.clear()
        (self._folder / "store").unlink(missing_ok=True)
        if self._folder.exists():
            self._folder.rmdir()

    def _start(self, rank: int, work: dict[str, Any]) -> None:
        ready, tell_ready = os.pipe()
        self._pipes.append(ready)
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", _BOOTSTRAP, json.dumps(sys.path), str(tell_ready)], stdin=subprocess.PIPE,
                stdout=2, pass_fds=(tell_ready,), start_new_session=True)
        finally:
            os.close(tell_ready)
        self._processes.append(process)
        assert process.stdin is not None
        process.stdin.write(json.dumps(work | {"launch": self.variables(rank)}).encode() + b"\n")
        process.stdin.flush()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        for rank, pipe in enumerate(self._pipes, start=1):
            readable, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if readable and os.read(pipe, 1):
                continue
            code = self._processes[rank - 1].poll()
            reason = f"is not ready after {READY_SECONDS} s" if not readable else f"ended with exit code {code}"
            raise LaunchError(f"rank {rank} of {self._world_size}, a process that this one started, {reason}")
