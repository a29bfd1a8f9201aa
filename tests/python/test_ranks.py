"""Runs tests/python/ranks on several ranks; in one process pytest finds them itself."""

import os
import subprocess
import sys

import pytest
from headway_process import MPIRUN

LIMIT = 150


@pytest.mark.parametrize("ranks", (2, 3, 4))
def test_on_ranks(root, ranks):
    done = subprocess.run(
        [*MPIRUN, "-np", str(ranks), sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "ranks"],
        cwd=root / "tests" / "python", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
        env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
