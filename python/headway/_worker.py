"""A rank that `headway.LLM` has started: follows rank 0 until that stops or is gone."""

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from headway import _C
from headway._session import Session
from headway.errors import Error

ECHO_SECONDS = 5  # other ranks usually fail as rank 0 does, which then ends them before they say it again


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(0, "rb", buffering=0, closefd=False) as pipe:
        work = json.loads(pipe.readline())
    threading.Thread(target=_die_with_the_pipe, daemon=True).start()
    os.write(int(sys.argv[2]), b"r")
    try:
        _follow(work)
    except Error as error:
        time.sleep(ECHO_SECONDS)
        sys.exit(f"headway: rank {work['launch']['HEADWAY_RANK']}: {error}")


def _die_with_the_pipe() -> None:
    """Kills this process when the other end of standard input is gone, whatever the main thread waits for."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def _follow(work: dict[str, Any]) -> None:
    session = Session(_C.resolve_launch_environment(work["launch"]), **work["options"])
    _C.pin_calling_thread()
    session.engine.follow()
