"""Headway's own launcher and its place under others: all ranks end together, whatever ends first."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest
from headway_process import MPIRUN, command, run
from process_tree import children_of, is_alive, rank_of, wait_until
from tiny_model import write_config, write_model

LIMIT = 10  # seconds in which a job must be gone
ENDLESS = ("--token-ids", "5,17,301,44", "--max-tokens", "60000", "--ignore-eos")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_model(tmp_path_factory.mktemp("launcher") / "tiny", positions=65536)


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


SHORT = ("--token-ids", "5,17", "--max-tokens", "6")


def run_by_hand(models: list[pathlib.Path]) -> list[subprocess.CompletedProcess]:
    """A rank for each model folder, started with RANK and WORLD_SIZE as any launcher might."""
    place = {"WORLD_SIZE": str(len(models)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [subprocess.Popen(command(model, *SHORT), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=os.environ | place | {"RANK": str(rank)})
             for rank, model in enumerate(models)]
    outputs = [rank.communicate(timeout=60) for rank in ranks]
    return [subprocess.CompletedProcess(rank.args, rank.returncode, *output) for rank, output in zip(ranks, outputs)]


def test_ranks_started_by_hand_find_each_other(model):
    first, second = run_by_hand([model, model])
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout == run(model, *SHORT, "--tp", "2").stdout
    assert second.stdout == ""  # text comes from rank 0 alone
    assert "2 ranks, launched by env" in first.stderr
    assert "tokens/s" not in second.stderr


def test_a_rank_that_fails_alone_says_so_and_ends_the_other(model, tmp_path):
    start = time.monotonic()
    first, second = run_by_hand([model, write_config(tmp_path / "no-weights", positions=65536)])
    assert time.monotonic() - start < 3 * LIMIT
    assert (first.returncode, second.returncode) == (1, 1)
    assert "headway: error: rank 1: " in second.stderr and "no-weights" in second.stderr
    assert "rank 1" in first.stderr.split("headway: error: ")[1]


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc-per-node", "2"]


@pytest.mark.parametrize("starter, source", [([*MPIRUN, "-np", "2"], "openmpi"), (TORCHRUN, "torchrun")])
def test_launchers_start_the_ranks(model, starter, source):
    done = subprocess.run([*starter, *command(model, *SHORT)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=90)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run(model, *SHORT, "--tp", "2").stdout
    assert f"2 ranks, launched by {source}" in done.stderr


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
