"""The engines that are measured, each as something that makes one run when it is asked to."""

import json
import os
import pathlib
import queue
import signal
import subprocess
import threading
from dataclasses import dataclass, field

import environments

HERE = pathlib.Path(__file__).resolve().parent
LOAD_LIMIT = 300  # seconds
RUN_LIMIT = 180
MARK = "RESULT "


class PeerFailed(Exception):
    pass


@dataclass(frozen=True)
class Timed:
    """Tokens per second of one run."""
    prefill: float
    decode: float
    limits: dict = field(default_factory=dict)  # what Headway's bench measured beside it


class Headway:
    """`headway bench`, a new process for every run."""
    def __init__(self, name: str, binary: pathlib.Path, model: pathlib.Path, options: list[str]) -> None:
        self.name, self.batches = name, (1, 8)
        self.version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        self.command = [str(binary), "bench", "--model", str(model), "--json", "--repetitions", "1", *options]

    def run(self, work: dict) -> Timed:
        options = ["--batch", str(work["batch"]), "--prompt-tokens", str(work["prompt_tokens"]), "--gen-tokens",
                   str(work["new_tokens"])]
        done = subprocess.run(self.command + options, capture_output=True, text=True, timeout=RUN_LIMIT,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise PeerFailed(done.stderr.strip().splitlines()[-1])
        report = json.loads(done.stdout)
        return Timed(report["prefill_tokens_per_s"], report["decode_tokens_per_s"], report)

    def close(self) -> None:
        pass


class Driven:
    """A driver in a session of its own, which is stopped by signal between its runs: some engines spin while idle."""
    def __init__(self, name: str, environment: str, script: str, arguments: list[str], batches: tuple[int, ...],
                 variables: dict[str, str] | None = None) -> None:
        self.name, self.batches = name, batches
        self.log = environments.CACHE / "logs" / f"{name.replace(' ', '-')}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [environments.python_of(environment), HERE / script, *arguments], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log.open("w"), text=True, start_new_session=True,
            env=os.environ | {"HF_HUB_OFFLINE": "1"} | (variables or {}))
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.version = str(self._answer(LOAD_LIMIT)["version"])
        self._signal(signal.SIGSTOP)

    def _read(self) -> None:
        for line in self.process.stdout:
            if line.startswith(MARK):
                self.lines.put(line[len(MARK):])
        self.lines.put(None)

    def _answer(self, seconds: int) -> dict:
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            line = None
        if line is None:
            self.close()
            last = [text for text in self.log.read_text(errors="replace").splitlines() if text.strip()][-1:]
            raise PeerFailed(f"{last[0].strip() if last else 'no answer'} (see {self.log})")
        return json.loads(line)

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def run(self, work: dict) -> Timed:
        self._signal(signal.SIGCONT)
        self.process.stdin.write(json.dumps(work) + "\n")
        self.process.stdin.flush()
        times = self._answer(RUN_LIMIT)
        self._signal(signal.SIGSTOP)
        return Timed(work["batch"] * work["prompt_tokens"] / times["prefill_s"],
                     work["batch"] * (work["new_tokens"] - 1) / times["decode_s"])

    def close(self) -> None:
        self._signal(signal.SIGKILL)
        self.process.wait()
