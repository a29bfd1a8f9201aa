"""Ranks that die, stop or fail while a job runs, under each launcher: the whole job ends, in time, and says why."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from headway_process import command
from process_tree import is_alive, ranks_under, wait_until
from tiny_model import write_config, write_model

LIMIT = 10  # seconds in which all processes of a job must be gone
COLLECTIVE_LIMIT = 3
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,vader",
          "--mca", "plm", "isolated", "--mca", "rmaps_base_oversubscribe", "1", "-np", "2"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc-per-node", "2"]
LAUNCHERS = {"own": [], "mpirun": MPIRUN, "torchrun": TORCHRUN}
DECODE = ("--token-ids", "5,17,301,44", "--max-tokens", "60000", "--ignore-eos")
PREFILL = ("--token-ids", ",".join(["5", "17", "301"] * 7000), "--max-tokens", "9")  # for many seconds


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_model(tmp_path_factory.mktemp("running") / "tiny", positions=65536)


class Job:
    """A job of two ranks that runs for long if it is let, its output in files."""

    def __init__(self, launcher: str, arguments: list[str], folder: pathlib.Path) -> None:
        self.output, self.errors = folder / "output", folder / "errors"
        own = () if LAUNCHERS[launcher] else ("--tp", "2")
        with self.output.open("w") as output, self.errors.open("w") as errors:
            self.process = subprocess.Popen([*LAUNCHERS[launcher], *arguments, *own], stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=errors, env=os.environ | {"OMP_NUM_THREADS": "1"})
        wait_until(lambda: len(ranks_under(self.process.pid)) == 2, 30)
        self.ranks = ranks_under(self.process.pid)

    def wait_for(self, phase: str) -> None:
        if phase == "decode":
            wait_until(lambda: self.output.read_text(), 30)
        elif phase == "prefill":
            wait_until(lambda: "loaded" in self.errors.read_text(), 30)
            time.sleep(0.3)
            assert not self.output.read_text()
        else:
            time.sleep(0.1)  # ranks start, meet and load in less than a second

    def end(self, seconds: float = LIMIT) -> tuple[int, str]:
        """Waits for the end of all; the exit code and what stands on standard error."""
        start = time.monotonic()
        code = self.process.wait(seconds)
        wait_until(lambda: not any(is_alive(pid) for pid in self.ranks.values()), seconds)
        assert time.monotonic() - start < seconds
        return code, self.errors.read_text()


@pytest.fixture
def start(tmp_path):
    """Starts jobs of `generate`; nothing of them and nothing in /dev/shm is left at the end."""
    jobs = []
    before = sorted(os.listdir("/dev/shm"))

    def start_job(launcher: str, *arguments: str) -> Job:
        jobs.append(Job(launcher, list(arguments), tmp_path))
        return jobs[-1]

    yield start_job
    for job in jobs:
        for pid in (job.process.pid, *job.ranks.values()):
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        job.process.wait(LIMIT)
    assert [name for name in os.listdir("/dev/shm") if name not in before and "headway" in name] == []


def generate(model: pathlib.Path, *options: str) -> list[str]:
    return command(model, *options, "--collective-timeout", str(COLLECTIVE_LIMIT))


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("phase, options", [("load", DECODE), ("prefill", PREFILL), ("decode", DECODE)])
def test_a_killed_rank_ends_the_job_and_is_named(start, model, launcher, phase, options):
    job = start(launcher, *generate(model, *options))
    job.wait_for(phase)
    victim = {"load": 0, "prefill": 1, "decode": 1}[phase]
    os.kill(job.ranks[victim], signal.SIGKILL)
    code, errors = job.end(LIMIT if launcher != "torchrun" else 3 * LIMIT)
    assert code != 0
    named = {"own": f"rank {victim} (process {job.ranks[victim]}) was ended by signal 9",
             "mpirun": f"process rank {victim} with PID", "torchrun": f"rank      : {victim} (local_rank: {victim})"}
    assert named[launcher] in errors, errors
    if launcher == "own":
        assert errors.count("headway: error:") == 1


@pytest.mark.parametrize("launcher", ["own", "mpirun"])
def test_a_stopped_rank_is_named_when_the_limit_has_passed(start, model, launcher):
    job = start(launcher, *generate(model, *DECODE))
    job.wait_for("decode")
    os.kill(job.ranks[1], signal.SIGSTOP)
    code, errors = job.end(COLLECTIVE_LIMIT + LIMIT)
    assert code == 1
    assert errors.count("headway: error:") == 1
    message = errors.split("headway: error: ")[1].splitlines()[0]
    assert "rank 1" in message and "3000 ms" in message, message


@pytest.mark.parametrize("launcher", ["mpirun", "torchrun"])
def test_no_rank_outlives_a_killed_launcher(start, model, launcher):
    job = start(launcher, *generate(model, *DECODE))
    job.wait_for("decode")
    job.process.kill()
    code, errors = job.end()
    assert code == -signal.SIGKILL
    if launcher == "torchrun":  # what the ranks of mpirun write goes through mpirun
        assert f"the launcher (torchrun, process {job.process.pid}) is gone" in errors


def test_a_rank_that_fails_alone_is_named_under_mpirun(model, tmp_path):
    broken = write_config(tmp_path / "no-weights", positions=65536)
    done = subprocess.run([*MPIRUN[:-1], "1", *generate(model, *DECODE), ":", "-np", "1", *generate(broken, *DECODE)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3 * LIMIT)
    assert done.returncode == 1
    assert "headway: error: rank 1: " in done.stderr and "no-weights" in done.stderr
