"""Headway's own launcher and its place under others: all ranks end together, whatever ends first."""

import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest
from headway_process import command
from tiny_model import write_model

LIMIT = 10  # seconds in which a job must be gone
ENDLESS = ("--token-ids", "5,17,301,44", "--max-tokens", "60000", "--ignore-eos")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_model(tmp_path_factory.mktemp("launcher") / "tiny", positions=65536)


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def is_alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def rank_of(pid: int) -> int:
    variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(int(variable.split(b"=")[1]) for variable in variables if variable.startswith(b"HEADWAY_RANK="))


def wait_until(condition, seconds: float = LIMIT) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


class Job:
    """A job of two ranks in a temporary folder of its own, which runs for minutes if it is let."""

    def __init__(self, model: pathlib.Path, folder: pathlib.Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            command(model, *ENDLESS, "--tp", "2"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(folder), "OMP_NUM_THREADS": "1"})
        wait_until(lambda: len(children_of(self.process.pid)) == 2)
        self.ranks = sorted(children_of(self.process.pid))

    def wait_for_text(self) -> None:
        assert self.process.stdout.read(1)

    def end(self) -> tuple[int, str]:
        """Waits for the end and returns the exit code and what stands on standard error."""
        code = self.process.wait(LIMIT)
        wait_until(lambda: not any(is_alive(rank) for rank in self.ranks))
        return code, self.process.stderr.read()


@pytest.fixture
def job(model, tmp_path):
    started = Job(model, tmp_path)
    yield started
    started.process.kill()
    started.process.wait(LIMIT)
    wait_until(lambda: not any(is_alive(rank) for rank in started.ranks))
    started.process.stdout.close()
    started.process.stderr.close()


@pytest.mark.parametrize("rank", (0, 1))
def test_a_killed_rank_ends_the_job_and_is_named(job, rank):
    job.wait_for_text()
    victim = next(pid for pid in job.ranks if rank_of(pid) == rank)
    os.kill(victim, signal.SIGKILL)
    code, errors = job.end()
    assert code == 128 + signal.SIGKILL
    assert errors.count("headway: error:") == 1
    assert f"rank {rank} (process {victim}) was ended by signal 9" in errors


# Fault case C16, while text streams and while weights load or ranks still meet.
@pytest.mark.parametrize("streaming", (True, False))
def test_no_rank_outlives_the_launcher(job, streaming):
    if streaming:
        job.wait_for_text()
    job.process.kill()
    code, _ = job.end()
    assert code == -signal.SIGKILL


@pytest.mark.parametrize("wanted", (signal.SIGINT, signal.SIGTERM))
def test_signals_reach_all_ranks(job, wanted):
    job.wait_for_text()
    job.process.send_signal(wanted)
    code, errors = job.end()
    assert code == 128 + wanted
    assert "error" not in errors


def test_nothing_is_left_in_the_temporary_folder(job):
    job.wait_for_text()
    assert list(job.folder.iterdir()) == []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_ranks_started_by_hand_find_each_other(model):
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    options = ("--token-ids", "5,17", "--max-tokens", "6", "--tp", "2")
    ranks = [subprocess.Popen(command(model, *options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=os.environ | place | {"RANK": str(rank)})
             for rank in range(2)]
    outputs = [rank.communicate(timeout=60) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    assert len(outputs[0][0].split(",")) == 6
    assert outputs[1][0] == ""  # text comes from rank 0 alone
    assert "2 ranks, launched by env" in outputs[0][1]
    assert "tokens/s" not in outputs[1][1]


def test_tp_that_differs_from_the_launcher_is_refused(model):
    place = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    done = subprocess.run(command(model, "--token-ids", "5", "--tp", "3"), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=LIMIT, env=os.environ | place)
    assert done.returncode == 2
    assert "--tp is 3, but env started 2 ranks" in done.stderr


def test_partial_launch_variables_are_refused(model):
    done = subprocess.run(command(model, "--token-ids", "5"), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT, env=os.environ | {"RANK": "0"})
    assert done.returncode == 1
    assert "RANK=0 is set but WORLD_SIZE is not" in done.stderr
