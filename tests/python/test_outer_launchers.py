"""Launches by mpirun and by srun, the latter played by a script: every rank takes its place, or says why it cannot."""

import pathlib
import subprocess
import sys

import pytest
from headway_process import MPIRUN, command, run
from tiny_model import write_config, write_model

SHORT = ("--token-ids", "5,17", "--max-tokens", "6")

# Starts `srun.py N command...` as Slurm does on one node: N tasks with its variables and no other launcher's.
SRUN = """
import os, subprocess, sys
tasks = int(sys.argv[1])
step = {"SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "0", "SLURM_NTASKS": "64", "SLURM_NODEID": "0",
        "SLURM_STEP_NUM_TASKS": str(tasks), "SLURM_STEP_TASKS_PER_NODE": str(tasks)}
ranks = [subprocess.Popen(sys.argv[2:], env=os.environ | step | {"SLURM_PROCID": str(r), "SLURM_LOCALID": str(r)})
         for r in range(tasks)]
sys.exit(max(rank.wait() for rank in ranks))
"""


@pytest.fixture
def srun(tmp_path: pathlib.Path) -> list[str]:
    script = tmp_path / "srun.py"
    script.write_text(SRUN)
    return [sys.executable, str(script)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return write_model(tmp_path_factory.mktemp("outer") / "tiny")


def finish(words: list[str], seconds: int = 60) -> subprocess.CompletedProcess:
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)


@pytest.mark.parametrize("tasks", (1, 2, 3))
def test_srun_starts_the_ranks(model, srun, tasks):
    done = finish([*srun, str(tasks), *command(model, *SHORT)])
    assert done.returncode == 0, done.stderr
    assert done.stdout == run(model, *SHORT, "--tp", str(tasks)).stdout  # text comes from rank 0 alone
    assert (f"{tasks} ranks, launched by slurm" if tasks > 1 else "one rank, without a launcher") in done.stderr


def test_a_partial_set_of_slurm_variables_is_refused(model, srun):
    for missing in ("SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"):
        done = finish([*srun, "2", "env", "-u", missing, *command(model, *SHORT)])
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.count("SLURM_PROCID is set but SLURM_LOCALID or SLURM_STEP_TASKS_PER_NODE is not") == 2


# Fault case A01: 28 heads on 29 ranks. There are no weights, so that nothing was opened before the refusal.
def test_mpirun_ends_all_ranks_of_an_impossible_layout(tmp_path):
    folder = write_config(tmp_path / "t28", q_heads=28, kv_heads=4, head_dim=4)
    # mpirun would end the others after the first that fails; so each writes its exit code down and ends well.
    keep = f'"$@" 2> {tmp_path}/$OMPI_COMM_WORLD_RANK.err; echo $? > {tmp_path}/$OMPI_COMM_WORLD_RANK.code'
    words = [*MPIRUN, "-np", "29", "sh", "-c", keep, "sh", *command(folder, *SHORT, "--attn-tp", "29")]
    done = finish(words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    for rank in range(29):
        assert (tmp_path / f"{rank}.code").read_text() == "2\n"
        text = (tmp_path / f"{rank}.err").read_text()
        assert all(part in text for part in ("headway: error:", "lm_head_tp", "28 query heads", "29 ranks")), text


def test_mpirun_serves_eight_ranks_of_28_heads(tmp_path):  # Fault case A01: 3 4 3 4 3 4 3 4 heads.
    folder = write_model(tmp_path / "t28", q_heads=28, kv_heads=4, head_dim=4)
    done = finish([*MPIRUN, "-np", "8", *command(folder, *SHORT, "--attn-tp", "8")])
    assert done.returncode == 0, done.stderr
    assert done.stdout == run(folder, *SHORT).stdout
    rows = [line.split() for line in done.stderr.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
    assert [row[2] for row in rows[:8]] == ["0-2", "3-6", "7-9", "10-13", "14-16", "17-20", "21-23", "24-27"]
