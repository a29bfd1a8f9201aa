"""Runs the headway binary and reads what it prints."""

import json
import os
import pathlib
import subprocess

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,vader",
          "--mca", "plm", "isolated", "--mca", "rmaps_base_oversubscribe", "1"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("HEADWAY_BUILD_DIR", ROOT / "build")) / "bin" / "headway"


def command(model: pathlib.Path, *options: str) -> list[str]:
    return [str(BINARY), "generate", "--model", str(model), *options]


def run(model: pathlib.Path, *options: str, seconds: int = 120) -> subprocess.CompletedProcess:
    """`headway generate` to its end, however it ends."""
    return subprocess.run(command(model, *options), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds)


def generate(model: pathlib.Path, *options: str, seconds: int = 120) -> dict:
    """The object that `headway generate --json` prints; fails the test with its errors if it fails."""
    done = run(model, "--json", *options, seconds=seconds)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
